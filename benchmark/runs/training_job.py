"""What a unit trains with: its data, its pretrained network, and the recorders that listen."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmark.data.datasets import REPLACED, SPLITS, STAYS, Dataset, DatasetInfo, Images, load_dataset_once
from benchmark.data.duplicates import training_groups
from benchmark.data.labelled import LabelledFeatures, ReplacedImages, ReplacedRows, Rows, TrainingData
from benchmark.disk import open_arrays
from benchmark.networks.feature_store import check_weights, open_store
from benchmark.networks.loading import load_backbone
from benchmark.networks.preprocessing import LiveImages, preprocess
from benchmark.networks.split_model import SplitModel
from benchmark.record import recorders_of
from benchmark.record.recorders import Recorder, RunContext
from benchmark.runs import Sources, Unit
from benchmark.training import Job


def training_job(
    unit: Unit, sources: Sources, folder: Path, after_epoch: Callable[[int], None], describe: Callable[[str], None]
) -> Job:
    """`describe` is told which path each network takes."""
    data, run, settings = training_data(unit, sources), unit.run, unit.run.training

    def new_model(seed: int, more_classes: int = 0) -> SplitModel:
        weights, device = sources.weights_file, settings.device
        head = data.num_classes + more_classes, weights, seed, device, settings.plain, settings.head_init
        model = load_backbone(run.backbone, *head)
        if unit.store_id is not None:
            check_weights(sources.store(unit), model)
        describe(model.summary())
        return model

    def images(start: int, stop: int) -> Tensor:
        return preprocess(list(images_of(unit, sources)[0][start:stop]), run.backbone)

    def recorders(model: SplitModel) -> list[Recorder]:
        return recorders_of(unit.signals, RunContext(unit.shape, folder, model, data, images))

    return Job(data, settings, new_model, recorders, after_epoch)


def training_data(unit: Unit, sources: Sources) -> TrainingData:
    """Features, or live images on the plain path, with the given labels."""
    features: list[Rows]
    if unit.store_id is None:
        features = [LiveImages(images, unit.run.backbone) for images in images_of(unit, sources)]
    else:
        features = list(open_store(sources.store(unit), unit.info))
        if unit.foreign is not None:
            other = open_store(sources.store(unit, unit.foreign), unit.foreign)
            numbers = replaced(unit, sources)
            features[:2] = [ReplacedRows(*rows) for rows in zip(features, other, numbers, strict=False)]
    device = torch.device(unit.run.training.device)
    with open_arrays(sources.results.given_labels(unit.run.noise_id)) as labels:
        given = [torch.from_numpy(labels[split]).to(device) for split in SPLITS]
    train, validation, test = map(LabelledFeatures, features, given)
    groups = training_groups(sources.results, unit.info)
    if groups is not None and unit.foreign is not None:  # duplicates of images that are not there any more
        at = np.flatnonzero(replaced(unit, sources)[0] != STAYS)
        groups = groups.copy()
        groups[at] = groups.max() + 1 + np.arange(len(at))
    return TrainingData(train, validation, test, unit.info.num_classes, groups)


def replaced(unit: Unit, sources: Sources) -> list[np.ndarray]:
    """Of training and validation: which image of the other data set takes the place of each."""
    with open_arrays(sources.results.given_labels(unit.run.noise_id)) as labels:
        return [labels[f"{split}{REPLACED}"] for split in SPLITS[:2]]


def images_of(unit: Unit, sources: Sources) -> list[Images]:
    """Of the three splits, as they are trained on."""
    images = [split.images for split in dataset_of(unit, sources).splits]
    if unit.foreign is not None:
        other = [split.images for split in dataset_of(unit, sources, unit.foreign).splits]
        numbers = replaced(unit, sources)
        images[:2] = [ReplacedImages(*parts) for parts in zip(images, other, numbers, strict=False)]
    return images


def dataset_of(unit: Unit, sources: Sources, info: DatasetInfo | None = None) -> Dataset:
    """Its own, or the one whose images take the places of some."""
    wanted = info or unit.info
    return load_dataset_once(sources.datasets[wanted], sources.data_root, wanted)
