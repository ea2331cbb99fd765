"""What pretrained weights are worth for a data set, measured before a study believes them."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from benchmark.data.datasets import Dataset, load_dataset
from benchmark.data.labelled import Rows
from benchmark.disk import UNREADABLE, atomic_file, is_transient, open_arrays
from benchmark.networks.backbone import Backbone, HeadInit, check_name
from benchmark.networks.loading import load_backbone, set_up_torch
from benchmark.networks.preprocessing import LiveImages
from benchmark.networks.split_model import SplitModel
from benchmark.seeds import numpy_generator
from benchmark.wording import dataset_title, network_title

VERSION = 1  # raise it when figures may change
IMAGES, FEW_IMAGES = (1500, 500), (200, 100)  # of training and test
BATCH, NEIGHBOURS = 64, 5
READ_AT_ONCE = 16  # images, which may be large
LEARNING_RATE = 5e-4  # the paper's
Labelled = tuple[Rows, np.ndarray]  # cached features, or live images, and true labels


@dataclass(frozen=True)
class BackboneCheck:
    """Of the frozen features, with true labels."""

    images: tuple[int, int]  # of training and test
    neighbour_accuracy: float  # of test images, by the nearest training images in what the classifier sees
    largest_class: float  # the accuracy of always naming the most frequent class
    norm: float  # mean length of what the classifier sees
    norm_deviation: float
    first_steps: dict[HeadInit, float]  # how far the optimiser's first step moves a logit, in the mean

    def as_row(self, heads: Collection[HeadInit] = get_args(HeadInit)) -> dict[str, str]:
        return {
            "images": f"{self.images[0]:,} + {self.images[1]:,}",
            "neighbours": f"{self.neighbour_accuracy:.3f}",
            "largest class": f"{self.largest_class:.3f}",
            "length": f"{self.norm:.1f} ± {self.norm_deviation:.1f}",
        } | {f"first step, {head}": f"{moved:.2f}" for head, moved in self.first_steps.items() if head in heads}


CHECKED = (
    f"before any training: accuracy of {NEIGHBOURS} nearest neighbours and of always the largest class; length of what "
    "the classifier sees; how far Adam's first step at the paper's learning rate moves a logit, by how the classifier "
    "is initialised (a training with steps far above 1 starts badly)"
)


def check_table(
    name: str, image_size: int, weights_file: Path | None, datasets: Iterable[str], data_root: Path | None
) -> tuple[str, pd.DataFrame]:
    """With its title; a row per data set."""
    check_name(name)
    rows = []
    for argument in datasets:
        dataset = load_dataset(argument, data_root)
        found = check_backbone(dataset, Backbone(name, image_size), weights_file)
        rows.append({"data set": dataset_title(dataset.info.name)} | found.as_row())
    return f"{network_title(name)} at {image_size} px, {CHECKED}", pd.DataFrame(rows)


def check_backbone(
    dataset: Dataset, backbone: Backbone, weights_file: Path | None, images: tuple[int, int] = IMAGES
) -> BackboneCheck:
    """From so many images."""
    train, test = ((LiveImages(split.images, backbone), split.labels) for split in (dataset.train, dataset.test))
    return check_features(train, test, dataset.info.num_classes, backbone, weights_file, images)


def check_features(
    train: Labelled,
    test: Labelled,
    num_classes: int,
    backbone: Backbone,
    weights_file: Path | None,
    images: tuple[int, int] = IMAGES,
) -> BackboneCheck:
    """Rounded, so that machines agree."""
    set_up_torch(threads=1)

    def load(head_init: HeadInit) -> SplitModel:
        return load_backbone(backbone, num_classes, weights_file, 0, "cpu", head_init=head_init)

    model = load("small")
    (features, labels), (test_features, test_labels) = (
        _sample(*part, count, model) for part, count in zip((train, test), images, strict=True)
    )
    embedding, test_embedding = _embedding(model, features), _embedding(model, test_features)
    neighbours = KNeighborsClassifier(min(NEIGHBOURS, len(labels))).fit(embedding, labels)
    norms = np.linalg.norm(embedding, axis=1)
    batch = features[:BATCH], torch.from_numpy(labels[:BATCH])
    return BackboneCheck(
        images=(len(labels), len(test_labels)),
        neighbour_accuracy=round(float(neighbours.score(test_embedding, test_labels)), 4),
        largest_class=round(float(np.unique(test_labels, return_counts=True)[1].max() / len(test_labels)), 4),
        norm=round(float(norms.mean()), 3),
        norm_deviation=round(float(norms.std()), 3),
        first_steps={head_init: round(_first_step(load(head_init), *batch), 4) for head_init in get_args(HeadInit)},
    )


@torch.no_grad()
def _sample(rows: Rows, labels: np.ndarray, count: int, model: SplitModel) -> tuple[Tensor, np.ndarray]:
    """Cached features and labels of images that are chosen at random, the same every time."""
    chosen = numpy_generator(0, "backbone check").permutation(len(labels))[:count]
    starts = range(0, len(chosen), READ_AT_ONCE)
    batches = (torch.from_numpy(rows[chosen[start : start + READ_AT_ONCE]]) for start in starts)
    features = map(model.cached, batches) if isinstance(rows, LiveImages) else batches
    return torch.cat(list(features)), labels[chosen]


@torch.no_grad()
def _embedding(model: SplitModel, features: Tensor) -> np.ndarray:
    return torch.cat([model.embed(batch) for batch in torch.split(features, BATCH)]).numpy()


def _first_step(model: SplitModel, features: Tensor, labels: Tensor) -> float:
    before = model.tail(features)
    optimiser = torch.optim.Adam(list(model.trained().values()), LEARNING_RATE)
    F.cross_entropy(before, labels).backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    with torch.no_grad():
        return float((model.tail(features) - before).abs().mean())


def write_check(file: Path, check: BackboneCheck) -> None:
    with atomic_file(file) as opened:
        np.savez(opened, **asdict(check) | {"first_steps": list(check.first_steps.values())})


def read_check(file: Path) -> BackboneCheck | None:
    """None if the file is absent or damaged; each of its arrays has a checksum."""
    try:
        with open_arrays(file) as arrays:
            values = {name: arrays[name].tolist() for name in arrays}
        steps = dict(zip(get_args(HeadInit), values.pop("first_steps"), strict=True))
        return BackboneCheck(images=tuple(values.pop("images")), first_steps=steps, **values)
    except UNREADABLE as error:
        if is_transient(error):
            raise
        return None
