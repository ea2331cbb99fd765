"""SelfClean's label error score (Gröger et al., NeurIPS 2024, arXiv 2305.17048).

m₌ and m₌̸ are the cosine distances from a sample to the nearest other one with the same label, and with another label:
s = m₌̸² / (m₌² + m₌̸²); low s is noisy, so the score is 1 − s = m₌² / (m₌² + m₌̸²). The authors train an encoder on the
images themselves, without labels, first; ours is what the pretrained classifier sees. A label that one sample alone has
gives it 1 (the authors take its greatest distance to others for m₌), and a single label all samples 0.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EMBEDDING, RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class SelfClean(Detector):
    name: ClassVar[str] = "SelfClean"
    summary: ClassVar[str] = "how much nearer the nearest sample of another label is than that of the same"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EMBEDDING,)

    def epochs_used(self, epochs: int) -> int:
        return 0

    def score(self, record: RunRecord) -> np.ndarray:
        from benchmark.statistics.neighbours import Index, unit_rows

        unit_ND, labels = unit_rows(record[EMBEDDING]), record.given_labels
        same, other = np.full(len(labels), np.inf), np.full(len(labels), np.inf)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            index = Index(unit_ND[members])
            others = np.flatnonzero(labels != label)
            if len(members) > 1:  # the nearest is the sample itself, or as near as itself
                same[members] = _distance(index.search(unit_ND[members], 2)[0][:, 1])
            if len(others):
                other[others] = np.minimum(other[others], _distance(index.search(unit_ND[others], 1)[0][:, 0]))
        same, other = np.square(same), np.square(other)
        is_alone, is_only = np.isinf(same), np.isinf(other)
        same[is_alone], other[is_alone], same[is_only], other[is_only] = 1.0, 0.0, 0.0, 1.0
        total = same + other
        return np.divide(same, total, out=np.full(len(labels), 0.5), where=total > 0)  # equal images of two labels: 0.5


def _distance(similarity: np.ndarray) -> np.ndarray:
    """Never negative; what single precision cannot tell from a copy is one."""
    distance = 1.0 - similarity.astype(np.float64)
    return np.where(distance < 1e-6, 0.0, distance)
