"""Mean loss and last-epoch loss: the cross-entropy of the given label at the end of epochs; high is noisy.

The plainest use of training dynamics, and what some benchmarks report under other methods' names.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EVAL_SUMMARY, EvalSummary, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import mean_cross_entropy


@dataclass(frozen=True)
class MeanLoss(Detector):
    name: ClassVar[str] = "mean loss"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "cross-entropy of the given label at the end of each epoch, averaged"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_SUMMARY,)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(mean_cross_entropy, self.needs[0])


@dataclass(frozen=True)
class LastLoss(MeanLoss):
    name: ClassVar[str] = "last loss"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "cross-entropy of the given label at the end of training"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EvalSummary(at_epochs=(0,)),)  # the last epoch alone
