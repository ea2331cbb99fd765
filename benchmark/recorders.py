"""Signals, and the recorders that listen to training for them. A recorder observes and never disturbs."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import Tensor

from benchmark.storage import new_array

Predict = Callable[[], Tensor]  # logits of the whole training set in evaluation mode, computed at most once per epoch


@dataclass(frozen=True)
class RunShape:
    epochs: int
    samples: int
    classes: int


@dataclass(frozen=True)
class Signal:
    """One array of a record, as a value: kind and parameters together are its name.

    A signal without a recorder is left behind by a recipe's objective.
    """

    kind: ClassVar[str]
    per_epoch: ClassVar[bool] = False  # the first axis counts epochs

    @property
    def key(self) -> str:
        parameters = [f"{field.name}={getattr(self, field.name)}" for field in fields(self)]
        return "-".join([self.kind, *parameters])

    def recorder(self, shape: RunShape, folder: Path) -> "Recorder | None":
        return None

    def bytes_needed(self, shape: RunShape) -> int:
        return 8 * shape.samples * (shape.epochs if self.per_epoch else 1)


class Recorder:
    """Owns one signal and hears of every batch, every epoch and the end."""

    signal: Signal

    def after_batch(self, epoch: int, indices: Tensor, logits: Tensor) -> None:
        """`logits` are those that the update was computed from."""

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        """Epochs count from 1."""

    def at_end(self) -> None:
        """Everything has been heard: write what is not on disk yet."""


class _LogitsRecorder(Recorder):
    def __init__(self, signal: Signal, shape: RunShape, folder: Path) -> None:
        self.signal = signal
        self.logits_ENK = new_array(
            folder / f"{signal.key}.npy", (shape.epochs, shape.samples, shape.classes), np.float32
        )

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


@dataclass(frozen=True)
class TrainLogits(_Logits):
    """Logits as the optimiser saw them, before the update: epochs × samples × classes."""

    kind: ClassVar[str] = "train_logits"

    def recorder(self, shape: RunShape, folder: Path) -> Recorder:
        return _TrainLogitsRecorder(self, shape, folder)


@dataclass(frozen=True)
class EvalLogits(_Logits):
    """Logits of a clean pass at the end of each epoch: epochs × samples × classes."""

    kind: ClassVar[str] = "eval_logits"

    def recorder(self, shape: RunShape, folder: Path) -> Recorder:
        return _EvalLogitsRecorder(self, shape, folder)


TRAIN_LOGITS = TrainLogits()
EVAL_LOGITS = EvalLogits()
