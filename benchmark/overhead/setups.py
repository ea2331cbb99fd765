"""What runs are measured on: some samples of a data set, or synthetic samples with networks that take little time."""

from dataclasses import replace
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


def on_dataset(unit: Unit, sources: Sources, samples: int, folder: Path) -> Workbench:
    """Evenly spaced samples of a planned unit's data set, whose features and given labels have been prepared."""
    settings, size = unit.run.training, unit.info.sizes[0]
    set_up_torch(settings.threads)
    whole = training_data(unit, sources)
    rows = np.linspace(0, size - 1, min(samples, size)).round().astype(np.int64)

    def images(start: int, stop: int) -> Tensor:
        everything = dataset_of(unit, sources).train.images
        return preprocess([everything[row : row + 1][0] for row in rows[start:stop]], unit.run.backbone)

    some = whole.with_training_rows(rows)
    data = replace(some, validation=_few(whole.validation), test=_few(whole.test))
    weights, device = sources.weights_file, settings.device
    model = load_backbone(unit.run.backbone, whole.num_classes, weights, 0, device, settings.plain)
    return Workbench(data, settings, model, images)


def synthetic(samples: int, classes: int, settings: TrainingSettings, folder: Path) -> Workbench:
    """Random features for a network so small that whatever a detector adds to its training is visible."""
    set_up_torch(settings.threads)
    model, size = untrained_backbone(TINY_NETWORK, classes), TINY_NETWORK.image_size
    with torch.no_grad():
        shape = model.features(torch.rand(2, 3, size, size)).shape[1:]
    generator = numpy_generator(0, "synthetic")
    rows = new_array(folder / "features.npy", (samples, *shape), np.float16)
    for start in range(0, samples, 4096):
        rows[start : start + 4096] = generator.standard_normal(rows[start : start + 4096].shape)
    rows.flush()
    data = _with_random_labels(MappedRows(folder / "features.npy", slice(None)), samples, classes)
    return Workbench(data, settings, model, lambda start, stop: torch.rand(stop - start, 3, size, size))


def objective_only(samples: int, classes: int, settings: TrainingSettings, folder: Path) -> Workbench:
    """A network of one weight per class on a constant feature, so that millions of samples can be measured."""
    set_up_torch(settings.threads)
    layer = nn.Linear(1, classes, bias=False)
    model = SplitModel(layer, WholeBlock(layer), (), "one layer", is_plain=True)
    data = _with_random_labels(np.broadcast_to(np.float32(1), (samples, 1)), samples, classes)
    return Workbench(data, settings, model, lambda start, stop: torch.empty(0))


def _with_random_labels(features: Rows, samples: int, classes: int) -> TrainingData:
    labels = numpy_generator(0, "synthetic labels").integers(0, classes, samples)
    train = LabelledFeatures(features, torch.from_numpy(labels))
    return TrainingData(train, _few(train), _few(train), classes)


def _few(split: LabelledFeatures) -> LabelledFeatures:
    """Its first samples, for validation and test."""
    return split.subset(np.arange(min(EVALUATED, len(split.labels))))
