"""CTRL, clustering of training losses (Yue and Jha, IEEE TAI 2024, arXiv 2208.08464).

Each sample's loss in every epoch, smoothed by a moving average, is a curve; k-means with two clusters separates the
curves of each given label, and the cluster of the higher mean loss is noisy. The authors flag its members, and choose
the number of clusters and windows by their silhouette, and cut off large losses first. A ranking needs a number: ours
is how far a curve is along the way from the lower to the higher centre, (d_low² − d_high²) / ‖c_high − c_low‖² of the
distances to them: from −1 to 1 between the centres, above 0 in the noisy cluster, and monotone beyond.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EVAL_SUMMARY, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import losses_of


@dataclass(frozen=True)
class CTRL(Detector):
    name: ClassVar[str] = "CTRL"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "how much nearer the loss curve is to the higher of two clusters of its label's curves"

    window: int = 5

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_SUMMARY,)

    def score(self, record: RunRecord) -> np.ndarray:
        import sklearn.cluster  # noqa: F401  # before threads are limited: a library that is loaded later is not
        from threadpoolctl import threadpool_limits

        labels, losses_NE = record.given_labels, losses_of(record, EVAL_SUMMARY)
        width = min(self.window, losses_NE.shape[1])
        summed = np.cumsum(np.pad(losses_NE, ((0, 0), (1, 0))), axis=1)
        curves_NE = (summed[:, width:] - summed[:, :-width]) / width
        scores = np.empty(len(labels))
        with threadpool_limits(limits=1):  # k-means sums in the order its threads finish
            for label in np.unique(labels):
                members = labels == label
                scores[members] = _along_the_centres(curves_NE[members])
        return scores


def _along_the_centres(curves_ME: np.ndarray) -> np.ndarray:
    from sklearn.cluster import KMeans

    ascending = curves_ME[np.lexsort(curves_ME.T)]  # so that the order of samples does not matter
    if len(ascending) < 2 or np.allclose(ascending[0], ascending, rtol=1e-9, atol=1e-12):
        return np.zeros(len(curves_ME))
    low, high = sorted(KMeans(2, n_init=10, random_state=0).fit(ascending).cluster_centers_, key=np.mean)
    to_low, to_high = (np.square(curves_ME - centre).sum(axis=1) for centre in (low, high))
    return (to_low - to_high) / np.square(high - low).sum()
