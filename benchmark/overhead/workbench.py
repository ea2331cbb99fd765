"""A training run set up to be measured: on some samples of a data set or on synthetic ones, any recipe, any signals.

Nothing is kept: records go to a folder that the caller throws away.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk.files import MappedRows, new_array, open_array
from benchmark.networks.backbones import Backbone, SplitModel, load_backbone, untrained_backbone
from benchmark.networks.feature_store import preprocess
from benchmark.record.history import RECORDING, Charge, History, Stopwatch
from benchmark.record.recorders import Recorder, RunContext, RunShape, Signal
from benchmark.record.run_record import RunRecord
from benchmark.runs.pipeline import dataset_of, recorders_of, set_up_torch, training_data
from benchmark.runs.plan import Unit
from benchmark.seeds import numpy_generator
from benchmark.training.loop import Job, Recipe, TrainingSettings

EVALUATED = 2  # samples of validation and test: they cost everybody the same, and are charged to nobody


@dataclass(frozen=True)
class Measured:
    """One run: seconds by clock, those of the whole loop, and what it left behind."""

    laps: Mapping[Charge, Sequence[float]]  # of each time a clock ran
    whole: float
    record: RunRecord

    @property
    def seconds(self) -> dict[Charge, float]:
        return {charge: sum(laps) for charge, laps in self.laps.items()}


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
        """For a single epoch: enough to load whatever is loaded once."""
        return replace(self, settings=replace(self.settings, epochs=1))

    def run(self, recipe: Recipe, signals: tuple[Signal, ...], folder: Path) -> Measured:
        def recorders(model: SplitModel) -> list[Recorder]:
            return recorders_of(signals, RunContext(self.shape, folder, model, self.data, self.images))

        job = Job(self.data, self.settings, lambda seed: copy.deepcopy(self.model), recorders)
        stopwatch = Stopwatch(self.settings.device, self.settings.threads)
        started = stopwatch.elapsed
        history, left_behind = recipe.run(job)
        record = record_in(folder, self.data, self.settings.epochs, signals, left_behind, history)
        stopwatch.add_background(history.stopwatch.background)
        return Measured(history.laps, stopwatch.elapsed - started, record)


def record_in(
    folder: Path,
    data: TrainingData,
    epochs: int,
    signals: Sequence[Signal],
    left_behind: Mapping[Signal, np.ndarray],
    history: History,
) -> RunRecord:
    """What recorders wrote there, with what the recipe left behind; writing that is charged to its signals."""
    for signal, array in left_behind.items():
        with history.clock(Charge(RECORDING, (signal.key,))):
            stored = new_array(folder / f"{signal.key}.npy", array.shape, array.dtype)
            stored[:] = array
            stored.flush()
    arrays = {signal.key: open_array(folder / f"{signal.key}.npy") for signal in signals}
    return RunRecord(data.train.labels.cpu().numpy(), data.num_classes, epochs, arrays)


class Bench(Protocol):
    def briefly(self) -> "Bench":
        """The same with little to do: its run loads whatever is loaded once."""

    def run(self, recipe: Recipe, signals: tuple[Signal, ...], folder: Path) -> Measured: ...


class Setup(Protocol):
    """Can be sent to another process, and makes the same bench there."""

    def build(self, folder: Path) -> Bench: ...


@dataclass(frozen=True)
class OnDataset:
    """So many samples of a planned unit's data set, evenly spaced; its features and given labels are there."""

    unit: Unit
    samples: int

    def build(self, folder: Path) -> Workbench:
        unit, settings = self.unit, self.unit.run.training
        set_up_torch(settings.threads)
        whole, device = training_data(unit), torch.device(settings.device)
        count = min(self.samples, unit.info.sizes[0])
        rows = np.linspace(0, unit.info.sizes[0] - 1, count).round().astype(np.int64)

        def images(start: int, stop: int) -> Tensor:
            everything = dataset_of(unit).train.images
            return preprocess([everything[row : row + 1][0] for row in rows[start:stop]], unit.run.backbone)

        validation, test = (_few(split) for split in (whole.validation, whole.test))
        data = TrainingData(whole.train.subset(rows), validation, test, whole.num_classes)
        weights = unit.sources.weights_file
        model = load_backbone(unit.run.backbone, whole.num_classes, weights, 0, device, settings.plain)
        return Workbench(data, settings, model, images)


@dataclass(frozen=True)
class Synthetic:
    """Random features for a network so small that what is added to its training can be seen."""

    samples: int
    classes: int
    training: TrainingSettings
    backbone: Backbone = Backbone("test_vit", image_size=32)

    def build(self, folder: Path) -> Workbench:
        set_up_torch(self.training.threads)
        generator = numpy_generator(0, "synthetic")
        model = untrained_backbone(self.backbone, self.classes)
        size = self.backbone.image_size
        with torch.no_grad():
            shape = model.features(torch.rand(2, 3, size, size)).shape[1:]
        rows = new_array(folder / "features.npy", (self.samples, *shape), np.float16)
        for start in range(0, self.samples, 4096):
            rows[start : start + 4096] = generator.standard_normal(rows[start : start + 4096].shape)
        rows.flush()
        labels = torch.from_numpy(generator.integers(0, self.classes, self.samples))
        train = LabelledFeatures(MappedRows(folder / "features.npy", slice(None)), labels)
        data = TrainingData(train, _few(train), _few(train), self.classes)
        return Workbench(data, self.training, model, lambda start, stop: torch.rand(stop - start, 3, size, size))


def _few(split: LabelledFeatures) -> LabelledFeatures:
    return split.subset(np.arange(min(EVALUATED, len(split.labels))))
