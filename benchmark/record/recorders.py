"""Recorders listen to training, each for one signal. A recorder observes and never disturbs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk import new_array
from benchmark.networks.split_model import SplitModel
from benchmark.record.history import RECORDING, Charge, RunShape
from benchmark.record.summary import SUMMARY, summarise

SAMPLES_AT_ONCE = 16  # per-sample gradients of all trained parameters are in memory for that many
IMAGES_AT_ONCE = 32
Parameters = Mapping[str, Tensor]


class Predict:
    """The network's logits for the whole training set at the end of an epoch, in evaluation mode and in order.

    They are computed at the first call, and kept for the next caller.
    """

    def __init__(self, logits_by_batch: Callable[[], Iterable[Tensor]]) -> None:
        self._by_batch = logits_by_batch
        self._logits: Tensor | None = None

    def __call__(self) -> Tensor:
        if self._logits is None:
            self._logits = torch.cat(list(self._by_batch()))
        return self._logits

    def classes(self) -> Tensor:
        """The class of each sample, without holding the logits of all of them."""
        batches = self._by_batch() if self._logits is None else [self._logits]
        return torch.cat([logits.argmax(1) for logits in batches])


@dataclass(frozen=True)
class RunContext:
    """What a recorder may look at."""

    shape: RunShape
    folder: Path  # where its array goes, as `signal.key`.npy
    model: SplitModel
    data: TrainingData
    images: Callable[[int, int], Tensor]  # training images from one index to another, as the network expects them


class Recorder:
    """Owns one signal, or several of a kind, and hears of the start, every batch, every epoch and the end."""

    def __init__(self, context: RunContext, *keys: str) -> None:
        self.context, self.keys = context, keys  # of its signals, which pay for its time

    def charge(self, epoch: int | None = None) -> Charge:
        """Who pays for its time in an epoch, or at the start and the end."""
        return Charge(RECORDING, self.keys)

    def new_array(self, shape: tuple[int, ...], dtype: type | np.dtype, key: str | None = None) -> np.memmap:
        """The array of a signal on disk, to be filled; that of its only one if none is named."""
        return new_array(self.context.folder / f"{key or self.keys[0]}.npy", shape, dtype)

    def at_start(self) -> None:
        """Nothing has been trained yet; what is slow is done here, where it is timed, and not when it is made."""

    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        """`logits` are those that the update was computed from."""

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        """Epochs count from 1."""

    def at_end(self) -> None:
        """Training has ended: write what is not on disk yet."""


class _LogitsRecorder(Recorder):
    """Of all signals of one moment; those that have an epoch share its cost."""

    def __init__(
        self, context: RunContext, epochs: Mapping[str, Sequence[int]], is_summary: Mapping[str, bool]
    ) -> None:
        super().__init__(context, *epochs)
        self.epochs = epochs  # of each signal, by its key
        self.is_summary = is_summary  # or logits, of those that have an array of their own

    def charge(self, epoch: int | None = None) -> Charge:
        readers = tuple(key for key, epochs in self.epochs.items() if epoch in epochs)
        return Charge(RECORDING, readers or self.keys)

    def at_start(self) -> None:
        samples, classes = self.context.shape.samples, self.context.shape.classes
        self.arrays = {
            key: self.new_array((len(self.epochs[key]), samples), SUMMARY, key)
            if is_summary
            else self.new_array((len(self.epochs[key]), samples, classes), np.float32, key)
            for key, is_summary in self.is_summary.items()
        }

    def record(self, epoch: int, indices: Tensor, logits: Callable[[], Tensor]) -> None:
        """Of some samples; nothing is computed if no signal has this epoch."""
        made: dict[bool, np.ndarray] = {}
        for key, array in self.arrays.items():
            if epoch not in self.epochs[key]:
                continue
            if (is_summary := self.is_summary[key]) not in made:
                labels = self.context.data.train.labels[indices]
                made[is_summary] = summarise(logits(), labels) if is_summary else logits().cpu().numpy()
            array[self.epochs[key].index(epoch)][indices.cpu().numpy()] = made[is_summary]

    def at_end(self) -> None:
        for array in self.arrays.values():
            array.flush()


class TrainLogitsRecorder(_LogitsRecorder):
    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        self.record(epoch, indices, lambda: logits)


class EvalLogitsRecorder(_LogitsRecorder):
    def after_epoch(self, epoch: int, predict: Predict) -> None:
        self.record(epoch, torch.arange(self.context.shape.samples), predict)


@torch.no_grad()
def embedding_of(model: SplitModel, split: LabelledFeatures) -> np.ndarray:
    """What the classifier sees of each sample: samples × dimensions."""
    return torch.cat([model.embed(batch).cpu() for batch in split.in_order(256)]).numpy()


class EmbeddingRecorder(Recorder):
    """Looks at the network once: before its first update, or at the end of an epoch."""

    def __init__(self, context: RunContext, key: str, epoch: int) -> None:
        super().__init__(context, key)
        self.epoch = epoch

    def at_start(self) -> None:
        if self.epoch == 0:
            self._record()

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if epoch == self.epoch:
            self._record()

    def _record(self) -> None:
        embedding = embedding_of(self.context.model, self.context.data.train)
        self.new_array(embedding.shape, np.float32)[:] = embedding


def gradient_norms(model: SplitModel, features_B: Tensor, labels_B: Tensor) -> Tensor:
    """The norm, over all trained parameters, of each sample's own loss gradient."""
    parameters = {name: parameter.detach() for name, parameter in model.trained().items()}

    def loss(values: Parameters, features: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(model.tail_with(values, features[None]), label[None])

    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels cannot be batched over samples
        gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, features_B, labels_B)
    return torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients.values()]).sum(0).sqrt()


def all_gradient_norms(model: SplitModel, split: LabelledFeatures) -> Tensor:
    """Of all samples, over all trained parameters."""
    everyone, norms = torch.arange(len(split.labels), device=split.labels.device), list[Tensor]()
    for indices, features in split.batches(everyone, SAMPLES_AT_ONCE):
        cached = model.cached(features) if model.is_plain else features
        norms.append(gradient_norms(model, cached, split.labels[indices]))
    return torch.cat(norms)


@torch.no_grad()
def head_gradient_norms(model: SplitModel, split: LabelledFeatures, logits_NK: Tensor) -> Tensor:
    """Of all samples, over a linear classifier alone: its weights' gradient is (p − e_ỹ)·hᵀ, its bias's p − e_ỹ."""
    squares_N = torch.cat([model.embed(batch).double().square().sum(1) for batch in split.in_order(256)])
    error_NK = logits_NK.double().softmax(1) - F.one_hot(split.labels, logits_NK.shape[1])
    return ((squares_N + 1) * error_NK.square().sum(1)).sqrt()


class GradientNormRecorder(Recorder):
    def __init__(self, context: RunContext, key: str, epoch: int) -> None:
        super().__init__(context, key)
        self.epoch = epoch

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if epoch != self.epoch:
            return
        norms_N = self.new_array((self.context.shape.samples,), np.float64)
        norms_N[:] = all_gradient_norms(self.context.model, self.context.data.train).cpu().numpy()
        norms_N.flush()


class CheckpointGradientNormRecorder(Recorder):
    def __init__(self, context: RunContext, key: str, epochs: Sequence[int], is_classifier_alone: bool) -> None:
        super().__init__(context, key)
        self.epochs, self.is_classifier_alone = epochs, is_classifier_alone

    def at_start(self) -> None:
        self.norms_EN = self.new_array((len(self.epochs), self.context.shape.samples), np.float64)

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if epoch not in self.epochs:
            return
        about = self.context.model, self.context.data.train
        norms = head_gradient_norms(*about, predict()) if self.is_classifier_alone else all_gradient_norms(*about)
        self.norms_EN[self.epochs.index(epoch)] = norms.cpu().numpy()

    def at_end(self) -> None:
        self.norms_EN.flush()


class View(NamedTuple):
    """Of an image's gradient: at the end of which epoch, and of which output of the given label."""

    epoch: int
    output: str


def input_gradients(
    model: SplitModel, snapshots: Mapping[int, Parameters], views: Iterable[View], images_B: Tensor, labels_B: Tensor
) -> dict[View, Tensor]:
    """∂ output of the given label / ∂ pixel: images × channels × height × width for each view.

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
        (gradients[view],) = torch.autograd.grad(cached_B, images_B, cotangent, retain_graph=True)
    return gradients


class InputGradientRecorder(Recorder):
    """Keeps the tail's weights at the checkpoints; at the end the images stream through the prefix, once for all."""

    def __init__(
        self, context: RunContext, views: Mapping[str, Sequence[View]], separate_channels: Collection[str] = ()
    ) -> None:
        super().__init__(context, *views)
        self.views, self.separate_channels = views, separate_channels  # of each signal, by its key; keys of signals
        self.all_views = tuple(dict.fromkeys(chain.from_iterable(views.values())))
        self.snapshots: dict[int, Parameters] = {}

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if any(view.epoch == epoch for view in self.all_views):
            trained = self.context.model.trained()
            self.snapshots[epoch] = {name: parameter.detach().clone() for name, parameter in trained.items()}

    def at_end(self) -> None:
        model, labels = self.context.model, self.context.data.train.labels
        spread_N = {key: np.empty(len(labels)) for key in self.views}
        for start in range(0, len(labels), IMAGES_AT_ONCE):
            window = slice(start, min(start + IMAGES_AT_ONCE, len(labels)))
            images = self.context.images(window.start, window.stop).to(labels.device)
            gradients = input_gradients(model, self.snapshots, self.all_views, images, labels[window])
            for key, views in self.views.items():
                maps = [gradients[view] if key in self.separate_channels else gradients[view].mean(1) for view in views]
                spread = torch.stack(maps).std(0, correction=0)
                spread_N[key][window] = spread.flatten(1).mean(1).cpu().numpy()
        for key, values_N in spread_N.items():
            np.save(self.context.folder / f"{key}.npy", values_N)
