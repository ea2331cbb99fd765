"""Data-OOB, out-of-bag agreement (Kwon and Zou, ICML 2023, arXiv 2304.07718).

Many simple classifiers, each fitted to a bootstrap draw of the samples: the share of those that did not draw a sample
and predict its given label. Low is noisy, so the score is 1 − share. Theirs are 800 trees on draws as large as the
data; ours are 200 linear ones, ridge regression onto the labels of the first 64 principal components of what the
pretrained classifier sees. Linear classifiers of many samples hardly differ from each other, and their votes would all
be the same: so a draw has 512 samples. Draws go by the features, so that the order of samples does not matter.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EMBEDDING, RunRecord, Signal
from benchmark.seeds import numpy_generator
from benchmark.statistics.neighbours import order_by_features
from detectors.base import Detector

COMPONENTS = 64


@dataclass(frozen=True)
class DataOOB(Detector):
    name: ClassVar[str] = "Data-OOB"
    summary: ClassVar[str] = "share of linear classifiers, fitted without the sample, that predict another label"

    heads: int = 200
    bag: int = 512
    ridge: float = 0.01  # of the components' mean variance
    seed: int = 0

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EMBEDDING,)

    def epochs_used(self, epochs: int) -> int:
        return 0

    def score(self, record: RunRecord) -> np.ndarray:
        features_ND, labels = record[EMBEDDING], record.given_labels
        order = order_by_features(features_ND)
        x_NP, y_N = _components(features_ND[order]), labels[order]
        target_NK = np.eye(record.num_classes, dtype=np.float32)[y_N]
        penalty = np.float32(self.ridge * x_NP.var(axis=0).mean() + 1e-6) * np.eye(x_NP.shape[1], dtype=np.float32)
        generator, n, size = numpy_generator(self.seed, "bags"), len(labels), min(self.bag, len(labels))
        judged, agreed = np.zeros(n), np.zeros(n)
        for _ in range(self.heads):
            drawn = generator.integers(0, n, size)
            bag_BP = x_NP[drawn]
            weights_PK = np.linalg.solve(bag_BP.T @ bag_BP / size + penalty, bag_BP.T @ target_NK[drawn] / size)
            out = np.flatnonzero(np.bincount(drawn, minlength=n) == 0)
            judged[out] += 1
            agreed[out] += (x_NP[out] @ weights_PK).argmax(axis=1) == y_N[out]
        scores = np.empty(n)
        scores[order] = 1 - np.divide(agreed, judged, out=np.full(n, 0.5), where=judged > 0)
        return scores


def _components(features_ND: np.ndarray) -> np.ndarray:
    """The first principal components on one scale, and a column of ones for the intercept."""
    centred = features_ND - features_ND.mean(axis=0, dtype=np.float64).astype(np.float32)
    _, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    components = centred @ vectors[:, ::-1][:, :COMPONENTS].astype(np.float32)
    scale = max(float(components.std()), 1e-12)
    return np.hstack([components / scale, np.ones((len(components), 1), dtype=np.float32)])
