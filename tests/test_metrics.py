"""Metrics: against scikit-learn's definition by hand, and the traps that peers fell into."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.metrics import accuracy_metrics, detection_metrics, why_undefined

truth_and_scores = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=60).filter(
    lambda rows: len({truth for truth, _ in rows}) == 2
)


@given(truth_and_scores)
def test_auroc_counts_pairs_and_ties_half(rows) -> None:
    truth, scores = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=float)
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[truth] for n in scores[~truth]]
    assert detection_metrics(truth, scores)["auroc"] == pytest.approx(np.mean(pairs))


def test_mislabelled_is_the_positive_class() -> None:
    """H-CAT scores clean as positive with the sign not flipped: the same information then scores 0.77 or 0.99."""
    truth = np.arange(100) < 20
    perfect = detection_metrics(truth, truth.astype(float))
    assert perfect == {"auroc": 1.0, "auprc": 1.0}
    inverted = detection_metrics(truth, 1 - truth.astype(float))
    assert inverted["auroc"] == 0.0
    assert inverted["auprc"] == pytest.approx(0.2, abs=1e-9), "all tied or wrong: the noise rate is chance"


def test_detection_is_undefined_without_both_kinds() -> None:
    assert "nothing to detect" in str(why_undefined(np.zeros(5, bool)))
    assert "nothing to tell apart" in str(why_undefined(np.ones(5, bool)))
    assert why_undefined(np.array([True, False])) is None


def test_accuracies_are_chosen_by_the_named_labels() -> None:
    test = np.array([0.5, 0.9, 0.8, 0.7])
    noisy, clean = np.array([0.4, 0.5, 0.6, 0.6]), np.array([0.9, 0.6, 0.5, 0.5])
    assert accuracy_metrics(test, noisy, clean) == {
        "best_test": 0.9,
        "last_test": 0.7,
        "test_by_noisy_validation": 0.8,
        "test_by_clean_validation": 0.5,
    }
