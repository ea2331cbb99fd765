"""Metrics: against scikit-learn's definition by hand, and the traps that peers fell into."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.noise import Samples, noise_named
from benchmark.statistics.metrics import (
    accuracy_metrics,
    batch_mean_accuracy,
    correction_metrics,
    detection_metrics,
    why_undefined,
)

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
    assert perfect["auroc"] == perfect["auprc"] == 1.0
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


@pytest.mark.parametrize("kind", ["symmetric", "symmetric-inclusive", "pair", "annotators"])
@pytest.mark.parametrize("classes", [2, 3, 11])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_perfect_and_inverted_detectors_under_every_noise(kind: str, classes: int, rate: float) -> None:
    clean = np.arange(600) % classes
    samples = Samples.of_labels(clean, classes)
    is_mislabelled = noise_named(kind).corrupt(samples, rate, 0).given["train"] != clean
    perfect = detection_metrics(is_mislabelled, is_mislabelled.astype(float))
    assert perfect["auroc"] == perfect["auprc"] == perfect["precision_at_rate"] == 1.0
    assert perfect["recall_20"] == pytest.approx(min(1.0, 0.2 / is_mislabelled.mean()))
    inverted = detection_metrics(is_mislabelled, -is_mislabelled.astype(float))
    assert inverted["auroc"] == 0.0
    assert inverted["auprc_chance"] == pytest.approx(is_mislabelled.mean())


def test_equal_scores_share_their_places() -> None:
    is_mislabelled = np.arange(100) < 30
    constant = detection_metrics(is_mislabelled, np.zeros(100))
    assert constant["auroc"] == 0.5
    assert constant["ties"] == 0.99
    assert constant["precision_at_rate"] == pytest.approx(0.3)
    assert [constant[f"recall_{budget}"] for budget in (1, 5, 10, 20)] == pytest.approx([0.01, 0.05, 0.1, 0.2])


def test_a_list_of_one_per_cent_is_what_a_reviewer_would_read() -> None:
    is_mislabelled = np.zeros(200, dtype=bool)
    is_mislabelled[[0, 1, 50]] = True
    scores = -np.arange(200.0)
    metrics = detection_metrics(is_mislabelled, scores)
    assert metrics["recall_1"] == pytest.approx(2 / 3)
    assert metrics["precision_at_rate"] == pytest.approx(2 / 3)
    assert metrics["ties"] == 0.0


def test_batch_means_are_the_papers_kind_of_accuracy() -> None:
    """BreastMNIST's 156 test images in batches of 128: (a / 128 + b / 28) / 2."""
    is_correct = np.zeros((1, 156), dtype=bool)
    is_correct[0, :100], is_correct[0, 128:149] = True, True
    assert batch_mean_accuracy(is_correct, 128)[0] == pytest.approx((100 / 128 + 21 / 28) / 2)
    assert batch_mean_accuracy(is_correct, 156)[0] == pytest.approx(121 / 156)


def test_linc_as_a_corrector() -> None:
    clean, given = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 0, 2, 2])
    corrected, component = np.array([0, 0, 1, 2, 2, 1]), np.array([2, 0, 1, 0, 1, 0])
    found = correction_metrics(given, clean, corrected, component)
    assert found["noisy_share"] == 0.5
    assert found["noisy_precision"] == pytest.approx(2 / 3)
    assert found["noisy_recall"] == 1.0
    assert found["ambiguous_share"] == pytest.approx(1 / 3)
    assert found["corrected"] == 3
    assert found["corrected_right"] == pytest.approx(1 / 3)
    assert found["label_accuracy_before"] == pytest.approx(4 / 6)
    assert found["label_accuracy_after"] == pytest.approx(4 / 6)
