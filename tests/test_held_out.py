"""Held-out predictions where classes are rare."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from benchmark.statistics.held_out import cross_validated, held_out_probabilities
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
        cross_validated([(LogisticRegression(max_iter=1), features)], labels, 2, generator)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(GaussianMixture.__init__.__kwdefaults__, "max_iter", 1)
            fit_mixture(features[:, 0], 3)
