"""Recorders listen to training, each for one signal. A recorder observes and never disturbs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk import new_array
from benchmark.networks.split_model import SplitModel
from benchmark.record.history import RECORDING, Charge
from benchmark.record.shape import RunShape


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

    name: str = "unnamed"  # the key of its signal

    def __init__(self, name: str, context: RunContext) -> None:
        self.name, self.context = name, context

    @property
    def charge(self) -> Charge:
        """Its time is paid by its signal; a recorder of several signals overrides this."""
        return Charge(RECORDING, (self.name,))

    def new_array(self, shape: tuple[int, ...], dtype: type) -> np.memmap:
        """The signal's array on disk, to be filled."""
        return new_array(self.context.folder / f"{self.name}.npy", shape, dtype)

    def at_start(self) -> None:
        """Nothing has been trained yet; what is slow is done here, where it is timed, and not when it is made."""

    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        """`logits` are those that the update was computed from."""

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        """Epochs count from 1."""

    def at_end(self) -> None:
        """Training has ended: write what is not on disk yet."""


class _LogitsRecorder(Recorder):
    def at_start(self) -> None:
        shape = self.context.shape.epochs, self.context.shape.samples, self.context.shape.classes
        self.logits_ENK = self.new_array(shape, np.float32)

    def at_end(self) -> None:
        self.logits_ENK.flush()


class TrainLogitsRecorder(_LogitsRecorder):
    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        self.logits_ENK[epoch - 1, indices.cpu().numpy()] = logits.cpu().numpy()


class EvalLogitsRecorder(_LogitsRecorder):
    def after_epoch(self, epoch: int, predict: Predict) -> None:
        self.logits_ENK[epoch - 1] = predict().cpu().numpy()


@torch.no_grad()
def embedding_of(model: SplitModel, split: LabelledFeatures) -> np.ndarray:
    """What the classifier sees of each sample: samples × dimensions."""
    return torch.cat([model.embed(batch).cpu() for batch in split.in_order(256)]).numpy()


class EmbeddingRecorder(Recorder):
    """Looks at the network before its first update."""

    def at_start(self) -> None:
        embedding = embedding_of(self.context.model, self.context.data.train)
        self.new_array(embedding.shape, np.float32)[:] = embedding
