"""Signals that take a gradient: per-sample gradient norms (GraNd) and the spread of input gradients (VoG)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmark.disk.files import new_array
from benchmark.networks.backbones import SplitModel
from benchmark.record.history import RECORDING, Charge
from benchmark.record.recorders import Example, Predict, Recorder, RunContext, RunShape, Signal

SAMPLES_AT_ONCE = 16  # per-sample gradients of all trained parameters are in memory for that many
IMAGES_AT_ONCE = 32
Parameters = Mapping[str, Tensor]


def gradient_norms(model: SplitModel, features_B: Tensor, labels_B: Tensor) -> Tensor:
    """The norm, over all trained parameters, of each sample's own loss gradient."""
    parameters = {name: parameter.detach() for name, parameter in model.trained().items()}

    def loss(values: Parameters, features: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(model.tail_with(values, features[None]), label[None])

    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels cannot be batched over samples
        gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, features_B, labels_B)
    return torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients.values()]).sum(0).sqrt()


class _GradientNormRecorder(Recorder):
    def __init__(self, signal: "GradientNorms", context: RunContext) -> None:
        self.name, self.context = signal.key, context
        self.epoch = min(signal.epoch or context.shape.epochs, context.shape.epochs)

    def at_start(self) -> None:
        shape = (self.context.shape.samples,)
        self.norms_N = new_array(self.context.folder / f"{self.name}.npy", shape, np.float64)

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if epoch != self.epoch:
            return
        model, split = self.context.model, self.context.data.train
        everyone = torch.arange(self.context.shape.samples, device=split.labels.device)
        for indices, features in split.batches(everyone, SAMPLES_AT_ONCE):
            cached = model.cached(features) if model.is_plain else features
            norms = gradient_norms(model, cached, split.labels[indices])
            self.norms_N[indices.cpu().numpy()] = norms.cpu().numpy()
        self.norms_N.flush()


@dataclass(frozen=True)
class GradientNorms(Signal):
    """Norm of each sample's loss gradient over all trained parameters, at the end of one epoch: samples."""

    kind: ClassVar[str] = "gradient_norms"
    epoch: int | None = 10  # the last if there are fewer, or if none is named

    def recorder(self, context: RunContext) -> Recorder:
        return _GradientNormRecorder(self, context)

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return 1 + suspicion_N + example.generator.random(shape.samples)


class View(NamedTuple):
    """Of an image's gradient: at the end of which epoch, and of which output of the given label."""

    epoch: int
    output: str


def input_gradients(
    model: SplitModel, snapshots: Mapping[int, Parameters], views: Iterable[View], images_B: Tensor, labels_B: Tensor
) -> dict[View, Tensor]:
    """∂ output of the given label / ∂ pixel, averaged over channels: images × height × width for each view.

    The prefix runs forward once and backward once per view; the tail is differentiated on its own.
    """
    images_B = images_B.detach().requires_grad_()
    cached_B = model.cached(images_B)
    leaf_B = cached_B.detach().requires_grad_()
    gradients = {}
    for view in views:
        logits = model.tail_with(snapshots[view.epoch], leaf_B)
        outputs = logits.softmax(1) if view.output == "probability" else logits
        (cotangent,) = torch.autograd.grad(outputs.gather(1, labels_B[:, None]).sum(), leaf_B)
        (gradient,) = torch.autograd.grad(cached_B, images_B, cotangent, retain_graph=True)
        gradients[view] = gradient.mean(1)
    return gradients


class _InputGradientRecorder(Recorder):
    """Keeps the tail's weights at the checkpoints; at the end the images stream through the prefix, once for all."""

    def __init__(self, signals: "Sequence[InputGradientSpread]", context: RunContext) -> None:
        self.context = context
        self.views = {signal: signal.views(context.shape.epochs) for signal in signals}
        self.all_views = tuple(dict.fromkeys(view for views in self.views.values() for view in views))
        self.snapshots: dict[int, Parameters] = {}

    @property
    def charge(self) -> Charge:
        return Charge(RECORDING, tuple(signal.key for signal in self.views))

    def at_start(self) -> None:
        folder, shape = self.context.folder, (self.context.shape.samples,)
        self.spread_N = {signal: new_array(folder / f"{signal.key}.npy", shape, np.float64) for signal in self.views}

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if any(view.epoch == epoch for view in self.all_views):
            trained = self.context.model.trained()
            self.snapshots[epoch] = {name: parameter.detach().clone() for name, parameter in trained.items()}

    def at_end(self) -> None:
        model, labels = self.context.model, self.context.data.train.labels
        for start in range(0, len(labels), IMAGES_AT_ONCE):
            some = slice(start, min(start + IMAGES_AT_ONCE, len(labels)))
            images = self.context.images(some.start, some.stop).to(labels.device)
            gradients = input_gradients(model, self.snapshots, self.all_views, images, labels[some])
            for signal, views in self.views.items():
                spread = torch.stack([gradients[view] for view in views]).std(0, correction=0)
                self.spread_N[signal][some] = spread.mean((1, 2)).cpu().numpy()
        for spread_N in self.spread_N.values():
            spread_N.flush()


@dataclass(frozen=True)
class InputGradientSpread(Signal):
    """Standard deviation over checkpoints of the input gradient, per pixel, averaged over pixels: samples."""

    kind: ClassVar[str] = "input_gradient_spread"
    stage: Literal["early", "late", "all"] = "early"
    checkpoints: int = 3
    at_epochs: tuple[int, ...] = ()  # these instead of a stage
    output: Literal["logit", "probability"] = "logit"

    def prefix_passes(self, shape: RunShape) -> int:
        return 1 + 2 * len(self.epochs_of(shape.epochs))  # a backward pass takes about two forward ones

    def epochs_of(self, epochs: int) -> tuple[int, ...]:
        """The first, the last or evenly spread epochs of a run."""
        if self.at_epochs:
            return tuple(epoch for epoch in self.at_epochs if epoch <= epochs)
        count = min(self.checkpoints, epochs)
        if self.stage == "all":
            return tuple(dict.fromkeys(np.linspace(1, epochs, count).round().astype(int).tolist()))
        return tuple(range(1, count + 1)) if self.stage == "early" else tuple(range(epochs - count + 1, epochs + 1))

    def views(self, epochs: int) -> tuple[View, ...]:
        return tuple(View(epoch, self.output) for epoch in self.epochs_of(epochs))

    def recorder(self, context: RunContext) -> Recorder:
        return _InputGradientRecorder([self], context)

    @classmethod
    def recorders(cls, signals: Sequence[Self], context: RunContext) -> list[Recorder]:
        return [_InputGradientRecorder(signals, context)]

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return 1 + suspicion_N + example.generator.random(shape.samples)
