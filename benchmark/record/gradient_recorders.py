"""Recorders that take a gradient: per-sample gradient norms (GraNd) and the spread of input gradients (VoG)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmark.disk import new_array
from benchmark.networks.split_model import SplitModel
from benchmark.record.history import RECORDING, Charge
from benchmark.record.recorders import Predict, Recorder, RunContext

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


class GradientNormRecorder(Recorder):
    def __init__(self, name: str, context: RunContext, epoch: int) -> None:
        super().__init__(name, context)
        self.epoch = epoch

    def at_start(self) -> None:
        self.norms_N = self.new_array((self.context.shape.samples,), np.float64)

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


class InputGradientRecorder(Recorder):
    """Keeps the tail's weights at the checkpoints; at the end the images stream through the prefix, once for all."""

    def __init__(self, views: Mapping[str, Sequence[View]], context: RunContext) -> None:
        super().__init__(" and ".join(views), context)
        self.views = views  # of each signal, by its key
        self.all_views = tuple(dict.fromkeys(view for of_signal in views.values() for view in of_signal))
        self.snapshots: dict[int, Parameters] = {}

    @property
    def charge(self) -> Charge:
        return Charge(RECORDING, tuple(self.views))

    def at_start(self) -> None:
        folder, shape = self.context.folder, (self.context.shape.samples,)
        self.spread_N = {key: new_array(folder / f"{key}.npy", shape, np.float64) for key in self.views}

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        if any(view.epoch == epoch for view in self.all_views):
            trained = self.context.model.trained()
            self.snapshots[epoch] = {name: parameter.detach().clone() for name, parameter in trained.items()}

    def at_end(self) -> None:
        model, labels = self.context.model, self.context.data.train.labels
        for start in range(0, len(labels), IMAGES_AT_ONCE):
            window = slice(start, min(start + IMAGES_AT_ONCE, len(labels)))
            images = self.context.images(window.start, window.stop).to(labels.device)
            gradients = input_gradients(model, self.snapshots, self.all_views, images, labels[window])
            for key, views in self.views.items():
                spread = torch.stack([gradients[view] for view in views]).std(0, correction=0)
                self.spread_N[key][window] = spread.mean((1, 2)).cpu().numpy()
        for spread_N in self.spread_N.values():
            spread_N.flush()
