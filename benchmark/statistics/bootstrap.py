"""Uncertainty within a run: a paired, stratified bootstrap of the AUROC over samples.

Mislabelled and correct samples are drawn with replacement, each from their own; all detectors face the same draws, so
that differences between them have intervals of their own.
"""

import numpy as np

from benchmark.seeds import numpy_generator

DRAWS = 1000


def bootstrap_auroc(is_mislabelled: np.ndarray, scores_DN: np.ndarray, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """The AUROC of each detector in each draw: detectors × draws, ties counted half."""
    wrong_DW, right_DR = scores_DN[:, is_mislabelled], scores_DN[:, ~is_mislabelled]
    places, generator = _Places(wrong_DW, right_DR), numpy_generator(seed, "bootstrap")
    aurocs = np.empty((len(scores_DN), draws))
    for draw in range(draws):
        times_wrong = _times_drawn(generator, wrong_DW.shape[1])
        aurocs[:, draw] = places.auroc(times_wrong, _times_drawn(generator, right_DR.shape[1]))
    return aurocs


class _Places:
    """Where each mislabelled sample's score stands among those of the correct ones; the same in every draw."""

    def __init__(self, wrong_DW: np.ndarray, right_DR: np.ndarray) -> None:
        self.order_DR = np.argsort(right_DR, axis=1, kind="stable")
        ascending_DR = np.take_along_axis(right_DR, self.order_DR, axis=1)
        self.passed_DR = np.zeros((len(right_DR), right_DR.shape[1] + 1), dtype=np.int32)
        starts = self.passed_DR.shape[1] * np.arange(len(right_DR))  # of the rows of `passed_DR`, laid end to end
        rows = list(zip(starts, ascending_DR, wrong_DW, strict=True))
        self.below_DW, self.up_to_DW = (
            np.stack([start + np.searchsorted(right, wrong, side) for start, right, wrong in rows])
            for side in ("left", "right")
        )

    def auroc(self, times_wrong: np.ndarray, times_right: np.ndarray) -> np.ndarray:
        """From how often each sample was drawn: the share of pairs in which the mislabelled one scores higher."""
        np.cumsum(times_right[self.order_DR], axis=1, out=self.passed_DR[:, 1:], dtype=np.int32)
        passed = self.passed_DR.ravel()
        beaten_twice = (passed[self.below_DW] + passed[self.up_to_DW]).astype(np.int64) @ times_wrong
        return beaten_twice / (2.0 * int(times_wrong.sum()) * int(times_right.sum()))


def _times_drawn(generator: np.random.Generator, samples: int) -> np.ndarray:
    return np.bincount(generator.integers(0, samples, samples), minlength=samples)


def interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95 %."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
