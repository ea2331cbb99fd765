"""What runs are measured on: some samples of a data set, or synthetic samples with networks that take little time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk import MappedRows, new_array
from benchmark.networks import Backbone
from benchmark.networks.loading import load_backbone, set_up_torch, untrained_backbone
from benchmark.networks.preprocessing import preprocess
from benchmark.overhead.benches import Workbench
from benchmark.record.history import Stopwatch
from benchmark.runs import Sources, Unit
from benchmark.runs.training_job import dataset_of, training_data
from benchmark.seeds import numpy_generator
from benchmark.training import TrainingSettings

EVALUATED = 2  # samples of validation and test, whose cost is the same for every detector and charged to none
TINY_NETWORK = Backbone("test_vit", image_size=32)


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

        data = TrainingData(whole.train.subset(rows), _few(whole.validation), _few(whole.test), whole.num_classes)
        weights = self.sources.weights_file
        model = load_backbone(unit.run.backbone, whole.num_classes, weights, 0, device, settings.plain)
        return Workbench(data, settings, model, images)


@dataclass(frozen=True)
class Synthetic:
    """Random features for a network so small that whatever a detector adds to its training is visible."""

    samples: int
    classes: int
    training: TrainingSettings

    def build(self, folder: Path) -> Workbench:
        set_up_torch(self.training.threads)
        model, size = untrained_backbone(TINY_NETWORK, self.classes), TINY_NETWORK.image_size
        with torch.no_grad():
            shape = model.features(torch.rand(2, 3, size, size)).shape[1:]
        generator = numpy_generator(0, "synthetic")
        rows = new_array(folder / "features.npy", (self.samples, *shape), np.float16)
        for start in range(0, self.samples, 4096):
            rows[start : start + 4096] = generator.standard_normal(rows[start : start + 4096].shape)
        rows.flush()
        labels = torch.from_numpy(generator.integers(0, self.classes, self.samples))
        train = LabelledFeatures(MappedRows(folder / "features.npy", slice(None)), labels)
        data = TrainingData(train, _few(train), _few(train), self.classes)
        return Workbench(data, self.training, model, lambda start, stop: torch.rand(stop - start, 3, size, size))


@dataclass(frozen=True)
class ObjectiveOnly:
    """A network of one weight per class on a constant feature, so that millions of samples can be measured."""

    samples: int
    classes: int
    training: TrainingSettings

    def build(self, folder: Path) -> Workbench:
        set_up_torch(self.training.threads)
        labels = torch.from_numpy(numpy_generator(0, "synthetic").integers(0, self.classes, self.samples))
        train = LabelledFeatures(np.broadcast_to(np.float32(1), (self.samples, 1)), labels)
        data = TrainingData(train, _few(train), _few(train), self.classes)
        model = cast(Any, _OneLayer(self.classes))
        return Workbench(data, self.training, model, lambda start, stop: torch.empty(0))


class _OneLayer(nn.Module):
    """What the training loop needs of a SplitModel."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.tail = nn.Linear(1, classes, bias=False)

    def trained(self) -> dict[str, nn.Parameter]:
        return dict(self.named_parameters())


def _few(split: LabelledFeatures) -> LabelledFeatures:
    """Its first samples, for validation and test."""
    return split.subset(np.arange(min(EVALUATED, len(split.labels))))
