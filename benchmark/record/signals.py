"""Signals: the arrays of a record, as values. Each knows its recorder, which is loaded when a run begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from benchmark.identity import is_as_before, later, own_file
from benchmark.record.history import RunShape
from benchmark.record.summary import SUMMARY, summarise

if TYPE_CHECKING:
    from benchmark.record.recorders import Recorder, RunContext


@dataclass(frozen=True)
class Example:
    """An imagined run in which the network comes to favour the clean class; conformance checks score it."""

    given_labels: np.ndarray
    logits: np.ndarray  # epochs × samples × classes
    generator: np.random.Generator


@dataclass(frozen=True)
class Signal:
    """One array of a record, as a value: kind and parameters together are its name.

    It has one number per sample, or per epoch and sample, unless it says otherwise. A signal without a recorder is
    left behind by a recipe.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1  # raise it when values may change
    per_epoch: ClassVar[bool] = False  # the first axis counts epochs

    @property
    def key(self) -> str:
        values = {field: getattr(self, field.name) for field in fields(self)}
        parameters = [f"{field.name}={value}" for field, value in values.items() if not is_as_before(field, value)]
        version = f"v{self.version}" if self.version > 1 else None
        parts = filter(None, (self.kind, *parameters, version, own_file(self)))
        return "-".join(parts).replace(" ", "").replace("(", "").replace(",)", "").replace(")", "")

    @property
    def whole(self) -> Signal:
        """The signal that this one is a part of, and can be read from; itself if it is no part."""
        return self

    @property
    def sources(self) -> tuple[Signal, ...]:
        """The signals from which it can be read, itself first."""
        return (self, self.whole)

    @property
    def recorded_with(self) -> type[Signal]:
        """The kind of signals with which it shares a recorder."""
        return type(self)

    def epochs_of(self, epochs: int) -> Sequence[int]:
        """At which epochs of a run of so many it is recorded."""
        return range(1, epochs + 1)

    def recorder(self, context: RunContext) -> Recorder | None:
        return None

    @classmethod
    def recorders(cls, signals: Sequence[Any], context: RunContext) -> list[Recorder]:
        """Those for all signals of this kind in a run; a kind whose signals can share work overrides this."""
        return [recorder for signal in signals if (recorder := signal.recorder(context)) is not None]

    def bytes_needed(self, shape: RunShape) -> int:
        return 8 * shape.samples * (shape.epochs if self.per_epoch else 1)

    def prefix_passes(self, shape: RunShape) -> int:
        """How often each image goes through the frozen prefix for it, forward or backward; for estimates of time."""
        return 0

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        """What this signal may look like for samples of which some are suspicious (1) and others are not (0)."""
        size = (shape.epochs, shape.samples) if self.per_epoch else shape.samples
        return 1 + suspicion_N + example.generator.random(size)


def kinds_of_signals(of: type[Signal] = Signal) -> list[str]:
    """Of all signals that are defined, in this file and by recipes."""
    kinds = [of.kind] if hasattr(of, "kind") else []
    return kinds + [kind for own in of.__subclasses__() for kind in kinds_of_signals(own)]


def recorders_of(signals: Iterable[Signal], context: RunContext) -> list[Recorder]:
    """Recorders for all these signals; signals of one kind may share a recorder."""
    by_kind: dict[type[Signal], list[Signal]] = {}
    for signal in signals:
        by_kind.setdefault(signal.recorded_with, []).append(signal)
    return [recorder for kind, of_kind in by_kind.items() for recorder in kind.recorders(of_kind, context)]


def without_parts(signals: Sequence[Signal]) -> list[Signal]:
    """Those that are stored: a part is read from its whole, if that is among them."""
    return [signal for signal in signals if signal.whole == signal or signal.whole not in signals]


@dataclass(frozen=True)
class _Logits(Signal):
    """Of every epoch, or of those that its reader names: then nothing is computed at the others."""

    per_epoch: ClassVar[bool] = True
    at_epochs: tuple[int, ...] | None = field(default=None, metadata=later(1))  # 0 is the last, −1 the one before

    @property
    def whole(self) -> Signal:
        return type(self)()

    def epochs_of(self, epochs: int) -> Sequence[int]:
        """Epochs that a short run does not have are its first or last."""
        if self.at_epochs is None:
            return super().epochs_of(epochs)
        counted = [epoch if epoch > 0 else epochs + epoch for epoch in self.at_epochs]
        return sorted({min(max(1, epoch), epochs) for epoch in counted})

    def recorder(self, context: RunContext) -> Recorder:
        return self.recorders([self], context)[0]

    @classmethod
    def recorders(cls, signals: Sequence[Any], context: RunContext) -> list[Recorder]:
        from benchmark.record.recorders import EvalLogitsRecorder, TrainLogitsRecorder

        epochs = {signal.key: signal.epochs_of(context.shape.epochs) for signal in signals}
        is_summary = {signal.key: isinstance(signal, _Summary) for signal in without_parts(signals)}
        kind = TrainLogitsRecorder if issubclass(signals[0].recorded_with, TrainLogits) else EvalLogitsRecorder
        return [kind(context, epochs, is_summary)]

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * len(self.epochs_of(shape.epochs)) * shape.samples * shape.classes

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return example.logits[np.array(self.epochs_of(shape.epochs)) - 1]


@dataclass(frozen=True)
class TrainLogits(_Logits):
    """Logits as the optimiser saw them, before the update: epochs × samples × classes."""

    kind: ClassVar[str] = "train_logits"


@dataclass(frozen=True)
class EvalLogits(_Logits):
    """Logits of a clean pass at the end of each epoch: epochs × samples × classes."""

    kind: ClassVar[str] = "eval_logits"


@dataclass(frozen=True)
class _Summary(_Logits):
    of: ClassVar[type[_Logits]]

    @property
    def sources(self) -> tuple[Signal, ...]:
        return (self, self.whole, self.of(self.at_epochs), self.of())

    @property
    def recorded_with(self) -> type[Signal]:
        return self.of

    def bytes_needed(self, shape: RunShape) -> int:
        return SUMMARY.itemsize * len(self.epochs_of(shape.epochs)) * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return summarise(super().example(shape, suspicion_N, example), example.given_labels)


@dataclass(frozen=True)
class TrainSummary(_Summary):
    """Of the logits as the optimiser saw them, what most detectors read: epochs × samples, see `summary`."""

    kind: ClassVar[str] = "train_summary"
    of: ClassVar[type[_Logits]] = TrainLogits


@dataclass(frozen=True)
class EvalSummary(_Summary):
    """Of the logits at the end of each epoch, what most detectors read: epochs × samples, see `summary`."""

    kind: ClassVar[str] = "eval_summary"
    of: ClassVar[type[_Logits]] = EvalLogits


@dataclass(frozen=True)
class Embedding(Signal):
    """What the classifier sees, of the pretrained network or after an epoch of training: samples × dimensions."""

    kind: ClassVar[str] = "embedding"
    after_epoch: int = field(default=0, metadata=later(1))  # 0: before any training; the last if there are fewer

    def recorder(self, context: RunContext) -> Recorder:
        from benchmark.record.recorders import EmbeddingRecorder

        return EmbeddingRecorder(context, self.key, min(self.after_epoch, context.shape.epochs))

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * shape.samples * 1280  # EfficientNet-Lite0's

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return example.logits[-1] + example.generator.normal(0, 1e-3, example.logits[-1].shape)


@dataclass(frozen=True)
class CheckpointGradientNorms(Signal):
    """Norm of each sample's loss gradient at checkpoints spread evenly over the training: checkpoints × samples.

    Over a linear classifier alone it is ‖p − e_ỹ‖·√(‖h‖² + 1), where h is what the classifier sees: no gradient is
    computed.
    """

    kind: ClassVar[str] = "checkpoint_gradient_norms"
    per_epoch: ClassVar[bool] = True
    checkpoints: int = 9
    parameters: Literal["classifier", "all trained"] = "classifier"

    def epochs_of(self, epochs: int) -> Sequence[int]:
        count = min(self.checkpoints, epochs)
        return list(dict.fromkeys(np.linspace(epochs / count, epochs, count).round().astype(int).tolist()))

    def recorder(self, context: RunContext) -> Recorder:
        from benchmark.record.recorders import CheckpointGradientNormRecorder

        epochs = self.epochs_of(context.shape.epochs)
        return CheckpointGradientNormRecorder(context, self.key, epochs, self.parameters == "classifier")

    def bytes_needed(self, shape: RunShape) -> int:
        return 8 * len(self.epochs_of(shape.epochs)) * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return 1 + suspicion_N + example.generator.random((len(self.epochs_of(shape.epochs)), shape.samples))


TRAIN_LOGITS, EVAL_LOGITS, EMBEDDING = TrainLogits(), EvalLogits(), Embedding()
TRAIN_SUMMARY, EVAL_SUMMARY = TrainSummary(), EvalSummary()


@dataclass(frozen=True)
class GradientNorms(Signal):
    """Norm of each sample's loss gradient over all trained parameters, at the end of one epoch: samples."""

    kind: ClassVar[str] = "gradient_norms"
    epoch: int | None = 10  # the last if there are fewer, or if none is named

    def recorder(self, context: RunContext) -> Recorder:
        from benchmark.record.recorders import GradientNormRecorder

        last = context.shape.epochs
        return GradientNormRecorder(context, self.key, min(self.epoch or last, last))


@dataclass(frozen=True)
class InputGradientSpread(Signal):
    """Standard deviation over checkpoints of the input gradient, per pixel, averaged over pixels: samples."""

    kind: ClassVar[str] = "input_gradient_spread"
    stage: Literal["early", "late", "all"] = "early"
    checkpoints: int = 3
    at_epochs: tuple[int, ...] = ()  # these instead of a stage
    output: Literal["logit", "probability"] = "logit"
    channels: Literal["mean", "separate"] = field(default="mean", metadata=later(1))  # of the gradient's channels

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
        return self.recorders([self], context)[0]

    @classmethod
    def recorders(cls, signals: Sequence[Any], context: RunContext) -> list[Recorder]:
        from benchmark.record.recorders import InputGradientRecorder, View

        views = {s.key: [View(epoch, s.output) for epoch in s.epochs_of(context.shape.epochs)] for s in signals}
        return [InputGradientRecorder(context, views, {s.key for s in signals if s.channels == "separate"})]
