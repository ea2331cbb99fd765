"""Mean loss and last-epoch loss: the cross-entropy of the given label at the end of epochs; high is noisy.

The plainest use of training dynamics, and what some benchmarks report under other methods' names.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EVAL_LOGITS, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import given_log_probability


@dataclass(frozen=True)
class MeanLoss(Detector):
    name: ClassVar[str] = "mean loss"
    summary: ClassVar[str] = "cross-entropy of the given label at the end of each epoch, averaged"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_LOGITS,)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, EVAL_LOGITS)

    def _score(self, labels_B: np.ndarray, logits_EBK: np.ndarray) -> np.ndarray:
        return -given_log_probability(logits_EBK, labels_B).mean(axis=0)


@dataclass(frozen=True)
class LastLoss(MeanLoss):
    name: ClassVar[str] = "last loss"
    summary: ClassVar[str] = "cross-entropy of the given label at the end of training"

    def _score(self, labels_B: np.ndarray, logits_EBK: np.ndarray) -> np.ndarray:
        return -given_log_probability(logits_EBK[-1:], labels_B)[0]
