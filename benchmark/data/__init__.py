"""Data sets by name or path, label noise, and batches of labelled features."""

from benchmark.data.noise import NOISE_KINDS, AnswerKey, NoiseSettings, noise_named
