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
    """How sure it is; the difference itself is that of the AUROCs, not the mean of their draws."""

    low: float
    high: float
    probability: float  # that the first is better; a tie counts half
    verdict: str


def hierarchical_draws(
    datasets: Sequence[Sequence[np.ndarray]], by_rank: bool = False, draws: int = DRAWS, seed: int = 0
) -> np.ndarray:
    """Mean AUROC of each detector over redrawn data sets, or its mean rank (1 is the best): detectors × draws.

    A data set has one or more settings, such as two networks, each an array of pairs of seeds × detectors × draws of
    samples. They have the same wrong labels, so the same pairs and samples are drawn for all of them.
    """
    from scipy.stats import rankdata

    generator, count = numpy_generator(seed, "hierarchical bootstrap"), len(datasets)
    chosen = generator.integers(0, count, (draws, count))
    total_TD = np.zeros((draws, datasets[0][0].shape[1]))
    for number, settings in enumerate(datasets):
        times_T, most = (chosen == number).sum(axis=1), max(map(len, settings))
        for nth in range(times_T.max(initial=0)):
            rows = np.flatnonzero(times_T > nth)
            pair, sample = generator.random((2, len(rows), most))
            for aurocs_PDB in settings:
                pairs, _, samples = aurocs_PDB.shape
                drawn = (pair[:, :pairs] * pairs).astype(int), (sample[:, :pairs] * samples).astype(int)
                mean_TD = aurocs_PDB[drawn[0], :, drawn[1]].mean(axis=1)
                total_TD[rows] += (rankdata(-mean_TD, axis=1) if by_rank else mean_TD) / len(settings)
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
    return Difference(low, high, probability, verdict)
