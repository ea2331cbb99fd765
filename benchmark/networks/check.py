"""What pretrained weights are worth for a data set, measured before a study believes them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from benchmark.data.datasets import Dataset, Split, load_dataset
from benchmark.networks.backbone import Backbone, HeadInit, check_name
from benchmark.networks.loading import load_backbone, set_up_torch
from benchmark.networks.preprocessing import preprocess
from benchmark.networks.split_model import SplitModel
from benchmark.seeds import numpy_generator
from benchmark.wording import dataset_title, network_title

TRAINING_IMAGES, TEST_IMAGES, BATCH, NEIGHBOURS = 1500, 500, 64, 5
LEARNING_RATE = 5e-4  # the paper's


@dataclass(frozen=True)
class BackboneCheck:
    """Of the frozen features, with true labels."""

    neighbour_accuracy: float  # of test images, by the nearest training images in what the classifier sees
    largest_class: float  # the accuracy of always naming the most frequent class
    norm: float  # mean length of what the classifier sees
    norm_deviation: float
    first_steps: dict[HeadInit, float]  # how far the optimiser's first step moves a logit, in the mean


def check_table(
    name: str, image_size: int, weights_file: Path | None, datasets: Iterable[str], data_root: Path | None
) -> tuple[str, pd.DataFrame]:
    """With its title; a row per data set."""
    check_name(name)
    rows = []
    for argument in datasets:
        dataset = load_dataset(argument, data_root)
        found = check_backbone(dataset, Backbone(name, image_size), weights_file)
        row = {
            "data set": dataset_title(dataset.info.name),
            "neighbours": f"{found.neighbour_accuracy:.3f}",
            "largest class": f"{found.largest_class:.3f}",
            "norm": f"{found.norm:.1f} ± {found.norm_deviation:.1f}",
        }
        rows.append(row | {f"first step, {head}": f"{moved:.2f}" for head, moved in found.first_steps.items()})
    title = (
        f"{network_title(name)} at {image_size} px, before any training: accuracy of {NEIGHBOURS} nearest neighbours, "
        "length of what the classifier sees, and how far Adam's first step moves a logit, with the classifier "
        "initialised in three ways"
    )
    return title, pd.DataFrame(rows)


def check_backbone(dataset: Dataset, backbone: Backbone, weights_file: Path | None) -> BackboneCheck:
    set_up_torch(threads=1)

    def load(head_init: HeadInit) -> SplitModel:
        return load_backbone(backbone, dataset.info.num_classes, weights_file, 0, "cpu", head_init=head_init)

    model = load("small")
    parts = (dataset.train, TRAINING_IMAGES), (dataset.test, TEST_IMAGES)
    (features, labels), (test_features, test_labels) = (_sample(*part, backbone, model) for part in parts)
    embedding, test_embedding = _embedding(model, features), _embedding(model, test_features)
    neighbours = KNeighborsClassifier(min(NEIGHBOURS, len(labels))).fit(embedding, labels)
    norms = np.linalg.norm(embedding, axis=1)
    batch = features[:BATCH], torch.from_numpy(labels[:BATCH])
    return BackboneCheck(
        neighbour_accuracy=float(neighbours.score(test_embedding, test_labels)),
        largest_class=float(np.unique(test_labels, return_counts=True)[1].max() / len(test_labels)),
        norm=float(norms.mean()),
        norm_deviation=float(norms.std()),
        first_steps={head_init: _first_step(load(head_init), *batch) for head_init in get_args(HeadInit)},
    )


@torch.no_grad()
def _sample(split: Split, count: int, backbone: Backbone, model: SplitModel) -> tuple[Tensor, np.ndarray]:
    """Cached features and labels of images that are chosen at random, the same every time."""
    chosen = numpy_generator(0, "backbone check").permutation(len(split.labels))[:count]
    batches = [
        model.cached(preprocess([split.images[row : row + 1][0] for row in chosen[start : start + BATCH]], backbone))
        for start in range(0, len(chosen), BATCH)
    ]
    return torch.cat(batches), split.labels[chosen]


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
