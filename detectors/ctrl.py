"""CTRL, clustering of training losses (Yue and Jha, IEEE TAI 2024, arXiv 2208.08464).

Each sample's loss in every epoch, smoothed by a moving average, is a curve; k-means with two clusters separates the
curves of each given label, and the cluster of the higher mean loss is noisy. The authors flag its members, and choose
the number of clusters and windows by their silhouette. A ranking needs a number: ours is d_low / (d_low + d_high) of
the distances to the two centres, above 0.5 for the noisy cluster.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EVAL_LOGITS, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import given_log_probability


@dataclass(frozen=True)
class CTRL(Detector):
    name: ClassVar[str] = "CTRL"
    summary: ClassVar[str] = "how much nearer the sample's loss curve is to the higher of two clusters of its label's"

    window: int = 5

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_LOGITS,)

    def score(self, record: RunRecord) -> np.ndarray:
        from threadpoolctl import threadpool_limits

        labels, logits_ENK = record.given_labels, record[EVAL_LOGITS]
        losses_NE = np.stack([-given_log_probability(z_NK[None], labels)[0] for z_NK in logits_ENK], axis=1)
        width = min(self.window, losses_NE.shape[1])
        summed = np.cumsum(np.pad(losses_NE, ((0, 0), (1, 0))), axis=1)
        curves_NE = (summed[:, width:] - summed[:, :-width]) / width
        scores = np.empty(len(labels))
        with threadpool_limits(limits=1):  # k-means sums in the order its threads finish
            for label in np.unique(labels):
                members = labels == label
                scores[members] = _nearness_to_high(curves_NE[members])
        return scores


def _nearness_to_high(curves_ME: np.ndarray) -> np.ndarray:
    from sklearn.cluster import KMeans

    ascending = curves_ME[np.lexsort(curves_ME.T)]  # so that the order of samples does not matter
    if len(ascending) < 2 or np.allclose(ascending[0], ascending, rtol=1e-9, atol=1e-12):
        return np.full(len(curves_ME), 0.5)
    low, high = sorted(KMeans(2, n_init=10, random_state=0).fit(ascending).cluster_centers_, key=np.mean)
    to_low, to_high = (np.linalg.norm(curves_ME - centre, axis=1) for centre in (low, high))
    return to_low / (to_low + to_high)
