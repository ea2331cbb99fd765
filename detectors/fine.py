"""FINE, filtering noisy labels via eigenvectors (Kim et al., NeurIPS 2021, arXiv 2102.11628).

z = what the classifier sees after a warm-up, u_j = first right singular vector of the z of all samples labelled j:
alignment a = (u_ỹ·z / ‖z‖)². Low is noisy: the score is the posterior of the lower component of a two-component mixture
of each label's alignments (`mixture` false: 1 − a). Beyond the components' means the posterior is held, as in
loss_mixture.py, and where it is equal 1 − a decides. That is the paper; the authors' code does not square, and offers
k-means instead of the mixture.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import Embedding, RunRecord, Signal
from benchmark.statistics.mixture import posterior_of_highest
from detectors.base import Detector

TIE_BREAK = 1e-6  # weight of the alignment itself


@dataclass(frozen=True)
class FINE(Detector):
    name: ClassVar[str] = "FINE"
    summary: ClassVar[str] = "how little the features align with the first singular vector of the given label's"

    after_epoch: int = 10
    mixture: bool = True

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (Embedding(self.after_epoch),)

    def epochs_used(self, epochs: int) -> int:
        return min(self.after_epoch, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        features_ND, labels = record[self.needs[0]], record.given_labels
        scores = np.empty(len(labels))
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            z_MD = features_ND[members].astype(np.float64)
            _, vectors = np.linalg.eigh(z_MD.T @ z_MD)  # ascending
            lengths = np.maximum(np.linalg.norm(z_MD, axis=1), 1e-12)
            misalignment = 1 - np.square(z_MD @ vectors[:, -1] / lengths)
            scores[members] = misalignment
            if self.mixture:
                scores[members] = posterior_of_highest(misalignment) + TIE_BREAK * misalignment
        return scores
