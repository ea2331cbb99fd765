"""The bootstrap over data sets, pairs of seeds and samples: where its spread comes from, and its verdicts."""

import numpy as np
import pytest

from benchmark.statistics.hierarchical import difference, hierarchical_draws, rank_intervals


def made_up(effect: float, datasets: int = 5, between: float = 0.0, pairs: float = 0.0, samples: float = 0.0):
    """Two detectors; the second is ahead by `effect`, more or less in each data set, pair of seeds and draw."""
    generator = np.random.default_rng(0)
    arrays = []
    for _ in range(datasets):
        first = 0.8 + 0.05 * generator.normal() + 0.01 * generator.normal(size=(4, 1)) + np.zeros((4, 200))
        ahead = effect + between * generator.normal() + pairs * generator.normal(size=(4, 1))
        arrays.append(np.stack([first, first + ahead + samples * generator.normal(size=(4, 200))], axis=1))
    return arrays


def test_a_constant_difference_has_no_spread_although_data_sets_differ() -> None:
    first, second = hierarchical_draws(made_up(0.02))
    assert first.std() > 0.01
    found = difference(second, first)
    assert (found.low, found.mean, found.high) == pytest.approx((0.02, 0.02, 0.02))
    assert found.probability == 1
    assert found.verdict == "better"
    assert difference(first, second).verdict == "worse"


@pytest.mark.parametrize("level", ["between", "pairs", "samples"])
def test_every_level_adds_to_the_spread_as_theory_says(level: str) -> None:
    datasets, spread = 40, 0.02
    first, second = hierarchical_draws(made_up(0.0, datasets, **{level: spread}), draws=4000)
    units = {"between": datasets, "pairs": datasets * 4, "samples": datasets * 4}[level]
    assert (second - first).std() == pytest.approx(spread / np.sqrt(units), rel=0.35)


def test_verdicts() -> None:
    generator = np.random.default_rng(0)

    def verdict(mean: float, spread: float) -> str:
        return difference(mean + spread * generator.normal(size=5000), np.zeros(5000)).verdict

    assert verdict(0.0, 0.001) == "equivalent"
    assert verdict(0.003, 0.0005) == "equivalent"
    assert verdict(0.0, 0.01) == "undecided"
    assert verdict(0.006, 0.001) == "undecided"
    assert verdict(0.01, 0.001) == "better"
    assert verdict(-0.01, 0.001) == "worse"
    assert difference(np.zeros(10), np.zeros(10)).probability == 0.5


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Data sets drawn at random; few of them, so a little less often than 95 % is allowed, as for any bootstrap."""
    generator, covered = np.random.default_rng(3), 0
    for trial in range(200):
        arrays = []
        for _ in range(12):
            ahead = 0.01 + 0.01 * generator.normal() + 0.005 * generator.normal(size=(3, 1))
            arrays.append(np.stack([np.zeros((3, 50)), ahead + 0.005 * generator.normal(size=(3, 50))], axis=1))
        first, second = hierarchical_draws(arrays, draws=500, seed=trial)
        found = difference(second, first)
        covered += found.low <= 0.01 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_ranks_have_intervals() -> None:
    draws = np.array([[0.9] * 100, [0.8, 0.7] * 50, [0.7, 0.8] * 50])
    assert rank_intervals(draws) == [(1, 1), (2, 3), (2, 3)]


def test_the_same_seed_gives_the_same_draws() -> None:
    arrays = made_up(0.01, samples=0.01)
    assert np.array_equal(hierarchical_draws(arrays, 50), hierarchical_draws(arrays, 50))
    assert not np.array_equal(hierarchical_draws(arrays, 50), hierarchical_draws(arrays, 50, seed=1))
