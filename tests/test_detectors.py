"""Every detector of the suite: the contract, and its formula restated slowly."""

from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmark.errors import LincBenchError
from benchmark.identity import settings_of
from benchmark.record import RunRecord
from benchmark.training import TrainingSettings
from detectors import DETECTORS, HCAT, Detector, detector_named
from detectors.aum import AUM
from detectors.cnlcu import CNLCUS
from detectors.confident_learning import ConfidentLearning
from detectors.data_iq import DataIQ
from detectors.datamaps import DataMaps
from detectors.el2n import EL2N
from detectors.forgetting import Forgetting
from detectors.linc import LiNC, LiNCObjective, LiNCRecipe
from detectors.logits import Moment
from detectors.loss_mixture import LossMixture
from detectors.mean_loss import LastLoss, MeanLoss
from detectors.nearest_neighbours import Neighbours
from detectors.post_hoc_trust import PostHocTrust
from detectors.testing import CheckFailedError, check_detector
from detectors.vog import VoG


def planted(epochs: int = 6, n: int = 400, classes: int = 4, wrong: int = 80) -> tuple[RunRecord, np.ndarray]:
    """A record in which the network favours the clean class; the first `wrong` given labels are not it."""
    generator = np.random.default_rng(0)
    clean = generator.integers(0, classes, n)
    given = clean.copy()
    given[:wrong] = (clean[:wrong] + 1) % classes
    logits_ENK = generator.normal(size=(epochs, n, classes))
    logits_ENK[:, np.arange(n), clean] += 3
    trust_EN = np.where(np.arange(n) < wrong, 0.3, 0.6) + generator.normal(0, 0.05, (epochs, n))
    record = RunRecord.from_arrays(
        given_labels=given, train_logits=logits_ENK, eval_logits=logits_ENK[::-1], trust=trust_EN
    )
    return record, given != clean


ALL = tuple(dict.fromkeys((*DETECTORS, *HCAT, CNLCUS(window=3))))
BY_DESIGN = {  # H-CAT's choices that a conformance check rightly rejects
    Forgetting(never_learned="zero", moment="end of epoch"): "right direction",
    next(detector for detector in HCAT if detector.name == "VoG"): "right direction",
}


@pytest.mark.parametrize("detector", ALL, ids=lambda detector: detector.label)
def test_every_detector_conforms(detector: Detector) -> None:
    if detector in BY_DESIGN:
        with pytest.raises(CheckFailedError, match=rf"fails 1 of \d+ checks:\n- {BY_DESIGN[detector]}"):
            check_detector(detector)
    else:
        check_detector(detector)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_a_detector_is_a_frozen_value_with_a_name(detector: Detector) -> None:
    assert detector_named(detector.name.upper()) is detector
    assert detector.label == detector.name
    assert detector.summary
    for field in fields(detector):
        with pytest.raises(FrozenInstanceError):
            setattr(detector, field.name, None)


def test_the_hcat_line_up_has_the_same_detectors_with_other_choices() -> None:
    names = {detector.name for detector in DETECTORS}
    for detector in HCAT:
        assert detector.name in names
        assert detector.name == "LiNC" or detector not in DETECTORS


def test_names_are_unique_and_an_unknown_one_is_helped() -> None:
    assert len({detector.name for detector in DETECTORS}) == len(DETECTORS)
    with pytest.raises(LincBenchError, match=r"Did you mean 'DataMaps'\?"):
        detector_named("datamap")
    with pytest.raises(LincBenchError, match=r"mine\.py:MyDetector"):
        detector_named("mine.py")


def test_a_label_says_what_differs_from_the_defaults() -> None:
    assert AUM(skip_first_epoch=False).label == "AUM (skip_first_epoch=False)"
    assert LiNC(LiNCRecipe(warm_up=2)).label == "LiNC (warm_up=2)"


# Each formula once more, slowly.


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = [np.exp(value - max(logits)) for value in logits]
    return np.array(exponentials) / sum(exponentials)


@pytest.mark.parametrize("skip", [True, False])
def test_aum_is_the_mean_margin(skip: bool) -> None:
    record, _ = planted(n=20, wrong=4)
    scores = AUM(skip_first_epoch=skip).score(record)
    for i, label in enumerate(record.given_labels):
        margins = []
        for logits in record.arrays["train_logits"][1 if skip else 0 :, i]:
            margins.append(logits[label] - max(value for k, value in enumerate(logits) if k != label))
        assert scores[i] == pytest.approx(-np.mean(margins), rel=1e-12)


def test_aum_of_a_single_epoch_uses_it() -> None:
    record, _ = planted(epochs=1)
    assert (AUM().score(record) == AUM(skip_first_epoch=False).score(record)).all()


@pytest.mark.parametrize(("milestones", "last"), [((4, 5), 4), ((1,), 1), ((6, 9), 6), ((9,), 6), ((), 6)])
def test_aum_reads_up_to_the_first_drop_of_the_learning_rate(milestones: tuple[int, ...], last: int) -> None:
    record, _ = planted(n=20, wrong=4)
    training = TrainingSettings(epochs=6, milestones=milestones)
    scheduled = replace(record, settings={"training": settings_of(training)})
    assert AUM().epochs_used_in(training) == last
    assert AUM(until="end").epochs_used_in(training) == AUM().epochs_used(6) == 6
    for epochs in range(1, 7):
        cut = scheduled.first_epochs(epochs)
        unscheduled = record.first_epochs(min(epochs, last))
        assert (AUM().score(cut) == AUM(until="end").score(unscheduled)).all()
        assert (AUM().score(cut) == AUM().score(unscheduled)).all(), "without a schedule it reads to the end"
    assert (AUM(until="end").score(scheduled) == AUM().score(record)).all()


def test_datamaps_is_confidence_and_variability_at_presentation() -> None:
    record, _ = planted(n=20, wrong=4)
    confidence, variability = DataMaps().score(record), DataMaps("variability").score(record)
    for i, label in enumerate(record.given_labels):
        p = [softmax(logits)[label] for logits in record.arrays["train_logits"][:, i]]
        assert confidence[i] == pytest.approx(1 - np.mean(p), rel=1e-12)
        assert variability[i] == pytest.approx(np.std(p), rel=1e-12)


def test_mean_loss_is_the_mean_cross_entropy_of_evaluation() -> None:
    record, _ = planted(n=20, wrong=4)
    scores = MeanLoss().score(record)
    for i, label in enumerate(record.given_labels):
        losses = [-np.log(softmax(logits)[label]) for logits in record.arrays["eval_logits"][:, i]]
        assert scores[i] == pytest.approx(np.mean(losses), rel=1e-12)


@pytest.mark.parametrize(("warm_up", "row"), [(5, 4), (2, 1), (9, 5)])
def test_linc_is_one_minus_trust_after_the_warm_up(warm_up: int, row: int) -> None:
    record, _ = planted(epochs=6)
    detector = LiNC(LiNCRecipe(warm_up=warm_up))
    assert (detector.score(record) == 1 - record.arrays["trust"][row]).all()
    assert detector.epochs_used(6) == row + 1


def losses(record: RunRecord, signal: str) -> np.ndarray:
    """Cross-entropy of the given label: epochs × samples."""
    labels = enumerate(record.given_labels)
    return np.array([[-np.log(softmax(z)[y]) for z in record.arrays[signal][:, i]] for i, y in labels]).T


def test_last_loss_is_that_of_the_last_epoch() -> None:
    record, _ = planted(n=20, wrong=4)
    np.testing.assert_allclose(LastLoss().score(record), losses(record, "eval_logits")[-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("ours", "window"), [(AUM(), slice(1, 4)), (AUM(skip_first_epoch=False, until="end"), slice(0, 6))]
)
def test_aum_equals_its_authors_package_in_its_window(tmp_path: Path, ours: AUM, window: slice) -> None:
    from aum import AUMCalculator

    record, _ = planted(epochs=6, n=60, wrong=12)
    calculator = AUMCalculator(str(tmp_path))
    for logits in record.arrays["train_logits"][window]:
        calculator.update(torch.from_numpy(logits.copy()), torch.from_numpy(record.given_labels), list(range(60)))
    calculator.finalize()
    theirs = pd.read_csv(tmp_path / "aum_values.csv").set_index("sample_id")["aum"].sort_index().to_numpy()
    scheduled = replace(record, settings={"training": {"milestones": [4, 5]}})
    np.testing.assert_allclose(-ours.score(scheduled), theirs, atol=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"), [("self-confidence", "self_confidence"), ("normalised margin", "normalized_margin")]
)
def test_confident_learning_equals_cleanlab(ours: str, theirs: str) -> None:
    from cleanlab.rank import get_label_quality_scores

    generator = np.random.default_rng(0)
    logits, labels = generator.normal(0, 2, (300, 5)), generator.permutation(np.arange(300) % 5)
    record = RunRecord(labels, 5, 1, {"held_out_logits": logits})
    quality = get_label_quality_scores(labels, np.array([softmax(row) for row in logits]), method=theirs)
    np.testing.assert_allclose(1 - ConfidentLearning(ours).score(record), quality, atol=1e-9)


def test_data_iq_is_the_mean_squared_doubt() -> None:
    record, _ = planted(n=20, wrong=4)
    p_EN = np.exp(-losses(record, "eval_logits"))
    confidence, aleatoric = p_EN.mean(0), (p_EN * (1 - p_EN)).mean(0)
    np.testing.assert_allclose(DataIQ().score(record), (1 - confidence) - aleatoric, rtol=1e-9)
    np.testing.assert_allclose(DataIQ("confidence").score(record), 1 - confidence, rtol=1e-9)
    np.testing.assert_allclose(DataIQ("aleatoric").score(record), aleatoric, rtol=1e-9)


@pytest.mark.parametrize(("epoch", "row"), [(3, 2), (10, 5), (None, 5)])
def test_el2n_is_the_norm_of_the_error_not_its_square(epoch: int | None, row: int) -> None:
    record, _ = planted(n=20, wrong=4)
    for i, label in enumerate(record.given_labels):
        error = softmax(record.arrays["eval_logits"][row, i])
        error[label] -= 1
        assert EL2N(epoch).score(record)[i] == pytest.approx(np.sqrt((error**2).sum()), rel=1e-12)
        assert EL2N(epoch, squared=True).score(record)[i] == pytest.approx((error**2).sum(), rel=1e-12)
    assert EL2N(epoch).epochs_used(6) == row + 1


def test_forgetting_counts_falls_and_never_learned_is_the_maximum() -> None:
    histories = ["110110", "111111", "000000", "010101", "000001"]  # was the sample right, epoch by epoch?
    correct_EN = np.array([[letter == "1" for letter in history] for history in histories]).T
    logits = np.stack([~correct_EN, correct_EN], axis=2).astype(float)
    record = RunRecord.from_arrays(given_labels=np.ones(5, int), train_logits=logits, eval_logits=logits)
    assert Forgetting().score(record).tolist() == [2, 0, 6, 2, 0]
    assert Forgetting(never_learned="zero").score(record).tolist() == [2, 0, 0, 2, 0], (
        "H-CAT: the worst become the best"
    )


@pytest.mark.parametrize(("moment", "signal"), [("presentation", "train_logits"), ("end of epoch", "eval_logits")])
def test_forgetting_is_counted_epoch_by_epoch(moment: Moment, signal: str) -> None:
    record, _ = planted()
    scores = Forgetting(moment=moment).score(record)
    for i, label in enumerate(record.given_labels):
        events, was_right, ever_right = 0, False, False
        for logits in record.arrays[signal][:, i]:
            is_right = max(range(len(logits)), key=logits.__getitem__) == label
            events += was_right and not is_right
            was_right, ever_right = is_right, ever_right or is_right
        assert scores[i] == (events if ever_right else record.epochs)


@pytest.mark.parametrize(("window", "epochs"), [(None, 6), (3, 6), (1, 6), (9, 6), (None, 80), (None, 90)])
def test_cnlcu_is_the_robust_mean_less_each_samples_own_bound(window: int | None, epochs: int) -> None:
    record, _ = planted(epochs, n=20, wrong=4)
    l_EN = losses(record, "train_logits")[-min(window or epochs, epochs) :]
    scores, t = CNLCUS(window=window).score(record), len(l_EN)
    variance = max(0, 1e-4 * (1 - (t - 1) / 79))
    for i in range(20):
        times_selected = 2
        for l_N in l_EN[: t - 1]:
            if l_N[i] < np.median(l_N):
                times_selected += 1
        mean = sum(np.log(1 + loss + loss**2 / 2) for loss in l_EN[:, i]) / t
        allowance = variance * (t + variance * np.log(2 * t) / t**2) / (times_selected - variance)
        assert scores[i] == pytest.approx(max(0, mean - allowance), rel=1e-12)


def test_cnlcu_without_its_bound_is_the_mean_loss() -> None:
    record, _ = planted(n=20, wrong=4)
    np.testing.assert_allclose(CNLCUS(bound=False).score(record), MeanLoss().score(record), rtol=1e-12)


def test_vog_is_scored_within_each_given_class() -> None:
    spread = np.array([1.0, 2.0, 3.0, 10.0, 20.0, 5.0])
    labels = np.array([0, 0, 0, 1, 1, 2])
    record = RunRecord(labels, 3, 4, {VoG().needs[0].key: spread})
    z = np.sqrt(1.5)
    np.testing.assert_allclose(VoG().score(record), [-z, 0, z, -1, 1, 0])
    np.testing.assert_allclose(VoG(per_class=False).score(record), spread)
    np.testing.assert_allclose(VoG(per_class=False, high_is_clean=True).score(record), -spread)


def test_neighbours_is_the_share_of_nearest_labelled_otherwise() -> None:
    generator = np.random.default_rng(0)
    points, labels = generator.normal(size=(40, 3)), generator.integers(0, 3, 40)
    scores = Neighbours(k=5).score(RunRecord(labels, 3, 1, {"embedding": points}))
    for i in range(40):
        distances = [(np.linalg.norm(points[i] - points[j]), j) for j in range(40) if j != i]
        nearest = [j for _, j in sorted(distances)[:5]]
        assert scores[i] == pytest.approx(np.mean([labels[j] != labels[i] for j in nearest]))


def test_loss_mixture_is_a_posterior_that_rises_with_the_loss() -> None:
    record, is_mislabelled = planted()
    scores = LossMixture(warm_up=3).score(record)
    loss = losses(record, "eval_logits")[2]
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (np.diff(scores[np.argsort(loss)]) >= -1e-12).all()
    assert scores[is_mislabelled].mean() > 0.5 > scores[~is_mislabelled].mean()


@pytest.mark.parametrize(("moment", "signal"), [("presentation", "train_logits"), ("end of epoch", "eval_logits")])
def test_post_hoc_trust_is_lincs_recursion_on_recorded_logits(moment: Moment, signal: str) -> None:
    """The same logits through LiNC's own objective, while its trust is not fed back."""
    record, _ = planted(epochs=6, n=64, wrong=12)
    logits = torch.from_numpy(record.arrays[signal].copy())
    objective = LiNCObjective(
        LiNCRecipe(), torch.from_numpy(record.given_labels), TrainingSettings(epochs=6, batch_size=64)
    )
    for epoch in range(1, 6):
        objective.loss(epoch, torch.arange(64), logits[epoch - 1])
    scores = PostHocTrust(batch_size=64, moment=moment).score(record)
    np.testing.assert_allclose(scores, 1 - objective.criterion.trust.numpy(), atol=1e-6)
    order = np.argsort(PostHocTrust(batch_size=128, moment=moment).score(record))
    assert (order == np.argsort(scores)).all(), "the batch size does not change the ranking"
