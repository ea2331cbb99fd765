"""CORES², its sieve (Cheng et al., ICLR 2021, arXiv 2010.02347); high is noisy.

l_ỹ − β·Σ_y w_y l_y with l_y = −log p_y: the loss of the given label less the mean over all labels, which a confident
prediction makes large. The authors' sieve drops what is above 0 with β = 1 and equal weights w, while training with the
same regulariser at β = 2 and w = the shares of given labels (`weights` = "given labels"). Ours reads the logits of
standard training at one early epoch; the authors' training is another recipe.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import EvalLogits, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import log_softmax


@dataclass(frozen=True)
class CORES(Detector):
    name: ClassVar[str] = "CORES²"
    summary: ClassVar[str] = "loss of the given label less the mean loss over all labels, at an early epoch"

    epoch: int = 10
    beta: float = 1.0
    weights: Literal["equal", "given labels"] = "equal"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EvalLogits((self.epoch,)),)

    def epochs_used(self, epochs: int) -> int:
        return min(self.epoch, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        classes = record.num_classes
        share_K = np.full(classes, 1 / classes)
        if self.weights == "given labels":
            share_K = np.bincount(record.given_labels, minlength=classes) / len(record.given_labels)

        def sieve(labels_B: np.ndarray, logits_1BK: np.ndarray) -> np.ndarray:
            loss_BK = -log_softmax(logits_1BK[0])
            return loss_BK[np.arange(len(labels_B)), labels_B] - self.beta * loss_BK @ share_K

        return record.map_samples(sieve, self.needs[0])
