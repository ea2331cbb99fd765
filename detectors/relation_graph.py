"""Relation graph (Kim et al., NeurIPS 2023, arXiv 2301.12321).

Samples agree or contradict each other: r_ij = ±k_ij, + if their given labels are equal, with the kernel
k_ij = (max(0, cos(h_i, h_j))·p_i·p_j)^t of what the classifier sees (h) and predicts (p) at one epoch; k below 0.03
before the power counts as nothing. Σ_j r_ij low is noisy, so the score is minus that sum. t = 4, and the kernel and its
threshold are the authors'; they judge a fine-tuned network at its end, ours before the first drop of the learning rate.
Of more than 16,384 samples so many are the partners j of all, since the sum over all pairs would take hours.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import Embedding, EvalLogits, RunRecord, Signal
from benchmark.statistics.neighbours import order_by_features
from detectors.base import Detector
from detectors.logits import softmax

ROWS = 512  # at a time


@dataclass(frozen=True)
class RelationGraph(Detector):
    name: ClassVar[str] = "relation graph"
    summary: ClassVar[str] = "how far similar samples that are labelled otherwise outweigh those labelled alike"

    epoch: int = 10
    power: float = 4.0
    least: float = 0.03
    partners: int = 16_384

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (Embedding(self.epoch), EvalLogits((self.epoch,)))

    def epochs_used(self, epochs: int) -> int:
        return min(self.epoch, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        from benchmark.statistics.neighbours import unit_rows

        embedding, logits = self.needs
        unit_ND, labels = unit_rows(record[embedding]), record.given_labels
        p_NK = softmax(record[logits][0])
        partners = order_by_features(unit_ND)
        if len(partners) > self.partners:
            partners = partners[np.linspace(0, len(partners) - 1, self.partners).round().astype(int)]
        partner_MD, partner_MK, partner_labels = unit_ND[partners], p_NK[partners], labels[partners]
        sums = np.empty(len(labels))
        for start in range(0, len(labels), ROWS):
            rows = slice(start, start + ROWS)
            kernel = np.maximum(unit_ND[rows] @ partner_MD.T, 0)
            kernel *= p_NK[rows] @ partner_MK.T
            kernel[kernel <= self.least] = 0
            powers = np.square(np.square(kernel)) if self.power == 4 else np.power(kernel, np.float32(self.power))
            np.negative(powers, where=labels[rows, None] == partner_labels, out=powers)
            sums[rows] = powers.sum(axis=1, dtype=np.float64)  # many that contradict it are noisy
        return sums
