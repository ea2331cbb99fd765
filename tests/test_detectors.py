"""Every detector of the suite: the contract, and its formula restated slowly."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from benchmark.errors import LincBenchError
from benchmark.record import RunRecord
from detectors import DETECTORS, Detector, detector_named
from detectors.aum import AUM
from detectors.chance import Random
from detectors.datamaps import DataMaps
from detectors.linc import LiNC, LiNCRecipe
from detectors.mean_loss import MeanLoss


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


def reordered(record: RunRecord, order: np.ndarray) -> RunRecord:
    arrays = {key: array[:, order] for key, array in record.arrays.items()}
    return RunRecord(record.given_labels[order], record.num_classes, record.epochs, arrays)


everyone = pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)


@everyone
def test_scores_are_one_finite_number_per_sample_and_repeat_themselves(detector: Detector) -> None:
    record, _ = planted()
    before = {key: array.copy() for key, array in record.arrays.items()}
    scores = detector.score(record)
    assert scores.shape == (400,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert (scores == detector.score(record)).all()
    assert all((record.arrays[key] == array).all() for key, array in before.items()), "the record is left alone"


@everyone
def test_higher_means_more_suspicious(detector: Detector) -> None:
    record, is_mislabelled = planted()
    scores = detector.score(record)
    difference = scores[is_mislabelled].mean() - scores[~is_mislabelled].mean()
    if isinstance(detector, Random):
        assert abs(difference) < 0.1, "random scores know nothing"
    else:
        assert difference > 3 * scores[~is_mislabelled].std() / np.sqrt(80)


@everyone
def test_a_sample_keeps_its_score_wherever_it_stands(detector: Detector) -> None:
    if isinstance(detector, Random):
        pytest.skip("random scores belong to positions, not to samples")
    record, _ = planted()
    order = np.random.default_rng(1).permutation(400)
    np.testing.assert_allclose(detector.score(reordered(record, order)), detector.score(record)[order], rtol=1e-12)


@everyone
def test_only_declared_signals_are_read(detector: Detector) -> None:
    record, _ = planted()
    declared = {signal.key: record.arrays[signal.key] for signal in detector.needs}
    only = RunRecord(record.given_labels, record.num_classes, record.epochs, declared)
    assert (detector.score(only) == detector.score(record)).all()


@everyone
@pytest.mark.parametrize("epochs", [1, 2])
def test_extreme_logits_and_short_runs_are_survived(detector: Detector, epochs: int) -> None:
    record, _ = planted(epochs=epochs)
    extreme = {key: array * (1e4 if "logits" in key else 1) for key, array in record.arrays.items()}
    scores = detector.score(RunRecord(record.given_labels, 4, epochs, extreme))
    assert np.isfinite(scores).all()


@everyone
def test_a_detector_is_a_frozen_value(detector: Detector) -> None:
    assert type(detector)() == detector
    assert hash(type(detector)()) == hash(detector)
    assert detector_named(detector.name.upper()) is detector
    assert detector.label == detector.name
    assert detector.summary
    for field in fields(detector):
        with pytest.raises(FrozenInstanceError):
            setattr(detector, field.name, None)


def test_names_are_unique_and_an_unknown_one_is_helped() -> None:
    assert len({detector.name for detector in DETECTORS}) == len(DETECTORS)
    with pytest.raises(LincBenchError, match=r"Did you mean 'DataMaps'\?"):
        detector_named("datamap")


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
