"""Synthetic samples of any number to measure runs on, with networks that take little time themselves."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import nn

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk.files import MappedRows, new_array
from benchmark.networks import Backbone
from benchmark.networks.loading import set_up_torch, untrained_backbone
from benchmark.networks.split_model import SplitModel
from benchmark.overhead.benches import Workbench, few
from benchmark.seeds import numpy_generator
from benchmark.training import TrainingSettings

TINY_NETWORK = Backbone("test_vit", image_size=32)


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
        data = TrainingData(train, few(train), few(train), self.classes)
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
        data = TrainingData(train, few(train), few(train), self.classes)
        model = cast(SplitModel, _OneLayer(self.classes))
        return Workbench(data, self.training, model, lambda start, stop: torch.empty(0))


class _OneLayer(nn.Module):
    """What the training loop needs of a SplitModel."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.tail = nn.Linear(1, classes, bias=False)

    def trained(self) -> dict[str, nn.Parameter]:
        return dict(self.named_parameters())
