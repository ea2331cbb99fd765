"""The loop: repeatable, undisturbed by recorders, and honest in what it records."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.identity import settings_of
from benchmark.networks.last_block import WholeBlock
from benchmark.networks.split_model import SplitModel
from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS, EvalLogits, RunShape, Signal, TrainLogits, recorders_of
from benchmark.record.history import PASS, History
from benchmark.record.recorders import Recorder, RunContext
from benchmark.seeds import numpy_generator
from benchmark.statistics.held_out import stratified_folds
from benchmark.training import CrossEntropy, Job, Recipe, Standard, TrainingSettings
from benchmark.training.loop import predict, train
from detectors.confident_learning import HELD_OUT_LOGITS, CrossValidation
from detectors.linc import LiNCRecipe

Listeners = Callable[[SplitModel], list[Recorder]]
SETTINGS = TrainingSettings(epochs=12, batch_size=16, learning_rate=0.01)


def data(n: int = 90) -> TrainingData:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, n)
    features = generator.normal(size=(n, 6)).astype(np.float16)
    features[np.arange(n), labels] += 2
    given = labels.copy()
    given[:15] = (given[:15] + 1) % 3
    split = LabelledFeatures(features, torch.from_numpy(given))
    validation = LabelledFeatures(features[:30], split.labels[:30])
    return TrainingData(split, validation, LabelledFeatures(features, torch.from_numpy(labels)), 3)


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


class Perceptron(SplitModel):
    """A tail that is all there is: the loop needs `tail` and `trained`, and recorders look at no more here."""

    def tail(self, features: torch.Tensor) -> torch.Tensor:
        return self.model(features.float())


def run(
    recipe: Recipe, recorders: Listeners = lambda model: [], settings: TrainingSettings = SETTINGS
) -> tuple[nn.Module, History]:
    models: list[SplitModel] = []

    def new_model(seed: int) -> SplitModel:
        whole = network(seed)
        models.append(Perceptron(whole, WholeBlock(whole), (), "all"))
        return models[-1]

    history, _ = recipe.run(Job(data(), settings, new_model, recorders))
    return models[-1].model, history


def listeners(folder: Path, signals: Sequence[Signal] = (TRAIN_LOGITS, EVAL_LOGITS)) -> Listeners:
    def make(model: SplitModel) -> list[Recorder]:
        context = RunContext(
            RunShape(SETTINGS.epochs, 90, 3), folder, model, data(), lambda start, stop: torch.empty(0)
        )
        return recorders_of(signals, context)

    return make


@pytest.mark.parametrize("recipe", [Standard(), LiNCRecipe()], ids=lambda recipe: recipe.name)
def test_recorders_observe_and_never_disturb(recipe: Recipe, tmp_path: Path) -> None:
    alone, plain = run(recipe)
    watched, recorded = run(recipe, listeners(tmp_path))
    for (name, one), (_, other) in zip(alone.state_dict().items(), watched.state_dict().items(), strict=True):
        assert torch.equal(one, other), name
    assert plain.rows == recorded.rows


def test_logits_are_recorded_at_the_epochs_that_are_read_and_at_no_others(tmp_path: Path) -> None:
    parts = EvalLogits((5,)), EvalLogits((0,)), EvalLogits((5, 7)), TrainLogits((1, 2))
    (tmp_path / "whole").mkdir()
    run(Standard(), listeners(tmp_path / "whole", (*parts, EVAL_LOGITS, TRAIN_LOGITS)))
    names = {file.name for file in (tmp_path / "whole").iterdir()}
    assert names == {"eval_logits.npy", "train_logits.npy"}, "nothing is stored twice"
    _, history = run(Standard(), listeners(tmp_path, parts))
    for part in parts:
        whole = np.load(tmp_path / "whole" / f"{part.whole.key}.npy")
        rows = [epoch - 1 for epoch in part.epochs_of(SETTINGS.epochs)]
        assert (np.load(tmp_path / f"{part.key}.npy") == whole[rows]).all()
    at_5, last, at_both = (part.key for part in parts[:3])
    passes = {charge.payers: len(laps) for charge, laps in history.laps.items() if charge.part == PASS}
    assert passes == {(at_5, at_both): 1, (at_both,): 1, (last,): 1}, "one pass for all who read an epoch, who pay it"


def test_eval_logits_are_those_of_the_finished_epoch_and_train_logits_those_before_each_update(tmp_path: Path) -> None:
    class Witness(Recorder):
        """Keeps what the loop hands out, and what the network says right after the update."""

        keys = ("witness",)

        def __init__(self) -> None:
            self.batches: list[tuple[int, np.ndarray, np.ndarray]] = []

        def after_batch(self, epoch: int, indices: torch.Tensor, logits: torch.Tensor) -> None:
            self.batches.append((epoch, indices.numpy(), logits.numpy()))

    witness = Witness()
    tail, _ = run(Standard(), lambda model: [*listeners(tmp_path)(model), witness])
    train_logits_ENK = np.load(tmp_path / "train_logits.npy")
    eval_logits_ENK = np.load(tmp_path / "eval_logits.npy")
    assert sum(len(indices) for _, indices, _ in witness.batches) == SETTINGS.epochs * 90
    for epoch, indices, logits in witness.batches:
        assert (train_logits_ENK[epoch - 1, indices] == logits).all()
    with torch.no_grad():
        now = tail(torch.from_numpy(data().train.features).float()).numpy()
    np.testing.assert_allclose(eval_logits_ENK[-1], now, rtol=1e-5, atol=1e-6)
    fresh = network(SETTINGS.seed)
    first = witness.batches[0][1]
    with torch.no_grad():
        before = fresh(torch.from_numpy(data().train.features[first]).float()).numpy()
    np.testing.assert_allclose(train_logits_ENK[0, first], before, rtol=1e-5, atol=1e-6)


def test_the_loop_is_the_papers_optimiser_and_schedule() -> None:
    """Against the same thing written out: Adam with weight decay, MultiStepLR, mean cross-entropy."""
    from benchmark.seeds import torch_generator

    settings = TrainingSettings(epochs=3, batch_size=32, milestones=(1, 2), learning_rate=0.01)
    tail, _ = run(Standard(), settings=settings)
    other = network(settings.seed)
    optimiser = torch.optim.Adam(other.parameters(), lr=0.01, weight_decay=1e-4)
    split, order = data().train, torch_generator(0, "order")
    for epoch in range(3):
        optimiser.param_groups[0]["lr"] = 0.01 * 0.7**epoch
        for batch in torch.randperm(90, generator=order).split(32):
            optimiser.zero_grad()
            F.cross_entropy(other(torch.from_numpy(split.features).float()[batch]), split.labels[batch]).backward()
            optimiser.step()
    for one, two in zip(tail.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def test_history_reports_what_it_says() -> None:
    tail, history = run(Standard())
    everything = data()
    with torch.no_grad():
        logits = tail(torch.from_numpy(everything.test.features).float())
    last = history.rows[-1]
    assert last["epoch"] == SETTINGS.epochs
    assert last["test_accuracy"] == pytest.approx((logits.argmax(1) == everything.test.labels).double().mean().item())
    assert last["test_loss"] == pytest.approx(F.cross_entropy(logits, everything.test.labels).item(), rel=1e-5)
    assert (history.predictions["test"][-1] == logits.argmax(1).numpy()).all()
    noisy = (logits.argmax(1)[:30] == everything.validation.labels).double().mean().item()
    assert last["validation_accuracy"] == pytest.approx(noisy)


def test_cross_validation_predicts_each_sample_without_having_seen_it() -> None:
    """Nor any of its duplicates: against folds written out, which are stratified by given label."""
    recipe, everything = CrossValidation(folds=3, epochs=4), replace(data(), groups=np.arange(90) // 2)

    def held_out(changed: TrainingData) -> np.ndarray:
        def new_model(seed: int) -> SplitModel:
            whole = network(seed)
            return Perceptron(whole, WholeBlock(whole), (), "all")

        return recipe.run(Job(changed, SETTINGS, new_model, lambda model: []))[1][HELD_OUT_LOGITS]

    logits_NK, given = held_out(everything), everything.train.labels.numpy()
    fold_N = stratified_folds(given, everything.groups, 3, numpy_generator(SETTINGS.seed, "folds"))
    assert (fold_N[::2] == fold_N[1::2]).all()
    for number in range(3):
        kept, out = np.flatnonzero(fold_N != number), np.flatnonzero(fold_N == number)
        assert np.abs(np.bincount(given[out], minlength=3) - np.bincount(given) / 3).max() < 2
        whole = network(0)
        model = Perceptron(whole, WholeBlock(whole), (), "all")
        fold = everything.with_training_rows(kept)
        train(model, fold, CrossEntropy(fold.train.labels), (), replace(SETTINGS, epochs=4))
        assert (logits_NK[out] == predict(model.tail, everything.train.subset(out)).numpy()).all()
    assert (held_out(replace(everything, groups=None)) != logits_NK).any()


def test_the_learning_rate_rises_in_the_first_steps_and_then_follows_the_schedule() -> None:
    """Adam's first step moves every weight by the learning rate, so the first of ten steps moves them by a tenth."""
    start = network(0).state_dict()

    def first_move(**changed: float) -> float:
        model, _ = run(Standard(), settings=replace(SETTINGS, epochs=1, batch_size=90, weight_decay=0.0, **changed))
        return max((model.state_dict()[name] - start[name]).abs().max().item() for name in start)

    assert first_move(warm_up_steps=10) == pytest.approx(first_move() / 10, rel=1e-3)
    usual, warm = (run(Standard(), settings=replace(SETTINGS, warm_up_steps=steps))[1] for steps in (0, 6))
    assert usual.rows[0]["train_loss"] < warm.rows[0]["train_loss"]
    assert warm.rows[-1]["train_loss"] == pytest.approx(usual.rows[-1]["train_loss"], rel=0.2)


def test_a_clipped_gradient_has_the_length_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    norms: list[float] = []

    def before_step(self: torch.optim.Adam) -> None:
        gradients = [parameter.grad for group in self.param_groups for parameter in group["params"]]
        norms.append(torch.stack([gradient.norm() for gradient in gradients]).norm().item())

    def run_with(clip_norm: float) -> list[float]:
        norms.clear()
        run(Standard(), settings=replace(SETTINGS, epochs=2, clip_norm=clip_norm))
        return list(norms)

    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: (step(self), before_step(self))[0])
    free, clipped = run_with(0.0), run_with(0.05)
    assert max(free) > 0.05
    assert max(clipped) == pytest.approx(0.05, rel=1e-3)


def test_weights_that_no_sample_uses_do_not_decay_into_numbers_that_are_slow_to_multiply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Adam with weight decay carries them below 1e-38 within 2,000 steps; the training is the same either way."""
    settings = replace(SETTINGS, epochs=400, batch_size=18, learning_rate=5e-4, weight_decay=1e-4, milestones=())
    unused = LabelledFeatures(data().train.features * np.float16([1, 1, 1, 1, 1, 0]), data().train.labels)  # type: ignore[operator]

    def trained() -> tuple[nn.Module, History]:
        whole = network(0)
        next(whole.parameters()).data[:, 5] *= 1e-4
        model = Perceptron(whole, WholeBlock(whole), (), "all")
        return whole, train(model, replace(data(), train=unused), CrossEntropy(unused.labels), (), settings)

    def too_small(model: nn.Module) -> int:
        sizes = next(model.parameters())[:, 5].detach().abs()
        return int(((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).sum())

    model, history = trained()
    assert (torch.tensor(1e-38) * 0.1).item() > 0, "only while it trains"
    monkeypatch.setattr(torch, "set_flush_denormal", lambda on: on)
    slow, as_before = trained()
    assert too_small(slow) > 0 == too_small(model)
    assert history.rows == as_before.rows


def test_settings_that_came_later_rename_no_run() -> None:
    as_before = settings_of(TrainingSettings(head_init="torch"))
    assert not {"head_init", "warm_up_steps", "clip_norm"} & set(as_before)
    assert settings_of(TrainingSettings())["head_init"] == "small", "the default came later too, and is told"
