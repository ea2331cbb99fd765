"""Signals that take a gradient: per-sample gradient norms (GraNd) and the spread of input gradients (VoG)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmark.backbones import SplitModel
from benchmark.recorders import Example, Predict, Recorder, RunContext, RunShape, Signal
from benchmark.storage import new_array

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
        self.signal, self.context = signal, context
        self.epoch = min(signal.epoch or context.shape.epochs, context.shape.epochs)
        self.norms_N = new_array(context.folder / f"{signal.key}.npy", (context.shape.samples,), np.float64)

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if epoch != self.epoch:
            return
        split = self.context.data.train
        everyone = torch.arange(self.context.shape.samples, device=split.labels.device)
        for indices in torch.split(everyone, SAMPLES_AT_ONCE):
            norms = gradient_norms(self.context.model, split.gather(indices), split.labels[indices])
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


def input_gradients(
    model: SplitModel, snapshots: list[Parameters], images_B: Tensor, labels_B: Tensor, output: str
) -> Tensor:
    """∂ output of the given label / ∂ pixel for each snapshot of the tail, averaged over channels.

    The prefix runs forward once and backward once per snapshot: snapshots × images × height × width.
    """
    images_B = images_B.detach().requires_grad_()
    features_B = model.prefix(images_B)
    gradients = []
    for snapshot in snapshots:
        logits = model.tail_with(snapshot, features_B)
        outputs = logits.softmax(1) if output == "probability" else logits
        chosen = outputs.gather(1, labels_B[:, None]).sum()
        (gradient,) = torch.autograd.grad(chosen, images_B, retain_graph=True)
        gradients.append(gradient.mean(1))
    return torch.stack(gradients)


class _InputGradientRecorder(Recorder):
    """Keeps the tail's weights at its checkpoints; at the end the images stream once through the prefix."""

    def __init__(self, signal: "InputGradientSpread", context: RunContext) -> None:
        self.signal, self.context, self.output = signal, context, signal.output
        self.checkpoints = signal.epochs_of(context.shape.epochs)
        self.snapshots: list[Parameters] = []
        self.spread_N = new_array(context.folder / f"{signal.key}.npy", (context.shape.samples,), np.float64)

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if epoch in self.checkpoints:
            trained = self.context.model.trained()
            self.snapshots.append({name: parameter.detach().clone() for name, parameter in trained.items()})

    def at_end(self) -> None:
        labels = self.context.data.train.labels
        for start in range(0, len(labels), IMAGES_AT_ONCE):
            stop = min(start + IMAGES_AT_ONCE, len(labels))
            images = self.context.images(start, stop).to(labels.device)
            gradients = input_gradients(self.context.model, self.snapshots, images, labels[start:stop], self.output)
            self.spread_N[start:stop] = gradients.std(0, correction=0).mean((1, 2)).cpu().numpy()
        self.spread_N.flush()


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

    def recorder(self, context: RunContext) -> Recorder:
        return _InputGradientRecorder(self, context)

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return 1 + suspicion_N + example.generator.random(shape.samples)
