"""AUM, the area under the margin (Pleiss et al., NeurIPS 2020, arXiv 2001.10528).

margin = z_ỹ − max over the other classes of z, on the logits that produced the update; AUM = its mean over epochs.
Low AUM is noisy, so the score is −AUM. The authors leave the first epoch out; H-CAT does not (`skip_first_epoch`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import TRAIN_LOGITS, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import best_other_class, given_class


@dataclass(frozen=True)
class AUM(Detector):
    name: ClassVar[str] = "AUM"
    summary: ClassVar[str] = "margin of the given label's logit over the best other, averaged over epochs"

    skip_first_epoch: bool = True

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (TRAIN_LOGITS,)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._negative_aum, TRAIN_LOGITS)

    def _negative_aum(self, labels_B: np.ndarray, logits_EBK: np.ndarray) -> np.ndarray:
        first = 1 if self.skip_first_epoch and len(logits_EBK) > 1 else 0
        logits_EBK = logits_EBK[first:].astype(np.float64)
        margins_EB = given_class(logits_EBK, labels_B) - best_other_class(logits_EBK, labels_B)
        return -margins_EB.mean(axis=0)  # low AUM is noisy
