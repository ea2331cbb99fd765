"""Uncertainty within a run: a paired, stratified bootstrap of the AUROC over samples.

Mislabelled and correct samples are drawn with replacement, each from their own; all detectors face the same draws, so
that differences between them have intervals of their own.
"""

import numpy as np

from benchmark.seeds import numpy_generator

DRAWS = 1000


def bootstrap_auroc(is_mislabelled: np.ndarray, scores_DN: np.ndarray, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """The AUROC of each detector in each draw: detectors × draws, ties counted half."""
    wrong, right = np.flatnonzero(is_mislabelled), np.flatnonzero(~is_mislabelled)
    places = [_Places(scores[wrong], scores[right]) for scores in scores_DN]
    generator = numpy_generator(seed, "bootstrap")
    aurocs = np.empty((len(scores_DN), draws))
    for draw in range(draws):
        times_wrong, times_right = _times_drawn(generator, len(wrong)), _times_drawn(generator, len(right))
        aurocs[:, draw] = [place.auroc(times_wrong, times_right) for place in places]
    return aurocs


class _Places:
    """Where each mislabelled sample's score stands among those of the correct ones; the same in every draw."""

    def __init__(self, wrong_scores: np.ndarray, right_scores: np.ndarray) -> None:
        self.order = np.argsort(right_scores, kind="stable")
        ascending = right_scores[self.order]
        self.below = np.searchsorted(ascending, wrong_scores, side="left")
        self.up_to = np.searchsorted(ascending, wrong_scores, side="right")

    def auroc(self, times_wrong: np.ndarray, times_right: np.ndarray) -> float:
        """From how often each sample was drawn: the share of pairs in which the mislabelled one scores higher."""
        passed = np.zeros(len(times_right) + 1, dtype=np.int32)
        np.cumsum(times_right[self.order], out=passed[1:], dtype=np.int32)
        beaten_twice = times_wrong @ (passed[self.below] + passed[self.up_to]).astype(np.int64)
        return float(beaten_twice) / (2.0 * int(times_wrong.sum()) * int(times_right.sum()))


def _times_drawn(generator: np.random.Generator, samples: int) -> np.ndarray:
    return np.bincount(generator.integers(0, samples, samples), minlength=samples)


def interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95 %."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
