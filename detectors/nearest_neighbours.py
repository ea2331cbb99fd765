"""Nearest neighbours: the share of the k nearest training samples whose given label differs; high is noisy.

In the space that the pretrained network's classifier sees, before any training: the reference point for what a good
representation knows by itself (as in Zhu et al., ICML 2022, arXiv 2110.06283).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EMBEDDING, RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class Neighbours(Detector):
    name: ClassVar[str] = "nearest neighbours"
    summary: ClassVar[str] = "share of the nearest samples, before training, that are labelled otherwise"

    k: int = 10

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EMBEDDING,)

    def epochs_used(self, epochs: int) -> int:
        return 0

    def score(self, record: RunRecord) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        labels = record.given_labels
        nearest = NearestNeighbors(n_neighbors=min(self.k, len(labels) - 1)).fit(record[EMBEDDING])
        neighbours_NK = nearest.kneighbors(return_distance=False)  # of the samples themselves, each without itself
        return (labels[neighbours_NK] != labels[:, None]).mean(axis=1)
