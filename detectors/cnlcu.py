"""CNLCU-S, sample selection with a lower bound on the loss (Xia et al., ICLR 2022, arXiv 2106.00445).

ψ(l) = log(1 + l + l²/2); score = max(0, mean of ψ(l) − σ²(t + σ² log(2t)/t²)/(n_t − σ²)) over a window of t epochs;
n_t = 2 + the number of its earlier epochs in which the sample was selected, σ² = 1e-4·(1 − (t − 1)/79), never negative;
high is noisy. The authors use two networks, windows of three epochs and the known noise rate, and export no score per
sample. Ours: one network, all epochs (`window` = 3 is the authors' last window), each sample its own bound, selected =
loss below that epoch's median (the rate is not known). H-CAT cites the paper for the plain mean cross-entropy over all
epochs (`bound`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EVAL_SUMMARY, RunRecord, Signal, TrainSummary
from detectors.base import Detector
from detectors.logits import losses_of
from detectors.mean_loss import MeanLoss

VARIANCE, VARIANCE_GONE_AT_EPOCH = 1e-4, 80


@dataclass(frozen=True)
class CNLCUS(Detector):
    name: ClassVar[str] = "CNLCU-S"
    version: ClassVar[int] = 3  # reads summaries of logits
    summary: ClassVar[str] = "robust mean of the loss over epochs, less what uncertainty allows for"

    bound: bool = True
    window: int | None = None  # the last so many epochs; all if none is named

    @property
    def needs(self) -> tuple[Signal, ...]:
        last = tuple(range(1 - self.window, 1)) if self.window else None
        return (TrainSummary(last) if self.bound else EVAL_SUMMARY,)

    def score(self, record: RunRecord) -> np.ndarray:
        if not self.bound:
            return MeanLoss().score(record)
        medians_E = np.median(losses_of(record, self.needs[0]), axis=0)
        return record.map_samples(lambda labels_B, summary_EB: self._score(summary_EB, medians_E), self.needs[0])

    def _score(self, summary_EB: np.ndarray, medians_E: np.ndarray) -> np.ndarray:
        losses_EB = summary_EB["loss"].astype(np.float64)
        t = len(losses_EB)
        variance = VARIANCE * max(0.0, 1.0 - (t - 1) / (VARIANCE_GONE_AT_EPOCH - 1))
        times_selected_B = 2 + (losses_EB < medians_E[:, None])[:-1].sum(axis=0)
        allowance_B = variance * (t + variance * np.log(2 * t) / t**2) / (times_selected_B - variance)
        robust_mean_B = np.log1p(losses_EB + np.square(losses_EB) / 2).mean(axis=0)
        return np.maximum(0.0, robust_mean_B - allowance_B)
