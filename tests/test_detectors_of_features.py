"""Detectors that read features, and what they rest on: each formula once more, slowly."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from benchmark.errors import LincBenchError
from benchmark.record import EMBEDDING, CheckpointGradientNorms, Embedding, EvalLogits, RunRecord
from benchmark.statistics import neighbours
from benchmark.statistics.neighbours import Index, nearest_others, unit_rows
from benchmark.statistics.transition import estimate_transition
from detectors import Detector
from detectors.combined import Combined
from detectors.confident_learning import HELD_OUT_LOGITS
from detectors.cores import CORES
from detectors.ctrl import CTRL
from detectors.data_oob import DataOOB
from detectors.el2n import EL2N
from detectors.fine import FINE
from detectors.linc import LiNC
from detectors.margins import GivenMargin, GivenProbability
from detectors.mean_loss import LastLoss, MeanLoss
from detectors.relation_graph import RelationGraph
from detectors.selfclean import SelfClean
from detectors.simifeat import SimiFeatR, SimiFeatV
from detectors.testing import check_detector
from detectors.tracin import TracIn

N, CLASSES, EPOCHS = 60, 3, 12


def clustered(n: int = N, wrong: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points around one centre per class, given labels of which some are wrong, and which."""
    generator = np.random.default_rng(seed)
    clean = np.arange(n) % CLASSES
    points = 4 * np.eye(CLASSES, 5)[clean] + generator.normal(size=(n, 5))
    is_wrong = generator.permutation(n) < wrong * n
    given = np.where(is_wrong, (clean + generator.integers(1, CLASSES, n)) % CLASSES, clean)
    return points.astype(np.float32), given, is_wrong


def record_of(**signals: np.ndarray) -> RunRecord:
    return RunRecord(clustered()[1], CLASSES, EPOCHS, signals)


def logits() -> np.ndarray:
    points, given, is_wrong = clustered()
    clean = np.where(is_wrong, points[:, :CLASSES].argmax(1), given)
    grown = np.linspace(0.5, 3, EPOCHS)[:, None, None] * np.eye(CLASSES)[clean]
    return grown + np.random.default_rng(1).normal(0, 0.5, (EPOCHS, N, CLASSES))


def softmax(z: np.ndarray) -> np.ndarray:
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


POINTS, GIVEN, IS_WRONG = clustered()
ON_FEATURES = RunRecord(GIVEN, CLASSES, EPOCHS, {EMBEDDING.key: POINTS})


def nearest(i: int, k: int) -> list[int]:
    return sorted((j for j in range(N) if j != i), key=lambda j: -cosine(POINTS[i], POINTS[j]))[:k]


def test_simifeat_v_is_the_lead_of_the_most_voted_other_label() -> None:
    scores = SimiFeatV(k=7).score(ON_FEATURES)
    for i in range(N):
        votes = np.bincount(GIVEN[nearest(i, 7)], minlength=CLASSES) / 7
        others = max(votes[k] for k in range(CLASSES) if k != GIVEN[i])
        assert scores[i] == pytest.approx(others - votes[GIVEN[i]])
    assert (scores > 0)[IS_WRONG].mean() > 0.9 > 0.1 > (scores > 0)[~IS_WRONG].mean()
    assert len(np.unique(scores)) == len(np.unique(scores.round(9))), "equal votes are equal scores"


def test_simifeat_r_ranks_within_a_label_and_flags_the_share_that_hoc_estimates() -> None:
    cosines = np.empty(N)
    for i in range(N):
        votes = np.bincount(GIVEN[nearest(i, 10)], minlength=CLASSES)
        cosines[i] = cosine(votes, np.eye(CLASSES)[GIVEN[i]])
    np.testing.assert_allclose(SimiFeatR(thresholds=False).score(ON_FEATURES), -cosines, atol=1e-12)
    pairs = np.array([nearest(i, 2) for i in range(N)])
    wrong_share = estimate_transition(GIVEN, pairs, CLASSES).wrong_share
    flagged = SimiFeatR().score(ON_FEATURES) > -1
    for label in range(CLASSES):
        members = label == GIVEN
        share = rankdata(cosines[members].round(9)) / members.sum()  # the lowest cosine first
        assert (flagged[members] == (share < wrong_share[label])).all()


@pytest.mark.parametrize("asymmetric", [False, True])
def test_hoc_finds_the_transition_matrix_without_a_correct_label(asymmetric: bool) -> None:
    generator, n = np.random.default_rng(0), 30_000
    prior = np.array([0.5, 0.3, 0.2])
    chances = np.array([[0.8, 0.15, 0.05], [0.05, 0.9, 0.05], [0.2, 0.1, 0.7]])
    if not asymmetric:
        chances = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    clean = np.sort(generator.choice(3, n, p=prior))
    given = np.array([generator.choice(3, p=chances[label]) for label in clean])
    at = np.arange(n)
    pairs = np.stack([np.clip(at + step, 0, n - 1) for step in (1, 2)], axis=1)  # of the same class
    found = estimate_transition(given, pairs, 3)
    np.testing.assert_allclose(found.chances, chances, atol=0.02)
    np.testing.assert_allclose(found.prior, prior, atol=0.02)
    wrong = [(clean != label)[given == label].mean() for label in range(3)]
    np.testing.assert_allclose(found.wrong_share, wrong, atol=0.03)


def test_selfclean_compares_the_nearest_of_the_same_and_of_another_label() -> None:
    scores = SelfClean().score(ON_FEATURES)
    for i in range(N):
        same, other = (
            min(1 - cosine(POINTS[i], POINTS[j]) for j in range(N) if j != i and (GIVEN[j] == GIVEN[i]) == is_same)
            for is_same in (True, False)
        )
        assert scores[i] == pytest.approx(same**2 / (same**2 + other**2), rel=1e-2, abs=1e-4)  # single precision


def test_fine_is_the_misalignment_with_the_first_singular_vector_of_the_label() -> None:
    record = RunRecord(GIVEN, CLASSES, EPOCHS, {Embedding(10).key: POINTS})
    scores = FINE(mixture=False).score(record)
    for i in range(N):
        direction = np.linalg.svd(POINTS[GIVEN[i] == GIVEN].astype(float))[2][0]
        assert scores[i] == pytest.approx(1 - cosine(POINTS[i].astype(float), direction) ** 2, abs=1e-6)
    posterior = FINE().score(record)
    for label in range(CLASSES):
        order = np.argsort(scores[label == GIVEN])
        assert (np.diff(posterior[label == GIVEN][order]) >= 0).all(), "the mixture keeps the order within a label"


def test_tracin_is_the_sum_of_squared_norms_by_the_learning_rate() -> None:
    signal = CheckpointGradientNorms(4)
    assert signal.epochs_of(12) == [3, 6, 9, 12]
    assert signal.epochs_of(2) == [1, 2]
    norms = np.random.default_rng(0).random((4, N))
    training = {"learning_rate": 0.1, "decay": 0.5, "milestones": [6, 8]}
    record = RunRecord(GIVEN, CLASSES, EPOCHS, {signal.key: norms}, settings={"training": training})
    rates = [0.1, 0.1, 0.025, 0.025]  # the first drop is after epoch 6
    np.testing.assert_allclose(TracIn(4).score(record), sum(r * n**2 for r, n in zip(rates, norms, strict=True)))


def test_selfclean_where_there_is_no_other_sample_to_compare_with() -> None:
    labels = np.array([0, 0, 0, 1])
    lone = SelfClean().score(RunRecord(labels, 2, 1, {EMBEDDING.key: POINTS[:4]}))
    assert lone[3] == 1
    assert (lone[:3] < 1).all()
    assert (SelfClean().score(RunRecord(np.zeros(4, int), 2, 1, {EMBEDDING.key: POINTS[:4]})) == 0).all()


def relation(z: np.ndarray, i: int, j: int, power: float = 4.0) -> float:
    kernel = max(0.0, cosine(POINTS[i], POINTS[j])) * float(softmax(z[i]) @ softmax(z[j]))
    kernel = kernel**power if kernel > 0.03 else 0.0
    return kernel if GIVEN[i] == GIVEN[j] else -kernel


@pytest.mark.parametrize("power", [4.0, 1.0])
def test_relation_graph_sums_what_contradicts_a_label_less_what_agrees(power: float) -> None:
    z = logits()[9]
    arrays = {Embedding(10).key: POINTS, EvalLogits((10,)).key: z[None]}
    record = RunRecord(GIVEN, CLASSES, EPOCHS, arrays)
    once = np.array([-sum(relation(z, i, j, power) for j in range(N)) for i in range(N)])
    np.testing.assert_allclose(RelationGraph(power=power, rounds=1).score(record), once, rtol=1e-4, atol=1e-4)
    sign = np.where(once > 0.05 * np.abs(once).max(), -1, 1)
    assert set(sign) == {-1, 1}
    twice = np.array([-sum(sign[j] * relation(z, i, j, power) for j in range(N)) for i in range(N)])
    np.testing.assert_allclose(RelationGraph(power=power).score(record), twice, rtol=1e-4, atol=1e-4)


def test_of_many_samples_some_are_partners_of_all_and_each_has_its_relation_to_itself() -> None:
    z = logits()[9]
    arrays = {Embedding(10).key: POINTS, EvalLogits((10,)).key: z[None]}
    few = RelationGraph(rounds=1, partners=40).score(RunRecord(GIVEN, CLASSES, EPOCHS, arrays))
    order = neighbours.order_by_features(unit_rows(POINTS))
    partners = order[np.linspace(0, N - 1, 40).round().astype(int)]
    brute = [-sum(relation(z, i, j) for j in {*partners.tolist(), i}) for i in range(N)]
    np.testing.assert_allclose(few, brute, rtol=1e-4, atol=1e-4)


def of_epochs() -> RunRecord:
    return record_of(eval_logits=logits())


def given_losses() -> np.ndarray:
    return np.array([[-np.log(softmax(z)[y]) for z, y in zip(z_NK, GIVEN, strict=True)] for z_NK in logits()])


def test_ctrl_is_the_nearness_to_the_higher_of_two_clusters_of_curves() -> None:
    scores, losses = CTRL(window=3).score(of_epochs()), given_losses()
    curves = np.array([[losses[t : t + 3, i].mean() for t in range(EPOCHS - 2)] for i in range(N)])
    for label in range(CLASSES):
        members = np.flatnonzero(label == GIVEN)
        is_high = scores[members] > 0
        assert 0 < is_high.sum() < len(members)
        low, high = curves[members[~is_high]].mean(axis=0), curves[members[is_high]].mean(axis=0)  # k-means' centres
        assert low.mean() < high.mean()
        for i in members:
            to_low, to_high = np.linalg.norm(curves[i] - low), np.linalg.norm(curves[i] - high)
            assert scores[i] == pytest.approx((to_low**2 - to_high**2) / ((high - low) ** 2).sum(), rel=1e-6)


def test_ctrl_rises_with_the_loss_also_beyond_the_centres() -> None:
    z = np.zeros((1, N, CLASSES))
    z[0, np.arange(N), GIVEN] = np.linspace(4, -8, N)
    scores = CTRL().score(RunRecord(GIVEN, CLASSES, 1, {"eval_logits": z}))
    for label in range(CLASSES):
        assert (np.diff(scores[label == GIVEN]) > 0).all()


@pytest.mark.parametrize("weights", ["equal", "given labels"])
def test_cores_is_the_loss_less_the_mean_loss_over_labels(weights: str) -> None:
    scores, shares = CORES(beta=2.0, weights=weights).score(of_epochs()), np.bincount(GIVEN) / N
    for i, z in enumerate(logits()[9]):
        losses = -np.log(softmax(z))
        mean = sum(losses[y] * (shares[y] if weights == "given labels" else 1 / CLASSES) for y in range(CLASSES))
        assert scores[i] == pytest.approx(losses[GIVEN[i]] - 2 * mean)


@pytest.mark.parametrize(("reading", "rows"), [("mean", slice(None)), ("last", slice(-1, None)), ("early", [9])])
def test_margins_and_probabilities_of_each_reading(reading: str, rows: slice | list[int]) -> None:
    margin, probability = GivenMargin(reading).score(of_epochs()), GivenProbability(reading).score(of_epochs())
    for i in range(N):
        z_EK = logits()[rows, i]
        margins = [z[GIVEN[i]] - max(np.delete(z, GIVEN[i])) for z in z_EK]
        assert margin[i] == pytest.approx(-np.mean(margins))
        assert probability[i] == pytest.approx(1 - np.mean([softmax(z)[GIVEN[i]] for z in z_EK]))


def test_held_out_readings() -> None:
    z = logits()[-1]
    record = record_of(**{HELD_OUT_LOGITS.key: z})
    margins = [max(np.delete(z[i], GIVEN[i])) - z[i, GIVEN[i]] for i in range(N)]
    np.testing.assert_allclose(GivenMargin("held-out").score(record), margins)
    doubts = [1 - softmax(z[i])[GIVEN[i]] for i in range(N)]
    np.testing.assert_allclose(GivenProbability("held-out").score(record), doubts)


@pytest.mark.parametrize("bag", [512, 30])
def test_data_oob_is_what_classifiers_say_that_did_not_see_the_sample(bag: int) -> None:
    """Against ridge regression of scikit-learn, on draws of its own: the share is an estimate of the same number."""
    from sklearn.linear_model import RidgeClassifier

    generator, votes, size = np.random.default_rng(5), [[] for _ in range(N)], min(bag, N)
    for _ in range(400):
        drawn = generator.integers(0, N, size)
        model = RidgeClassifier(alpha=0.01 * POINTS.var() * size).fit(POINTS[drawn], GIVEN[drawn])
        for i in set(range(N)) - set(drawn.tolist()):
            votes[i].append(model.predict(POINTS[i : i + 1])[0] != GIVEN[i])
    scores = DataOOB(heads=400, bag=bag).score(ON_FEATURES)
    assert np.abs(scores - [np.mean(of_sample) for of_sample in votes]).max() < 0.15
    assert scores[IS_WRONG].min() > 0.5


def test_combined_ranks_are_averaged_which_orders_as_bordas_count() -> None:
    parts = (EL2N(), MeanLoss(), LastLoss())
    ranks = np.array([rankdata(detector.score(of_epochs())) for detector in parts])
    np.testing.assert_allclose(Combined(parts).score(of_epochs()), (ranks.mean(axis=0) - 1) / (N - 1))
    np.testing.assert_allclose(Combined(parts, "median").score(of_epochs()), (np.median(ranks, axis=0) - 1) / (N - 1))
    points = sum(np.array([(r < r[i]).sum() + ((r == r[i]).sum() - 1) / 2 for i in range(N)]) for r in ranks)
    assert (rankdata(points.round(9)) == rankdata(Combined(parts).score(of_epochs()).round(9))).all(), "Borda's count"


def test_combined_says_what_it_is_made_of() -> None:
    assert Combined().label == "combined"
    assert Combined((EL2N(), MeanLoss()), "median").label == "combined (EL2N; mean loss; by median)"
    assert set(Combined().needs) >= {signal for detector in Combined().of for signal in detector.needs}
    with pytest.raises(LincBenchError, match="of one recipe"):
        Combined((EL2N(), LiNC()))


@pytest.mark.parametrize(
    "detector",
    [
        SimiFeatR(thresholds=False),
        FINE(mixture=False),
        CORES(weights="given labels"),
        Combined((EL2N(), MeanLoss())),
        Combined((EL2N(), MeanLoss(), LastLoss()), "median"),
        TracIn(parameters="all trained"),
    ],
    ids=lambda detector: detector.label,
)
def test_other_choices_conform_too(detector: Detector) -> None:
    check_detector(detector)


def test_neighbours_are_exact_up_to_a_size_and_then_nearly(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    points = generator.normal(size=(40, 16))[generator.integers(0, 40, 4000)] + 0.3 * generator.normal(size=(4000, 16))
    exact = nearest_others(points, 10)
    similarity = unit_rows(points) @ unit_rows(points).T
    np.fill_diagonal(similarity, -2)
    best = np.sort(similarity, axis=1)[:, -10:]
    np.testing.assert_allclose(np.sort(np.take_along_axis(similarity, exact, axis=1)), best, atol=1e-5)
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 1000)
    found = nearest_others(points, 10)
    assert (found >= 0).all()
    assert (nearest_others(points, 900) >= 0).all(), "more than the cells nearby hold"
    assert not (found == np.arange(4000)[:, None]).any()
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact.tolist(), found.tolist(), strict=True)]) > 0.99


def test_a_sample_is_no_neighbour_of_itself_however_many_copies_it_has() -> None:
    copies = np.ones((30, 4), dtype=np.float32)
    found = nearest_others(copies, 5)
    assert found.shape == (30, 5)
    assert not (found == np.arange(30)[:, None]).any()
    assert (Index(unit_rows(np.zeros((3, 4)))).search(np.zeros((1, 4), dtype=np.float32), 2)[0] == 0).all()


def test_order_by_features_decides_draws_not_the_order_of_samples() -> None:
    order = np.random.default_rng(3).permutation(N)
    moved = replace(ON_FEATURES, given_labels=GIVEN[order], arrays={EMBEDDING.key: POINTS[order]})
    np.testing.assert_array_equal(DataOOB(heads=50).score(moved), DataOOB(heads=50).score(ON_FEATURES)[order])
