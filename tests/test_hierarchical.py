"""The bootstrap over data sets, pairs of seeds and samples: where its spread comes from, and its verdicts."""

import numpy as np
import pandas as pd
import pytest

from benchmark.statistics.bootstrap import interval
from benchmark.statistics.comparisons import against_reference, compared, why_no_tests
from benchmark.statistics.hierarchical import difference, hierarchical_draws


def made_up(effect: float, datasets: int = 5, between: float = 0.0, pairs: float = 0.0, samples: float = 0.0):
    """Two detectors; the second is ahead by `effect`, more or less in each data set, pair of seeds and draw."""
    generator = np.random.default_rng(0)
    arrays = []
    for _ in range(datasets):
        first = 0.8 + 0.05 * generator.normal() + 0.01 * generator.normal(size=(4, 1)) + np.zeros((4, 200))
        ahead = effect + between * generator.normal() + pairs * generator.normal(size=(4, 1))
        arrays.append([np.stack([first, first + ahead + samples * generator.normal(size=(4, 200))], axis=1)])
    return arrays


def test_a_constant_difference_has_no_spread_although_data_sets_differ() -> None:
    first, second = hierarchical_draws(made_up(0.02))
    assert first.std() > 0.01
    found = difference(second, first)
    assert (found.low, found.high) == pytest.approx((0.02, 0.02))
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
            arrays.append([np.stack([np.zeros((3, 50)), ahead + 0.005 * generator.normal(size=(3, 50))], axis=1)])
        first, second = hierarchical_draws(arrays, draws=500, seed=trial)
        found = difference(second, first)
        covered += found.low <= 0.01 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_ranks_have_intervals() -> None:
    """The first is always the best; the other two change places from pair to pair."""
    aurocs_PDB = np.repeat([[[0.9], [0.8], [0.7]], [[0.9], [0.7], [0.8]]], 5, axis=2)
    ranks = hierarchical_draws([[aurocs_PDB], [aurocs_PDB]], by_rank=True, draws=500)
    assert [interval(draws) for draws in ranks] == [(1, 1), (2, 3), (2, 3)]


def test_settings_of_a_data_set_share_what_is_drawn_and_weigh_together_as_much_as_another_data_set() -> None:
    """So two networks on the same wrong labels are not two independent pieces of evidence."""
    (one,), (other,) = made_up(0.0, 2, pairs=0.02)
    plain, twice = (hierarchical_draws(datasets, draws=4000) for datasets in ([[one], [other]], [[one] * 2, [other]]))
    assert np.ptp(plain, axis=0).std() == pytest.approx(np.ptp(twice, axis=0).std(), rel=0.05)
    assert plain.mean() == pytest.approx(twice.mean(), abs=0.002)


def test_the_same_seed_gives_the_same_draws() -> None:
    arrays = made_up(0.01, samples=0.01)
    assert np.array_equal(hierarchical_draws(arrays, draws=50), hierarchical_draws(arrays, draws=50))
    assert not np.array_equal(hierarchical_draws(arrays, draws=50), hierarchical_draws(arrays, draws=50, seed=1))


def drawn(auroc_of: dict[str, float], datasets: int = 3, pairs: int = 3, draws: int = 10) -> pd.DataFrame:
    """Rows of the table of draws, in which all detectors vary together."""
    generator = np.random.default_rng(0)
    shared = 0.02 * generator.normal(size=(datasets, pairs, draws))
    return pd.DataFrame(
        {
            "dataset": f"d{at[0]}",
            "setting": f"s{at[0]}",
            "noise_seed": at[1],
            "training_seed": at[1],
            "run": f"{at[:2]}",
        }
        | {"detector": name, "auroc": round(1e4 * (auroc + error))}
        for name, auroc in auroc_of.items()
        for at, error in np.ndenumerate(shared)
    )


def test_rows_are_compared_in_pairs_although_data_sets_seeds_and_samples_vary() -> None:
    rows = drawn({"LiNC": 0.85, "AUM": 0.87, "EL2N": 0.852, "VoG": 0.7})
    verdicts = {name: other.verdict for name, other in against_reference(rows).items()}
    assert verdicts == {"AUM": "better", "EL2N": "equivalent", "VoG": "worse"}
    found = compared(rows)
    assert found is not None
    assert found.rank_intervals()["AUM"] == (1, 1)
    assert found.difference("AUM", "VoG").low == pytest.approx(0.17, abs=1e-3)


def test_only_detectors_that_were_measured_wherever_the_reference_was_are_compared() -> None:
    rows = drawn({"LiNC": 0.85, "AUM": 0.87, "EL2N": 0.852})
    less = rows[(rows["detector"] != "EL2N") | (rows["noise_seed"] != 1)]
    assert set(against_reference(less)) == {"AUM"}
    waiting = rows[(rows["detector"] != "LiNC") | (rows["noise_seed"] != 1)]  # whose run is not done
    assert set(against_reference(waiting)) == {"AUM", "EL2N"}
    assert against_reference(rows[rows["detector"] != "LiNC"]) == {}
    assert compared(rows[:0]) is None


def test_a_test_over_data_sets_needs_ten_of_them() -> None:
    rows = drawn({"LiNC": 0.85}, datasets=10)
    assert why_no_tests(rows) == []
    (sentence,) = why_no_tests(rows[rows["dataset"] < "d5"])
    assert "with 5 there is none" in sentence
