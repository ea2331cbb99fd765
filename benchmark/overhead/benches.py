"""A training run that is set up to be measured: any recipe, any signals.

Nothing is kept: records go to a folder that the caller deletes.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from torch import Tensor

from benchmark.data.labelled import TrainingData
from benchmark.networks.split_model import SplitModel
from benchmark.record import RunRecord, RunShape, Signal, recorders_of, write_record
from benchmark.record.history import Charge, Stopwatch
from benchmark.record.recorders import Recorder, RunContext
from benchmark.training import Job, Recipe, TrainingSettings


@dataclass(frozen=True)
class Measured:
    """One run: the seconds of each clock run, the seconds that no clock measured, and the record."""

    laps: Mapping[Charge, Sequence[float]]
    outside_clocks: float
    record: RunRecord

    @property
    def seconds(self) -> dict[Charge, float]:
        return {charge: sum(laps) for charge, laps in self.laps.items()}

    @property
    def recorded(self) -> dict[str, int]:
        """Bytes on disk by signal key."""
        return {key: array.nbytes for key, array in self.record.arrays.items()}


@dataclass(frozen=True)
class Workbench:
    data: TrainingData
    settings: TrainingSettings
    model: SplitModel  # copied for each run
    images: Callable[[int, int], Tensor]

    @property
    def shape(self) -> RunShape:
        return RunShape(self.settings.epochs, len(self.data.train.labels), self.data.num_classes)

    def briefly(self) -> "Workbench":
        """The same with a single epoch, for warming up."""
        return replace(self, settings=replace(self.settings, epochs=1))

    def run(self, recipe: Recipe, signals: tuple[Signal, ...], folder: Path) -> Measured:
        def recorders(model: SplitModel) -> list[Recorder]:
            return recorders_of(signals, RunContext(self.shape, folder, model, self.data, self.images))

        job = Job(self.data, self.settings, lambda seed: copy.deepcopy(self.model), recorders)
        stopwatch, began = Stopwatch(self.settings.device, self.settings.threads), time.perf_counter()
        started = stopwatch.elapsed
        history, left_behind = recipe.run(job)
        stopwatch.add_background(history.stopwatch.background)
        outside_clocks = stopwatch.elapsed - started - sum(history.seconds.values())
        labels, classes = self.data.train.labels.cpu().numpy(), self.data.num_classes
        keys = [signal.key for signal in signals]
        record = write_record(folder, {}, labels, classes, history, left_behind, keys, began)
        return Measured(history.laps, outside_clocks, record)


class Setup(Protocol):
    """Can be sent to another process, and makes the same bench there."""

    def build(self, folder: Path) -> Workbench: ...
