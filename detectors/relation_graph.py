"""Relation graph (Kim et al., NeurIPS 2023, arXiv 2301.12321).

Samples agree or contradict each other: r_ij = ±k_ij, + if their given labels are equal, with the kernel k_ij = (max(0,
cos(h_i, h_j))·p_i·p_j)^t of what the classifier sees (h) and predicts (p) at one epoch; k below 0.03 before the power
counts as nothing. Σ_j r_ij low is noisy, so the score is minus that sum. t = 4, and the kernel and its threshold are
the authors'; they judge a fine-tuned network at its end, ours before the first drop of the learning rate. A second
round, as theirs: where the score is above 0.05 of the largest one, the label of j counts as wrong and its relations
change their sign. Of more than 16,384 samples so many are the partners j of all, since the sum over all pairs would
take hours.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import Embedding, EvalLogits, RunRecord, Signal
from benchmark.statistics.neighbours import order_by_features
from detectors.base import Detector
from detectors.logits import softmax

ROWS = 512  # at a time
WRONG = 0.05  # of the largest score: the authors' λ


@dataclass(frozen=True)
class RelationGraph(Detector):
    name: ClassVar[str] = "relation graph"
    summary: ClassVar[str] = "how far similar samples that are labelled otherwise outweigh those labelled alike"

    epoch: int = 10
    power: float = 4.0
    threshold: float = 0.03
    rounds: int = 2
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
        others = np.setdiff1d(np.arange(len(labels)), partners)
        sums, sign_N = np.zeros(len(labels)), np.ones(len(labels), dtype=np.float32)
        for _ in range(self.rounds):
            for start in range(0, len(labels), ROWS):
                rows = slice(start, start + ROWS)
                kernel = self._kernel(unit_ND[rows] @ unit_ND[partners].T, p_NK[rows] @ p_NK[partners].T)
                np.negative(kernel, where=labels[rows, None] == labels[partners], out=kernel)
                sums[rows] = (kernel * sign_N[partners]).sum(
                    axis=1, dtype=np.float64
                )  # many that contradict it are noisy
            own = self._kernel(np.ones(len(others)), np.square(p_NK[others]).sum(axis=1))  # partners have theirs
            sums[others] -= sign_N[others] * own
            sign_N = np.where(sums > WRONG * np.abs(sums).max(), -1, 1).astype(np.float32)
        return sums

    def _kernel(self, cosine: np.ndarray, agreement: np.ndarray) -> np.ndarray:
        kernel = np.maximum(cosine, 0) * agreement.astype(cosine.dtype)
        kernel[kernel <= self.threshold] = 0
        return np.square(np.square(kernel)) if self.power == 4 else np.power(kernel, cosine.dtype.type(self.power))
