"""The loop: repeatable, undisturbed by recorders, and honest in what it records."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from benchmark.recorders import EVAL_LOGITS, TRAIN_LOGITS, Recorder, RunShape
from benchmark.training import History, LabelledFeatures, Recipe, Standard, TrainingData, TrainingSettings, train
from detectors.linc import LiNCRecipe

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


def run(recipe: Recipe, recorders: list[Recorder], settings: TrainingSettings = SETTINGS) -> tuple[nn.Module, History]:
    torch.manual_seed(settings.seed)
    tail = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    everything = data()
    objective = recipe.objective(everything, settings)
    return tail, train(tail, list(tail.parameters()), everything, objective, recorders, settings)


def recorders(folder: Path) -> list[Recorder]:
    return [signal.recorder(RunShape(SETTINGS.epochs, 90, 3), folder) for signal in (TRAIN_LOGITS, EVAL_LOGITS)]


@pytest.mark.parametrize("recipe", [Standard(), LiNCRecipe()], ids=lambda recipe: recipe.name)
def test_recorders_observe_and_never_disturb(recipe: Recipe, tmp_path: Path) -> None:
    alone, plain = run(recipe, [])
    watched, recorded = run(recipe, recorders(tmp_path))
    for (name, one), (_, other) in zip(alone.state_dict().items(), watched.state_dict().items(), strict=True):
        assert torch.equal(one, other), name
    assert plain.rows == recorded.rows


def test_eval_logits_are_those_of_the_finished_epoch_and_train_logits_those_before_each_update(tmp_path: Path) -> None:
    class Witness(Recorder):
        """Keeps what the loop hands out, and what the network says right after the update."""

        signal = TRAIN_LOGITS

        def __init__(self) -> None:
            self.batches: list[tuple[int, np.ndarray, np.ndarray]] = []

        def after_batch(self, epoch: int, indices: torch.Tensor, logits: torch.Tensor) -> None:
            self.batches.append((epoch, indices.numpy(), logits.numpy()))

    witness = Witness()
    tail, _ = run(Standard(), [*recorders(tmp_path), witness])
    train_logits_ENK = np.load(tmp_path / "train_logits.npy")
    eval_logits_ENK = np.load(tmp_path / "eval_logits.npy")
    assert sum(len(indices) for _, indices, _ in witness.batches) == SETTINGS.epochs * 90
    for epoch, indices, logits in witness.batches:
        assert (train_logits_ENK[epoch - 1, indices] == logits).all()
    with torch.no_grad():
        now = tail(torch.from_numpy(data().train.features).float()).numpy()
    np.testing.assert_allclose(eval_logits_ENK[-1], now, rtol=1e-5, atol=1e-6)
    torch.manual_seed(SETTINGS.seed)
    fresh = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    first = witness.batches[0][1]
    with torch.no_grad():
        before = fresh(torch.from_numpy(data().train.features[first]).float()).numpy()
    np.testing.assert_allclose(train_logits_ENK[0, first], before, rtol=1e-5, atol=1e-6)


def test_the_loop_is_the_papers_optimiser_and_schedule() -> None:
    """Against the same thing written out: Adam with weight decay, MultiStepLR, mean cross-entropy."""
    from benchmark.seeds import torch_generator

    settings = TrainingSettings(epochs=3, batch_size=32, milestones=(1, 2), learning_rate=0.01)
    tail, _ = run(Standard(), [], settings)
    torch.manual_seed(settings.seed)
    other = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
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
    tail, history = run(Standard(), [])
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
