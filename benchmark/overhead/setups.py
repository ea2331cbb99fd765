"""What runs are measured on: some samples of a data set, or synthetic samples with networks that take little time."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.data.labelled import LabelledFeatures, Rows, TrainingData
from benchmark.disk import MappedRows, new_array
from benchmark.networks import Backbone
from benchmark.networks.last_block import WholeBlock
from benchmark.networks.loading import load_backbone, set_up_torch, untrained_backbone
from benchmark.networks.preprocessing import preprocess
from benchmark.networks.split_model import SplitModel
from benchmark.overhead.measure import Workbench
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

    def build(self, folder: Path) -> Workbench:
        unit, settings = self.unit, self.unit.run.training
        set_up_torch(settings.threads)
        whole, weights = training_data(unit, self.sources), self.sources.weights_file
        count = min(self.samples, unit.info.sizes[0])
        rows = np.linspace(0, unit.info.sizes[0] - 1, count).round().astype(np.int64)

        def images(start: int, stop: int) -> Tensor:
            everything = dataset_of(unit, self.sources).train.images
            return preprocess([everything[row : row + 1][0] for row in rows[start:stop]], unit.run.backbone)

        data = TrainingData(whole.train.subset(rows), _few(whole.validation), _few(whole.test), whole.num_classes)
        model = load_backbone(unit.run.backbone, whole.num_classes, weights, 0, settings.device, settings.plain)
        return Workbench(data, settings, model, images)


@dataclass(frozen=True)
class Synthetic:
    """Random features for a network so small that whatever a detector adds to its training is visible."""

    samples: int
    classes: int
    training: TrainingSettings

    def build(self, folder: Path) -> Workbench:
        set_up_torch(self.training.threads)
        model, features = self.network_and_features(folder)
        labels = numpy_generator(0, "synthetic labels").integers(0, self.classes, self.samples)
        train, size = LabelledFeatures(features, torch.from_numpy(labels)), TINY_NETWORK.image_size
        data = TrainingData(train, _few(train), _few(train), self.classes)
        return Workbench(data, self.training, model, lambda start, stop: torch.rand(stop - start, 3, size, size))

    def network_and_features(self, folder: Path) -> tuple[SplitModel, Rows]:
        model, size = untrained_backbone(TINY_NETWORK, self.classes), TINY_NETWORK.image_size
        with torch.no_grad():
            shape = model.features(torch.rand(2, 3, size, size)).shape[1:]
        generator = numpy_generator(0, "synthetic")
        rows = new_array(folder / "features.npy", (self.samples, *shape), np.float16)
        for start in range(0, self.samples, 4096):
            rows[start : start + 4096] = generator.standard_normal(rows[start : start + 4096].shape)
        rows.flush()
        return model, MappedRows(folder / "features.npy", slice(None))


@dataclass(frozen=True)
class ObjectiveOnly(Synthetic):
    """A network of one weight per class on a constant feature, so that millions of samples can be measured."""

    def network_and_features(self, folder: Path) -> tuple[SplitModel, Rows]:
        layer = nn.Linear(1, self.classes, bias=False)
        model = SplitModel(layer, WholeBlock(layer), (), "one layer", is_plain=True)
        return model, np.broadcast_to(np.float32(1), (self.samples, 1))


def _few(split: LabelledFeatures) -> LabelledFeatures:
    """Its first samples, for validation and test."""
    return split.subset(np.arange(min(EVALUATED, len(split.labels))))
