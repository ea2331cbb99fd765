"""Which detector is better over data sets: a bootstrap over data sets, then pairs of seeds, then samples.

Within a run all detectors share their draws of samples (`bootstrap_auroc`), so differences between them are paired at
every level. Few data sets make wide intervals, as they should.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmark.seeds import numpy_generator
from benchmark.statistics.bootstrap import interval

DRAWS = 10_000
EQUIVALENT = 0.005  # AUROCs that differ by less are the same in practice
BETTER, WORSE, SAME, UNDECIDED = "better", "worse", "equivalent", "undecided"


class Difference(NamedTuple):
    mean: float
    low: float
    high: float
    probability: float  # that the first is better; a tie counts half
    verdict: str


def hierarchical_draws(aurocs_of_datasets: Sequence[np.ndarray], draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """Mean AUROC of each detector over redrawn data sets: detectors × draws.

    A data set is an array of pairs of seeds × detectors × draws of samples.
    """
    generator, count = numpy_generator(seed, "hierarchical bootstrap"), len(aurocs_of_datasets)
    chosen = generator.integers(0, count, (draws, count))
    total_TD = np.zeros((draws, aurocs_of_datasets[0].shape[1]))
    for number, aurocs_PDB in enumerate(aurocs_of_datasets):
        times_T = (chosen == number).sum(axis=1)
        pairs, _, samples = aurocs_PDB.shape
        for nth in range(times_T.max(initial=0)):
            rows = np.flatnonzero(times_T > nth)
            pair, sample = (generator.integers(0, most, (len(rows), pairs)) for most in (pairs, samples))
            total_TD[rows] += aurocs_PDB[pair, :, sample].mean(axis=1)
    return total_TD.T / count


def difference(one: np.ndarray, other: np.ndarray, margin: float = EQUIVALENT) -> Difference:
    """From draws of two detectors. The whole 95 % interval must be on one side of the margin, or inside it."""
    differences = one - other
    low, high = interval(differences)
    verdict = UNDECIDED
    if low > margin or high < -margin:
        verdict = BETTER if low > margin else WORSE
    elif -margin < low and high < margin:
        verdict = SAME
    probability = float((differences > 0).mean() + (differences == 0).mean() / 2)
    return Difference(float(differences.mean()), low, high, probability, verdict)


def rank_intervals(draws_DT: np.ndarray) -> list[tuple[float, float]]:
    """The middle 95 % of each detector's rank, 1 being the best."""
    from scipy.stats import rankdata

    ranks_DT = rankdata(-draws_DT, axis=0)
    return [interval(ranks) for ranks in ranks_DT]
