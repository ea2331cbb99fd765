"""Planted errors: which are planted, what they teach, and whether p_wrong is calibrated where its assumption holds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, logit
from scipy.stats import rankdata

from benchmark.audit import planted
from benchmark.audit.audited_data import AuditedData
from benchmark.audit.planted import Curve, choose_weights, features, fit_curve, judge, plant, reliability

SAMPLES = 3000
LABELS = arrays(np.int64, st.integers(1, 400), elements=st.integers(0, 4))
SCORES = arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0]))


@given(LABELS, st.integers(0, 3))
def test_few_labels_are_flipped_and_every_class_keeps_a_sample(labels: np.ndarray, seed: int) -> None:
    before, probabilities = labels.copy(), np.random.default_rng(seed).dirichlet(np.ones(5), len(labels))
    new, is_planted = plant(labels, probabilities, seed)
    assert (labels == before).all(), "the given labels are the user's"
    np.testing.assert_array_equal(new != labels, is_planted)
    most = min(max(round(0.03 * len(labels)), 50), len(labels) // 10)
    assert most - len(np.unique(labels)) < is_planted.sum() <= most or is_planted.sum() == most
    assert set(new) >= set(labels)
    assert new.min() >= 0
    assert new.max() < 5
    again, is_again = plant(labels, probabilities, seed)
    assert (again == new).all()
    assert (is_again == is_planted).all()


def test_half_of_them_become_the_class_they_are_confused_with() -> None:
    generator = np.random.default_rng(0)
    labels, probabilities = generator.integers(0, 10, 4000), generator.dirichlet(np.ones(10), 4000)
    new, is_planted = plant(labels, probabilities, 0)
    confused = [
        max((probability, label) for label, probability in enumerate(row) if label != given)[1]
        for row, given in zip(probabilities, labels, strict=True)
    ]
    assert is_planted.sum() == 120
    assert (new == confused)[is_planted].mean() == pytest.approx(0.5 + 0.5 / 9, abs=0.06), "others by chance"
    assert (plant(labels, probabilities, 1)[1] != is_planted).any()


@given(SCORES, SCORES)
def test_features_are_average_ranks_among_the_reference(scores: np.ndarray, reference: np.ndarray) -> None:
    slow = [(sum(r > s for r in reference) + sum(r == s for r in reference) / 2 + 0.5) for s in scores]
    found = features({"a": scores}, {"a": reference})[:, 0]
    np.testing.assert_allclose(found, -np.log(np.array(slow) / (len(reference) + 1)))
    own = features({"a": scores}, {"a": scores})[:, 0]
    np.testing.assert_allclose(own, -np.log(rankdata(-scores) / (len(scores) + 1)))


def made_up(
    wrong_share: float, seed: int, gap: float = 3.0
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Scores of both trainings by two detectors; which are planted and which wrong. Both kinds of errors look alike."""
    generator = np.random.default_rng(seed)
    is_wrong = generator.random(SAMPLES) < wrong_share
    is_planted = np.zeros(SAMPLES, dtype=bool)
    is_planted[generator.choice(np.flatnonzero(~is_wrong), 90, replace=False)] = True

    def scores(is_odd: np.ndarray) -> dict[str, np.ndarray]:
        return {name: generator.normal(gap * is_odd, 1) for name in ("one", "other")}

    return scores(is_wrong), scores(is_wrong | is_planted), is_planted, is_wrong


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("wrong_share", "gap"), [(0.05, 3.0), (0.1, 3.0), (0.1, 1.5), (0.3, 3.0)])
def test_p_wrong_is_calibrated_if_wrong_labels_are_like_planted_ones(wrong_share: float, gap: float, seed: int) -> None:
    scores, planted_scores, is_planted, is_wrong = made_up(wrong_share, seed, gap)
    chance = judge(scores, planted_scores, is_planted, seed).p_wrong
    bins = np.array_split(np.argsort(chance), 20)
    error = sum(len(own) * abs(chance[own].mean() - is_wrong[own].mean()) for own in bins) / SAMPLES
    assert error < 0.05
    assert chance[is_wrong].mean() > 4 * chance[~is_wrong].mean()


@pytest.mark.parametrize("seed", range(3))
def test_where_all_labels_are_right_hardly_any_is_called_wrong(seed: int) -> None:
    found = judge(*made_up(0.0, seed, gap=4.0)[:3], seed)
    assert found.p_wrong.mean() < 0.02
    assert (found.p_wrong > 0.5).mean() < 0.01
    assert found.in_first > 0.7 * found.count, "planted errors are found: it is no blindness"


def test_the_order_of_the_list_is_that_of_p_wrong() -> None:
    found = judge(*made_up(0.1, 0)[:3], 0)
    assert (np.diff(found.p_wrong[np.argsort(found.score, kind="stable")]) >= 0).all()
    assert found.p_wrong.min() >= 0
    assert found.p_wrong.max() <= 1


def test_a_random_detector_has_no_weight_and_good_ones_keep_theirs() -> None:
    scores, planted_scores, is_planted, _ = made_up(0.1, 0, gap=2.0)
    generator = np.random.default_rng(1)
    noise = [{"random": generator.random(SAMPLES)} for _ in range(2)]
    weights = judge(scores | noise[0], planted_scores | noise[1], is_planted, 0).weights
    assert weights["random"] < 0.1
    assert min(weights["one"], weights["other"]) > 0.35
    assert sum(weights.values()) == pytest.approx(1)


def test_weights_are_equal_unless_fitted_ones_find_more() -> None:
    generator = np.random.default_rng(0)
    is_planted = np.arange(400) < 20
    weights, scores = choose_weights(np.ones((400, 4)), is_planted, generator.integers(0, 5, 400))
    assert (weights == 0.25).all()
    assert (scores == 1).all()


def slow_posterior(curve: Curve, scores: np.ndarray, is_planted: np.ndarray) -> float:
    per_other = is_planted.sum() / (~is_planted).sum()
    total = -(((logit(curve.share) - logit(0.05)) / 1.3) ** 2) / 2
    for score, is_one in zip(scores, is_planted, strict=True):
        chance = per_other / (per_other + curve.share + np.exp(curve.offset - curve.slope * score))
        total += np.log(chance if is_one else 1 - chance)
    return float(total)


def test_the_curve_is_the_most_likely_one() -> None:
    _, planted_scores, is_planted, _ = made_up(0.1, 0)
    scores = planted_scores["one"]
    curve = fit_curve(scores, is_planted)
    best = slow_posterior(curve, scores, is_planted)
    for change in (-0.1, 0.1):
        for other in (
            replace(curve, share=float(expit(logit(curve.share) + change))),
            replace(curve, offset=curve.offset + change),
            replace(curve, slope=curve.slope + change),
            replace(curve, slope=curve.slope + change, offset=curve.offset + 2 * change),
        ):
            assert slow_posterior(other, scores, is_planted) < best


def test_the_sentence_counts_planted_errors_at_the_top() -> None:
    is_planted = np.array([True, True, True, False, False, False, False, False])
    assert planted.found_in_list(is_planted, np.array([0, 3, 1, 4, 5, 2, 6, 7])) == (2, 3)
    found = replace(judge(*made_up(0.0, 0)[:3], 0), count=54, in_first=41, in_twice=51)
    said = "41 of them are among the first 54 of its list (by chance: 1), 51 among the first 108."
    assert found.sentence == f"Check: 54 labels were made wrong in a copy; {said}"
    assert "p_wrong" not in found.as_json


def test_reliability_tells_right_chances_from_wrong_ones() -> None:
    generator = np.random.default_rng(0)
    chance = generator.beta(0.3, 3, 5000)
    is_planted = generator.random(5000) < chance
    rows, error = reliability(chance, is_planted)
    assert sum(row["samples"] for row in rows) == 5000
    assert sum(row["samples"] * row["planted"] for row in rows) == pytest.approx(is_planted.sum())
    expected = [row["samples"] * row["predicted"] for row in rows]
    assert max(expected) < 1.2 * min(expected), "bins expect as many"
    assert error < 0.02
    assert reliability(chance**2, is_planted)[1] > 0.02
    assert reliability(np.full(100, 0.3), np.arange(100) < 20)[1] >= 0.1 - 1e-9


def data_of(labels: np.ndarray) -> AuditedData:
    ids = tuple(map(str, range(len(labels))))
    return AuditedData(Path("x.npz"), "x", "own", "pixels", ids, ("a", "b"), labels, np.zeros((len(labels), 4, 4)))


def test_the_planted_training_has_an_identity_of_its_own_and_few_data_have_none() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 240)
    seen: list[AuditedData] = []

    def score(copy: AuditedData) -> dict[str, np.ndarray]:
        seen.append(copy)
        return {"one": generator.normal(copy.labels != labels, 1)}

    for probabilities in (np.full((240, 2), 0.5), generator.dirichlet(np.ones(2), 240)):
        about = data_of(labels), {"one": generator.normal(size=240)}, probabilities
        assert planted.judge_by_planted_errors(*about, 0, score) is not None
    assert planted.judge_by_planted_errors(*about, 1, score) is not None
    assert [(copy.labels != labels).sum() for copy in seen] == [24, 24, 24]
    assert seen[0].identity == seen[1].identity, "two classes: the same flips"
    assert len({"own", *(copy.identity for copy in seen)}) == 3
    few = data_of(labels[:199]), {"one": generator.normal(size=199)}, probabilities[:199]
    assert planted.judge_by_planted_errors(*few, 0, score) is None
    assert len(seen) == 3, "nothing is trained"
