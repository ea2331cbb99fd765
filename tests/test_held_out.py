"""Held-out predictions where classes are rare."""

import numpy as np
import pytest

from benchmark.statistics.held_out import held_out_probabilities


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
