"""What a unit trains with: its data, its pretrained network, and the recorders that listen."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmark.data.datasets import SPLITS, Dataset, load_dataset_once
from benchmark.data.duplicates import training_groups
from benchmark.data.labelled import LabelledFeatures, Rows, TrainingData
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

    def new_model(seed: int) -> SplitModel:
        weights, device = sources.weights_file, settings.device
        head = data.num_classes, weights, seed, device, settings.plain, settings.head_init
        model = load_backbone(run.backbone, *head)
        if unit.store_id is not None:
            check_weights(sources.store(unit), model)
        describe(model.summary())
        return model

    def images(start: int, stop: int) -> Tensor:
        return preprocess(list(dataset_of(unit, sources).train.images[start:stop]), run.backbone)

    def recorders(model: SplitModel) -> list[Recorder]:
        return recorders_of(unit.signals, RunContext(unit.shape, folder, model, data, images))

    return Job(data, settings, new_model, recorders, after_epoch)


def training_data(unit: Unit, sources: Sources) -> TrainingData:
    """Features, or live images on the plain path, with the given labels."""
    if unit.store_id is not None:
        features: tuple[Rows, ...] = open_store(sources.store(unit), unit.info)
    else:
        splits = dataset_of(unit, sources).splits
        features = tuple(LiveImages(split.images, unit.run.backbone) for split in splits)
    device = torch.device(unit.run.training.device)
    with open_arrays(sources.results.given_labels(unit.run.noise_id)) as labels:
        given = [torch.from_numpy(labels[split]).to(device) for split in SPLITS]
    train, validation, test = map(LabelledFeatures, features, given)
    return TrainingData(train, validation, test, unit.info.num_classes, training_groups(sources.results, unit.info))


def dataset_of(unit: Unit, sources: Sources) -> Dataset:
    return load_dataset_once(sources.dataset(unit), sources.data_root, unit.info)
