"""Margins and probabilities of the given label: the plain grid that others are compared with.

margin = z_ỹ − max over the other classes of z, probability = p_ỹ, from the evaluation that ends an epoch: the mean over
all epochs, the last one, or an early one (10); or from held-out predictions, of networks that did not train on the
sample. Low is noisy, so the scores are −margin and 1 − probability. Some have other names: the mean margin at
presentation is AUM, the mean probability is Data-IQ's confidence in H-CAT, the held-out probability is confident
learning's. Comparisons of detectors found such plain readings hard to beat.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import EvalSummary, RunRecord, Signal, summarise
from benchmark.training import Recipe, Standard
from detectors.base import Detector
from detectors.confident_learning import HELD_OUT_LOGITS, CrossValidation
from detectors.logits import given_margin, given_probability

EARLY = 10
Reading = Literal["mean", "last", "early", "held-out"]


@dataclass(frozen=True)
class GivenMargin(Detector):
    name: ClassVar[str] = "margin"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "margin of the given label's logit over the best other: mean, last, early or held out"

    reading: Reading = "early"

    @property
    def training(self) -> Recipe:
        return CrossValidation() if self.reading == "held-out" else Standard()

    @property
    def needs(self) -> tuple[Signal, ...]:
        if self.reading == "held-out":
            return (HELD_OUT_LOGITS,)
        return (EvalSummary({"mean": None, "last": (0,), "early": (EARLY,)}[self.reading]),)

    def epochs_used(self, epochs: int) -> int:
        if self.reading == "held-out":
            return min(CrossValidation().epochs, epochs)
        return min(EARLY, epochs) if self.reading == "early" else epochs

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._of_block, self.needs[0])

    def _of_block(self, labels_B: np.ndarray, values: np.ndarray) -> np.ndarray:
        summary_EB = summarise(values[None], labels_B) if self.reading == "held-out" else values
        return self._suspicion(summary_EB).mean(axis=0)

    def _suspicion(self, summary_EB: np.ndarray) -> np.ndarray:
        return -given_margin(summary_EB)  # a low margin is noisy


@dataclass(frozen=True)
class GivenProbability(GivenMargin):
    name: ClassVar[str] = "probability"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "one minus the probability of the given label: mean, last, early or held out"

    def _suspicion(self, summary_EB: np.ndarray) -> np.ndarray:
        return 1.0 - given_probability(summary_EB)  # a low probability is noisy
