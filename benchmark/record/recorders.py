"""Signals, and the recorders that listen to training for them. A recorder observes and never disturbs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk.files import new_array
from benchmark.identity import own_file
from benchmark.networks.backbones import SplitModel
from benchmark.record.history import RECORDING, Charge


class Predict:
    """What the network says of the whole training set at the end of an epoch, in evaluation mode and in order.

    Logits are computed when they are first asked for, and then kept for the next who asks.
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
class RunShape:
    epochs: int
    samples: int
    classes: int


@dataclass(frozen=True)
class RunContext:
    """What a recorder may look at."""

    shape: RunShape
    folder: Path  # where its array goes, as `signal.key`.npy
    model: SplitModel
    data: TrainingData
    images: Callable[[int, int], Tensor]  # training images from one index to another, as the network expects them


@dataclass(frozen=True)
class Example:
    """An imagined run in which the network comes to favour the clean class; conformance checks score it."""

    given_labels: np.ndarray
    logits: np.ndarray  # epochs × samples × classes
    generator: np.random.Generator


@dataclass(frozen=True)
class Signal:
    """One array of a record, as a value: kind and parameters together are its name.

    A signal without a recorder is left behind by a recipe.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1  # raise it when values may change
    per_epoch: ClassVar[bool] = False  # the first axis counts epochs

    @property
    def key(self) -> str:
        parameters = [f"{field.name}={getattr(self, field.name)}" for field in fields(self)]
        code = [f"v{self.version}"] if self.version > 1 else []
        code += [own_file(self) or ""] if own_file(self) else []
        return "-".join([self.kind, *parameters, *code]).replace(" ", "").replace("(", "").replace(")", "")

    def recorder(self, context: RunContext) -> "Recorder | None":
        return None

    @classmethod
    def recorders(cls, signals: "Sequence[Self]", context: RunContext) -> "list[Recorder]":
        """Those for all signals of this kind in a run; a kind whose signals can share work overrides this."""
        return [recorder for signal in signals if (recorder := signal.recorder(context)) is not None]

    def bytes_needed(self, shape: RunShape) -> int:
        return 8 * shape.samples * (shape.epochs if self.per_epoch else 1)

    def prefix_passes(self, shape: RunShape) -> int:
        """How often each image goes through the frozen prefix for it, forward or backward; for estimates of time."""
        return 0

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        """What this signal may look like for samples of which some are suspicious (1) and others are not (0)."""
        raise NotImplementedError(f"{type(self).__name__} gives no example of itself, so that nothing can be checked")


class Recorder:
    """Owns one signal, or several of a kind, and hears of the start, every batch, every epoch and the end."""

    name: str = "a recorder without a name"  # the key of its signal

    @property
    def charge(self) -> Charge:
        """Its time is paid by its signal; a recorder of several signals overrides this."""
        return Charge(RECORDING, (self.name,))

    def at_start(self) -> None:
        """Nothing has been trained yet; what is slow is done here, where it is timed, and not when it is made."""

    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        """`logits` are those that the update was computed from."""

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        """Epochs count from 1."""

    def at_end(self) -> None:
        """Everything has been heard: write what is not on disk yet."""


class _LogitsRecorder(Recorder):
    def __init__(self, signal: Signal, context: RunContext) -> None:
        self.name, self.context = signal.key, context

    def at_start(self) -> None:
        shape = self.context.shape.epochs, self.context.shape.samples, self.context.shape.classes
        self.logits_ENK = new_array(self.context.folder / f"{self.name}.npy", shape, np.float32)

    def at_end(self) -> None:
        self.logits_ENK.flush()


class _TrainLogitsRecorder(_LogitsRecorder):
    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        self.logits_ENK[epoch - 1, indices.cpu().numpy()] = logits.cpu().numpy()


class _EvalLogitsRecorder(_LogitsRecorder):
    def after_epoch(self, epoch: int, predict: Predict) -> None:
        self.logits_ENK[epoch - 1] = predict().cpu().numpy()


@dataclass(frozen=True)
class _Logits(Signal):
    per_epoch: ClassVar[bool] = True

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * shape.epochs * shape.samples * shape.classes

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return example.logits


@dataclass(frozen=True)
class TrainLogits(_Logits):
    """Logits as the optimiser saw them, before the update: epochs × samples × classes."""

    kind: ClassVar[str] = "train_logits"

    def recorder(self, context: RunContext) -> Recorder:
        return _TrainLogitsRecorder(self, context)


@dataclass(frozen=True)
class EvalLogits(_Logits):
    """Logits of a clean pass at the end of each epoch: epochs × samples × classes."""

    kind: ClassVar[str] = "eval_logits"

    def recorder(self, context: RunContext) -> Recorder:
        return _EvalLogitsRecorder(self, context)


@torch.no_grad()
def embedding_of(model: SplitModel, split: LabelledFeatures) -> np.ndarray:
    """What the classifier sees of each sample: samples × dimensions."""
    return torch.cat([model.embed(batch).cpu() for batch in split.in_order(256)]).numpy()


class _EmbeddingRecorder(Recorder):
    """Looks at the network before its first update."""

    def __init__(self, signal: Signal, context: RunContext) -> None:
        self.name, self.context = signal.key, context

    def at_start(self) -> None:
        embedding = embedding_of(self.context.model, self.context.data.train)
        new_array(self.context.folder / f"{self.name}.npy", embedding.shape, np.float32)[:] = embedding


@dataclass(frozen=True)
class Embedding(Signal):
    """What the classifier of the pretrained network sees, before any training: samples × dimensions."""

    kind: ClassVar[str] = "embedding"

    def recorder(self, context: RunContext) -> Recorder:
        return _EmbeddingRecorder(self, context)

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * shape.samples * 1024

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return example.logits[-1] + example.generator.normal(0, 1e-3, example.logits[-1].shape)


TRAIN_LOGITS, EVAL_LOGITS, EMBEDDING = TrainLogits(), EvalLogits(), Embedding()
