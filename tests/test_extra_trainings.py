"""Detectors with trainings of their own: what their recipes train on, and what their scores make of it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from benchmark.data.labelled import TrainingData
from benchmark.networks.last_block import WholeBlock
from benchmark.record import RunRecord, Signal
from benchmark.seeds import numpy_generator
from benchmark.training import CrossEntropy, Job, Recipe, TrainingSettings
from benchmark.training.loop import predict, train
from detectors.aum_threshold import MARGINS, AUMThreshold, ThresholdClass
from detectors.map_d import LOSS_CURVES, MAPD, Probes
from detectors.relabelled import AS_GIVEN, REPLACED, ROLES, draw_roles, mean_where_judged
from detectors.second_split import AS_LABELLED, SecondSplit, SecondSplitForgetting
from tests.test_training import SETTINGS, Perceptron, data

SHORT = replace(SETTINGS, milestones=(6, 9))


def new_model(seed: int, more_classes: int = 0) -> Perceptron:
    torch.manual_seed(seed)
    layers = torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3 + more_classes)
    whole = torch.nn.Sequential(*layers)
    return Perceptron(whole, WholeBlock(whole), (), "all")


def left_behind(recipe: Recipe, everything: TrainingData) -> Mapping[Signal, np.ndarray]:
    epochs: list[int] = []
    history, signals = recipe.run(Job(everything, SHORT, new_model, lambda model: [], epochs.append))
    assert epochs[-1] == SHORT.epochs, "progress reaches its end"
    assert set(signals) == set(recipe.leaves)
    assert history.rows
    return signals


def relabelled(everything: TrainingData, labels: np.ndarray) -> TrainingData:
    return replace(everything, train=replace(everything.train, labels=torch.from_numpy(labels)))


def record_of(signals: Mapping[Signal, np.ndarray]) -> RunRecord:
    given = data().train.labels.numpy()
    return RunRecord(given, 3, SHORT.epochs, {signal.key: array for signal, array in signals.items()})


def test_no_sample_has_two_roles() -> None:
    roles = draw_roles(90, 11, np.random.default_rng(0))
    assert [(roles[:, 0] == role).sum() for role in (REPLACED, AS_GIVEN)] == [11, 11]
    assert [(roles[:, 1] == role).sum() for role in (REPLACED, AS_GIVEN)] == [11, 11]
    assert ((roles != 0).sum(axis=1) <= 1).all()
    values = np.array([[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]])
    assert mean_where_judged(values, np.array([[0, 0], [REPLACED, 0], [0, AS_GIVEN]])).tolist() == [2, 3, 1]


def test_a_threshold_class_is_trained_beside_the_others_until_the_learning_rate_drops() -> None:
    everything, margins = data(), np.zeros((90, 2))
    signals = left_behind(ThresholdClass(), everything)
    roles, given = signals[ROLES], everything.train.labels.numpy()
    assert ((roles == REPLACED).sum(axis=0) == 22).all(), "an even number, at most n / (C + 1)"
    assert not (roles == AS_GIVEN).any()
    for number in range(2):
        labels = np.where(roles[:, number] == REPLACED, 3, given)
        model, of_epochs, seen = new_model(0, 1), [], np.zeros((90, 4))

        class Keeping(CrossEntropy):
            def loss(self, epoch: int, indices: torch.Tensor, logits: torch.Tensor, seen=seen) -> torch.Tensor:
                seen[indices] = logits.detach().numpy()
                return super().loss(epoch, indices, logits)

        def keep(epoch: int, of_epochs=of_epochs, seen=seen) -> None:
            of_epochs.append(seen.copy())

        changed = relabelled(everything, labels)
        train(model, changed, Keeping(changed.train.labels), (), replace(SHORT, epochs=6), keep)
        for i in range(90):
            z_EK = [z_NK[i] for z_NK in of_epochs[1:]]
            margins[i, number] = np.mean([z[labels[i]] - max(np.delete(z, labels[i])) for z in z_EK])
    np.testing.assert_allclose(signals[MARGINS], margins, rtol=1e-5, atol=1e-6)
    scores = AUMThreshold().score(record_of(signals))
    for i in range(90):
        judged = [number for number in range(2) if roles[i, number] == 0]
        thresholds = [np.percentile(margins[roles[:, number] == REPLACED, number], 99) for number in judged]
        assert scores[i] == pytest.approx(np.mean(thresholds - margins[i, judged]), rel=1e-4, abs=1e-5)


def test_what_a_threshold_class_reads_and_takes() -> None:
    training = TrainingSettings(epochs=70, milestones=(10, 20))
    assert AUMThreshold().epochs_used_in(training) == 10
    assert AUMThreshold().epochs_used_in(TrainingSettings(epochs=4)) == 4
    assert ThresholdClass().passes(70) == 20
    assert ThresholdClass().passes(4) == 8


def test_map_d_is_the_share_of_wrong_probes_among_the_nearest_curves() -> None:
    everything = data()
    signals = left_behind(Probes(), everything)
    roles, curves, given = signals[ROLES], signals[LOSS_CURVES], everything.train.labels.numpy()
    assert curves.shape == (90, 2, SHORT.epochs)
    scores = MAPD(k=5).score(record_of(signals))
    expected = np.zeros((90, 2))
    for number in range(2):
        assert (roles[:, number] == REPLACED).sum() == (roles[:, number] == AS_GIVEN).sum() == 90 // 8
        final = curves[:, number, -1]
        assert final[roles[:, number] == REPLACED].mean() > final[roles[:, number] == AS_GIVEN].mean()
        probes = np.flatnonzero(roles[:, number])
        for i in range(90):
            distance = [np.linalg.norm(curves[i, number] - curves[probe, number]) for probe in probes]
            nearest = probes[np.argsort(distance)[:5]]
            expected[i, number] = (roles[nearest, number] == REPLACED).mean()
    np.testing.assert_allclose(scores, mean_where_judged(expected, roles))
    is_wrong = np.arange(90) < 15
    assert scores[is_wrong].mean() > scores[~is_wrong].mean()
    assert (given == everything.train.labels.numpy()).all(), "the data keep their labels"


def test_loss_curves_are_those_of_evaluation_on_each_trainings_labels() -> None:
    """The draws once more: then the curves must be the same."""
    everything, recipe = data(), Probes(of_each_kind=5)
    signals, given = left_behind(recipe, everything), everything.train.labels.numpy()
    generator = numpy_generator(SHORT.seed, "probes")
    roles = draw_roles(90, 5, generator)
    steps = generator.integers(1, 3, roles.shape)
    assert (signals[ROLES] == roles).all()
    for number in range(2):
        labels = np.where(roles[:, number] == REPLACED, (given + steps[:, number]) % 3, given)
        assert (labels != given).sum() == 5
        model, losses, changed = new_model(0), [], relabelled(everything, labels)

        def keep(epoch: int, model=model, losses=losses, changed=changed) -> None:
            z = predict(model.tail, changed.train)
            losses.append(F.cross_entropy(z, changed.train.labels, reduction="none").numpy())

        train(model, changed, CrossEntropy(changed.train.labels), (), SHORT, keep)
        np.testing.assert_allclose(signals[LOSS_CURVES][:, number], np.stack(losses, axis=1), rtol=1e-6)


def test_a_sample_is_followed_while_the_other_half_is_trained_on() -> None:
    everything, expected = data(), np.zeros((90, 1 + 4), dtype=bool)
    kept = left_behind(SecondSplit(epochs=4), everything)[AS_LABELLED]
    first = np.flatnonzero(_first_half())
    second = np.flatnonzero(~_first_half())
    for own, other in ((first, second), (second, first)):
        model, settings = new_model(0), replace(SHORT, epochs=4)
        halves = [everything.with_training_rows(rows) for rows in (own, other)]

        def look(epoch: int, model=model, own=own, split=halves[0].train) -> None:
            expected[own, epoch] = (predict(model.tail, split).argmax(1) == split.labels).numpy()

        train(model, halves[0], CrossEntropy(halves[0].train.labels), (), settings)
        look(0)
        train(model, halves[1], CrossEntropy(halves[1].train.labels), (), settings, look)
    assert (kept == expected).all()


def _first_half() -> np.ndarray:
    return numpy_generator(SHORT.seed, "splits").permutation(90) < 45


def test_what_is_forgotten_first_is_the_most_suspicious() -> None:
    kept = np.array(["0000", "1000", "1010", "1111", "0001"])
    record = RunRecord(np.zeros(5, int), 2, 3, {AS_LABELLED.key: np.array([[c == "1" for c in row] for row in kept])})
    assert (-SecondSplitForgetting().score(record)).tolist() == [0, 1, 3, 4, 4]
