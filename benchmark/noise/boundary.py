"""Noise near the decision boundary, where people err (PMD: Zhang et al., ICLR 2021, arXiv 2103.07756).

With η the probabilities of a classifier trained on correct labels and m = max(0, η_y − η_s), the margin of the true
class y over the most likely other class s: a label goes from y to s with a chance in proportion to
    type I: (1 − m²)/2    type II: 1 − m³    type III: 1 − (m³ + m² + m)/3
scaled so that its mean is the rate, and at most 1. η comes from held-out classifiers of patches (patches.py), not from
a network that is judged.
Where ours differs: the authors replace the labels by the classifier's before they flip; ours start from the correct
labels, and where the classifier is wrong the margin counts as 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.noise.base import ChanceNoise, NoiseKind, Samples, flipped, one_hot

TYPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "I": lambda margin: (1 - margin**2) / 2,
    "II": lambda margin: 1 - margin**3,
    "III": lambda margin: 1 - (margin**3 + margin**2 + margin) / 3,
}


@dataclass(frozen=True)
class Boundary(ChanceNoise):
    name: ClassVar[str] = "boundary"
    summary: ClassVar[str] = "to the class that a classifier confuses the image with; the nearer, the likelier"
    options: ClassVar[str] = "I, II, III"

    type: str = "I"

    @classmethod
    def with_option(cls, option: str) -> NoiseKind:
        return cls(option) if option in TYPES else super().with_option(option)

    @property
    def source(self) -> str:
        return "" if self.type == "I" else self.type

    def chances(self, samples: Samples, rate: float, generator: np.random.Generator) -> np.ndarray:
        own_NK = one_hot(samples.labels, samples.num_classes).astype(bool)
        others_NK = np.where(own_NK, -1, samples.confusion)
        margin_N = np.clip(samples.confusion[own_NK] - others_NK.max(axis=1), 0, 1)
        chance_N = scaled(TYPES[self.type](margin_N), rate)
        return flipped(samples.labels, others_NK.argmax(axis=1), chance_N, samples.num_classes)


def scaled(weight_N: np.ndarray, mean: float) -> np.ndarray:
    """In proportion to the weights and at most 1, with that mean."""
    from scipy.optimize import brentq

    if not mean:
        return np.zeros_like(weight_N)
    weight_N = np.maximum(weight_N, 1e-9)
    most = 1 / weight_N.min()  # from here on all are 1
    factor = brentq(lambda factor: np.minimum(1, factor * weight_N).mean() - mean, 0, most) if mean < 1 else most
    return np.minimum(1, factor * weight_N)
