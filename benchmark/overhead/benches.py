"""Training runs that are set up to be measured, and samples of a data set to measure them on.

Nothing is kept: records go to a folder that the caller deletes.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.networks.loading import load_backbone, set_up_torch
from benchmark.networks.preprocessing import preprocess
from benchmark.networks.split_model import SplitModel
from benchmark.record import RunRecord, RunShape, Signal
from benchmark.record.history import Charge, Stopwatch
from benchmark.record.recorders import Recorder, RunContext
from benchmark.record.run_record import write_record
from benchmark.record.signals import recorders_of
from benchmark.runs.inputs import dataset_of, training_data
from benchmark.runs.plan import Sources
from benchmark.runs.units import Unit
from benchmark.training import Job, Recipe, TrainingSettings

EVALUATED = 2  # samples of validation and test, whose cost is the same for every detector and charged to none


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


class Bench(Protocol):
    def briefly(self) -> "Bench":
        """The same with a single epoch, for warming up."""

    def run(self, recipe: Recipe, signals: tuple[Signal, ...], folder: Path) -> Measured: ...


class Setup(Protocol):
    """Can be sent to another process, and makes the same bench there."""

    def build(self, folder: Path) -> Bench: ...


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


@dataclass(frozen=True)
class OnDataset:
    """Evenly spaced samples of a planned unit's data set, whose features and given labels have been prepared."""

    unit: Unit
    sources: Sources
    samples: int

    @property
    def setting(self) -> dict[str, object]:
        """The columns that describe what is measured."""
        run, training, info = self.unit.run, self.unit.run.training, self.unit.info
        stopwatch = Stopwatch(training.device, training.threads)
        return {
            "dataset": run.dataset,
            "backbone": run.backbone.name,
            "image_size": run.backbone.image_size,
            "path": "plain" if training.plain else "fast",
            "epochs": training.epochs,
            "batch_size": training.batch_size,
            "classes": info.num_classes,
            "training_samples": info.sizes[0],
            "threads": training.threads,
            "device": training.device,
            "clock": "processor" if stopwatch.counts_processor_time else "wall",
        }

    def build(self, folder: Path) -> Workbench:
        unit, settings = self.unit, self.unit.run.training
        set_up_torch(settings.threads)
        whole, device = training_data(unit, self.sources), torch.device(settings.device)
        count = min(self.samples, unit.info.sizes[0])
        rows = np.linspace(0, unit.info.sizes[0] - 1, count).round().astype(np.int64)

        def images(start: int, stop: int) -> Tensor:
            everything = dataset_of(unit, self.sources).train.images
            return preprocess([everything[row : row + 1][0] for row in rows[start:stop]], unit.run.backbone)

        data = TrainingData(whole.train.subset(rows), few(whole.validation), few(whole.test), whole.num_classes)
        weights = self.sources.weights_file
        model = load_backbone(unit.run.backbone, whole.num_classes, weights, 0, device, settings.plain)
        return Workbench(data, settings, model, images)


def few(split: LabelledFeatures) -> LabelledFeatures:
    """Its first samples, for validation and test."""
    return split.subset(np.arange(min(EVALUATED, len(split.labels))))
