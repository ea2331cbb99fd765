"""SimiFeat: votes of the nearest neighbours' given labels, no training (Zhu et al., ICML 2022, arXiv 2110.06283).

s = the shares of given labels among the k nearest by cosine, in the space that the pretrained classifier sees. -V: the
most voted other label's share less that of ỹ. -R: cos(s, e_ỹ) = s_ỹ/‖s‖ ranks the samples of each given label j, of
which HOC estimates the share P(Y ≠ j | Ỹ = j) as wrong; low is noisy. The score makes these classes comparable: minus
the share of its class that is as suspicious or more, in units of the share that is wrong, so that the authors flag what
is above −1 (`thresholds` false: −cos alone). The authors vote over 21 random draws of augmented images, of which ours
has one view each; among their ten is the sample itself, near votes weigh more, and shares of errors are kept from 5 to
95 %.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EMBEDDING, RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class SimiFeatV(Detector):
    name: ClassVar[str] = "SimiFeat-V"
    summary: ClassVar[str] = "how far the nearest samples' votes for another label exceed those for the given one"

    k: int = 10

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EMBEDDING,)

    def epochs_used(self, epochs: int) -> int:
        return 0

    def score(self, record: RunRecord) -> np.ndarray:
        return self.votes(record)[1]

    def votes(self, record: RunRecord) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The shares of labels among neighbours, the lead of the best other label, and the neighbours."""
        from benchmark.statistics.neighbours import nearest_others

        labels, everyone = record.given_labels, np.arange(len(record.given_labels))
        neighbours_NK = nearest_others(record[EMBEDDING], min(max(self.k, 2), len(labels) - 1))
        votes_NK = np.zeros((len(labels), record.num_classes), dtype=np.int64)
        for column_N in neighbours_NK.T[: self.k]:
            votes_NK[everyone, labels[column_N]] += 1
        share_NK = votes_NK / min(self.k, neighbours_NK.shape[1])
        others_NK = votes_NK.copy()
        others_NK[everyone, labels] = -1
        lead_N = others_NK.max(axis=1) - votes_NK[everyone, labels]
        return share_NK, lead_N / min(self.k, neighbours_NK.shape[1]), neighbours_NK


@dataclass(frozen=True)
class SimiFeatR(SimiFeatV):
    name: ClassVar[str] = "SimiFeat-R"
    summary: ClassVar[str] = "how few of the nearest samples agree, by rank within each class and HOC's share of errors"

    thresholds: bool = True

    def score(self, record: RunRecord) -> np.ndarray:
        from scipy.stats import rankdata

        from benchmark.statistics.transition import estimate_transition

        labels, (share_NK, _, neighbours_NK) = record.given_labels, self.votes(record)
        scores = -share_NK[np.arange(len(labels)), labels] / np.linalg.norm(share_NK, axis=1)
        if not self.thresholds:
            return scores
        pair_N2 = neighbours_NK[:, [0, min(1, neighbours_NK.shape[1] - 1)]]
        wrong_share_K = estimate_transition(labels, pair_N2, record.num_classes).wrong_share
        for label in np.unique(labels):
            members = labels == label
            as_suspicious = rankdata(-scores[members].round(9)) / members.sum()  # ties stay ties
            scores[members] = -as_suspicious / max(wrong_share_K[label], 1 / members.sum())
        return scores
