"""Intervals within a run: the right statistic, paired, repeatable, honest in coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from benchmark.statistics.bootstrap import _Places, bootstrap_auroc, interval


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 5))
def test_the_statistic_is_scikit_learns_auroc_also_with_heavy_ties(seed: int, n: int, levels: int) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, n).astype(float)
    is_mislabelled = np.arange(n) < max(1, n // 3)
    counts = generator.integers(0, 3, n)
    wrong, right = counts[is_mislabelled], counts[~is_mislabelled]
    if wrong.sum() and right.sum():
        place = _Places(scores[None, is_mislabelled], scores[None, ~is_mislabelled])
        (auroc,) = place.auroc(wrong, right)
        assert auroc == pytest.approx(roc_auc_score(is_mislabelled, scores, sample_weight=counts))


def test_it_repeats_itself_and_keeps_both_classes_in_every_draw() -> None:
    generator = np.random.default_rng(0)
    is_mislabelled = generator.random(200) < 0.1
    scores = generator.normal(size=(3, 200)) + is_mislabelled
    one, same = (bootstrap_auroc(is_mislabelled, scores, 50, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    assert one.shape == (3, 50)
    assert np.isfinite(one).all()
    perfect = bootstrap_auroc(is_mislabelled, is_mislabelled[None].astype(float), 50)
    assert (perfect == 1.0).all()


def test_differences_are_paired() -> None:
    """Two detectors that err on the same samples differ by far less than either is uncertain."""
    generator = np.random.default_rng(1)
    is_mislabelled = generator.random(500) < 0.2
    common = generator.normal(size=500) + is_mislabelled
    scores = np.stack([common, common + 0.01 * generator.normal(size=500)])
    drawn = bootstrap_auroc(is_mislabelled, scores, 300)
    alone, paired = np.diff(interval(drawn[0]))[0], np.diff(interval(drawn[0] - drawn[1]))[0]
    assert paired < alone / 10


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    truth = 0.7602  # of two normal distributions one apart: Φ(1 / √2)
    covered = 0
    for trial in range(100):
        is_mislabelled = np.arange(150) < 50
        scores = generator.normal(size=150) + is_mislabelled
        low, high = interval(bootstrap_auroc(is_mislabelled, scores[None], 200, trial)[0])
        covered += low <= truth <= high
    assert 88 <= covered <= 99
