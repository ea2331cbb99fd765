"""VoG and GraNd against brute force: the whole model, sample by sample, plain autograd."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.networks import Backbone
from benchmark.networks.loading import untrained_backbone
from benchmark.networks.split_model import SplitModel
from benchmark.record import EMBEDDING, CheckpointGradientNorms, Embedding, RunShape, Signal
from benchmark.record.recorders import RunContext
from benchmark.record.signals import GradientNorms, InputGradientSpread
from benchmark.training import CrossEntropy, TrainingSettings
from benchmark.training.loop import train

MODELS = [("tf_efficientnet_lite0", 64), ("vit_tiny_patch16_224", 32), ("vit_small_patch14_dinov2", 28)]
SIZE_OF = dict(MODELS)
N, EPOCHS, CLASSES = 12, 5, 3


def _cases() -> Iterator[Any]:
    """Every network on both paths; the plain path of a network is long."""
    for model in MODELS:
        for path in ("fast", "plain"):
            yield pytest.param((*model, path), marks=[pytest.mark.long] if path == "plain" else [])


@pytest.fixture(params=_cases(), ids=lambda model: model[::2])
def split(request: pytest.FixtureRequest) -> SplitModel:
    torch.manual_seed(0)
    name, size, path = request.param
    return untrained_backbone(Backbone(name, size), CLASSES, is_plain=path == "plain")


def image_size(split: SplitModel) -> int:
    return SIZE_OF[split.model.pretrained_cfg["architecture"]]


States = list[dict[str, torch.Tensor]]


def recorded(
    split: SplitModel, signal: Signal, folder: Path, *others: Signal
) -> tuple[np.ndarray, States, torch.Tensor, torch.Tensor]:
    """The signal of a short training, the whole model's weights after each epoch, images and labels.

    Other signals of its kind may be recorded beside it.
    """
    size = image_size(split)
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(N, 3, size, size, generator=generator)
    labels = torch.randint(0, CLASSES, (N,), generator=generator)
    with torch.no_grad():
        everyone = LabelledFeatures(split.features(images).numpy(), labels)
    data = TrainingData(everyone, everyone, everyone, CLASSES)
    context = RunContext(RunShape(EPOCHS, N, CLASSES), folder, split, data, lambda start, stop: images[start:stop])
    recorders = type(signal).recorders([signal, *others], context)
    assert recorders
    states: States = []

    def keep(epoch: int) -> None:
        states.append({name: tensor.clone() for name, tensor in split.model.state_dict().items()})

    settings = TrainingSettings(epochs=EPOCHS, batch_size=4, learning_rate=1e-3)
    train(split, data, CrossEntropy(labels), recorders, settings, keep)
    return np.load(folder / f"{signal.key}.npy"), states, images, labels


@pytest.mark.parametrize("epoch", [3, None])
def test_gradient_norms_are_those_of_the_whole_model(split: SplitModel, tmp_path: Path, epoch: int | None) -> None:
    norms, states, images, labels = recorded(split, GradientNorms(epoch), tmp_path)
    split.model.load_state_dict(states[(epoch or EPOCHS) - 1])
    for i in range(N):
        split.model.zero_grad()
        F.cross_entropy(split.model(images[i : i + 1]), labels[i : i + 1]).backward()
        brute = torch.stack([parameter.grad.square().sum() for parameter in split.trained().values()]).sum().sqrt()
        assert norms[i] == pytest.approx(brute.item(), rel=1e-4)


@pytest.mark.parametrize("parameters", ["classifier", "all trained"])
def test_gradient_norms_at_checkpoints_are_those_of_the_classifier_or_of_all(
    split: SplitModel, tmp_path: Path, parameters: str
) -> None:
    signal = CheckpointGradientNorms(2, parameters)
    norms, states, images, labels = recorded(split, signal, tmp_path)
    assert signal.epochs_of(EPOCHS) == [2, 5]
    for row, epoch in enumerate((2, 5)):
        split.model.load_state_dict(states[epoch - 1])
        of_classifier = list(split.model.get_classifier().parameters())
        counted = of_classifier if parameters == "classifier" else list(split.trained().values())
        for i in range(N):
            split.model.zero_grad()
            F.cross_entropy(split.model(images[i : i + 1]), labels[i : i + 1]).backward()
            brute = torch.stack([parameter.grad.square().sum() for parameter in counted]).sum().sqrt()
            assert norms[row, i] == pytest.approx(brute.item(), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("signal", "epochs"),
    [
        (InputGradientSpread(), (1, 2, 3)),
        (InputGradientSpread(stage="late", checkpoints=2), (4, 5)),
        (InputGradientSpread(at_epochs=(1, 3, 5), output="probability"), (1, 3, 5)),
        (InputGradientSpread(channels="separate"), (1, 2, 3)),
    ],
)
def test_input_gradient_spread_is_that_of_the_whole_model(
    split: SplitModel, tmp_path: Path, signal: InputGradientSpread, epochs: tuple[int, ...]
) -> None:
    spread, states, images, labels = recorded(split, signal, tmp_path)
    for i in range(N):
        maps = []
        for epoch in epochs:
            split.model.load_state_dict(states[epoch - 1])
            pixel = images[i : i + 1].clone().requires_grad_()
            outputs = split.model(pixel)
            outputs = outputs.softmax(1) if signal.output == "probability" else outputs
            outputs[0, labels[i]].backward()
            gradient = pixel.grad[0].double().numpy()
            maps.append(gradient.mean(axis=0) if signal.channels == "mean" else gradient)
        brute = np.std(maps, axis=0).mean()
        assert spread[i] == pytest.approx(brute, rel=1e-4)


def test_signals_of_a_kind_share_one_stream_and_stay_what_they_are(
    split: SplitModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward_passes = []
    original = SplitModel.cached
    monkeypatch.setattr(SplitModel, "cached", lambda self, images: forward_passes.append(1) or original(self, images))
    other = InputGradientSpread(at_epochs=(1, 3, 5), output="probability")
    signals = InputGradientSpread(), other, replace(other, channels="separate")
    before = {name: tensor.clone() for name, tensor in split.model.state_dict().items()}
    (tmp_path / "together").mkdir()
    recorded(split, signals[0], tmp_path / "together", *signals[1:])
    together = len(forward_passes)
    for signal in signals:
        split.model.load_state_dict(before)
        alone = recorded(split, signal, tmp_path)[0]
        np.testing.assert_array_equal(np.load(tmp_path / "together" / f"{signal.key}.npy"), alone)
    assert len(forward_passes) == 4 * together


def test_a_signals_name_has_a_field_that_was_added_later_only_if_it_is_used() -> None:
    """Records from before keep the names of their files."""
    assert InputGradientSpread().key == "input_gradient_spread-stage=early-checkpoints=3-at_epochs=-output=logit"
    assert InputGradientSpread(channels="separate").key == f"{InputGradientSpread().key}-channels=separate"


def test_checkpoints_of_each_stage() -> None:
    assert InputGradientSpread("early", 3).epochs_of(30) == (1, 2, 3)
    assert InputGradientSpread("late", 3).epochs_of(30) == (28, 29, 30)
    assert InputGradientSpread("all", 3).epochs_of(30) == (1, 16, 30)
    assert InputGradientSpread("early", 3).epochs_of(2) == (1, 2)
    assert InputGradientSpread(at_epochs=(1, 3, 5)).epochs_of(4) == (1, 3)


@pytest.mark.parametrize(("after_epoch", "row"), [(0, None), (2, 1), (9, EPOCHS - 1)])
def test_embedding_is_what_the_classifier_sees(
    split: SplitModel, tmp_path: Path, after_epoch: int, row: int | None
) -> None:
    """Before training, after an epoch, or after the last one if there are fewer."""
    seen: list[torch.Tensor] = []
    classifier = split.model.get_classifier()
    untouched = {name: tensor.clone() for name, tensor in split.model.state_dict().items()}
    embedding, states, images, _ = recorded(split, Embedding(after_epoch), tmp_path)
    split.model.load_state_dict(untouched if row is None else states[row])
    hook = classifier.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().clone()))
    with torch.no_grad():
        split.model(images)
    hook.remove()
    np.testing.assert_allclose(embedding, seen[0], rtol=1e-4, atol=1e-5)
    assert Embedding().key == EMBEDDING.key == "embedding"
