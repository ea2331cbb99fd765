"""Held-out predictions where classes are rare."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from benchmark.statistics import held_out
from benchmark.statistics.held_out import cross_validated, held_out_probabilities, stratified_folds
from benchmark.statistics.mixture import fit_mixture


@pytest.mark.parametrize("counts", [[40, 20, 3], [40, 20, 1], [40, 1], [40, 2]])
def test_a_class_that_is_missing_outside_a_fold_has_no_probability_there(counts: list[int]) -> None:
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(counts)), counts)
    features = generator.normal(size=(len(labels), 8)) + 6 * np.eye(8)[labels]
    probabilities = held_out_probabilities(features, labels, len(counts) + 1)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities[:, -1] == 0).all(), "no sample has the last class"
    only = np.flatnonzero(np.array(counts) == 1)
    for label in only:
        assert (probabilities[labels == label, label] == 0).all(), "nobody saw it"
    assert (probabilities[labels == 0].argmax(axis=1) == 0).mean() > 0.9


def test_the_advice_of_libraries_is_not_shown() -> None:
    """On classes with a sample or two, on features that are all the same, and by fits that need more steps."""
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(60, 20)), np.arange(60) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held_out_probabilities(features, np.arange(60) % 40, 40)
        held_out_probabilities(np.zeros((60, 20)), labels, 2)
        cross_validated([(LogisticRegression(max_iter=1), features)], labels, 2, np.arange(60) % 5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(GaussianMixture.__init__.__kwdefaults__, "max_iter", 1)
            fit_mixture(features[:, 0], 3)


@given(
    arrays(np.int64, st.integers(2, 40), elements=st.integers(0, 4)),
    st.integers(1, 8),
    st.integers(2, 5),
    st.integers(0, 3),
)
def test_folds_keep_groups_together_whatever_labels_and_groups_are(
    labels: np.ndarray, most: int, folds: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    groups = generator.integers(0, most, len(labels)) * 7
    fold = stratified_folds(labels, groups, folds, np.random.default_rng(seed))
    assert (fold == stratified_folds(labels, groups, folds, np.random.default_rng(seed))).all()
    assert 2 <= len(np.unique(fold)) <= folds, "someone is left to learn from"
    if len(np.unique(groups)) > 1:
        assert all(len(np.unique(fold[groups == group])) == 1 for group in groups)


def test_folds_are_stratified_shuffled_and_even() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [100, 50, 10]))
    pairs = np.arange(160)
    pairs[1:40:2] -= 1  # twenty pairs of duplicates
    for groups in (None, pairs):
        fold = stratified_folds(labels, groups, 5, np.random.default_rng(0))
        counts = np.stack([np.bincount(labels[fold == number], minlength=3) for number in range(5)])
        assert (np.abs(counts - [20, 10, 2]) <= 1).all()
        assert (fold != stratified_folds(labels, groups, 5, np.random.default_rng(1))).mean() > 0.5


def test_duplicates_are_not_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random features and labels, each sample twice: only who has seen the other knows its label."""
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(100, 8)).repeat(2, axis=0), generator.integers(0, 2, 100).repeat(2)
    monkeypatch.setattr(held_out, "NEIGHBOURS", 1)
    of_label = [
        held_out_probabilities(features, labels, 2, groups_N=groups)[np.arange(200), labels].mean()
        for groups in (None, np.arange(100).repeat(2))
    ]
    assert of_label[0] > 0.57
    assert of_label[1] < 0.53
