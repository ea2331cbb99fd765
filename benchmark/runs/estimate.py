"""Estimates the time and disk space of a plan by timing one batch of each network."""

import time
from dataclasses import dataclass

import numpy as np
import torch

from benchmark.networks import Backbone
from benchmark.networks.loading import untrained_backbone
from benchmark.runs.plan import Plan


@dataclass(frozen=True)
class Estimate:
    seconds: float
    bytes_on_disk: int


def estimate(plan: Plan, workers: int) -> Estimate:
    """Uses random weights, which take as long as trained ones."""
    seconds, size = 0.0, 0
    cost_of: dict[tuple[Backbone, int, bool], _Cost] = {}
    stores = set(plan.stores_to_compute().values())
    for unit in plan.to_train:
        key = unit.run.backbone, unit.info.num_classes, unit.run.training.plain
        if key not in cost_of:
            cost_of[key] = _measure(*key)
        cost, shape, training = cost_of[key], unit.shape, unit.run.training
        if unit in stores:
            images = sum(unit.info.sizes)
            seconds += images * cost.prefix_seconds / workers
            size += images * cost.feature_numbers * np.dtype(unit.run.backbone.feature_dtype).itemsize
        evaluated = sum(unit.info.sizes[1:]) + unit.info.sizes[0]
        per_epoch = shape.samples * cost.step_seconds + evaluated * cost.forward_seconds
        streams = sum(signal.prefix_passes(shape) for signal in unit.signals) * shape.samples * cost.prefix_seconds
        at_a_time = min(workers, len(plan.to_train))
        seconds += (unit.run.recipe.passes(training.epochs) * per_epoch + streams) / at_a_time
        size += sum(signal.bytes_needed(shape) for signal in unit.signals)
    return Estimate(seconds, size)


@dataclass(frozen=True)
class _Cost:
    """Per image."""

    prefix_seconds: float
    forward_seconds: float
    step_seconds: float
    feature_numbers: int


def _measure(backbone: Backbone, num_classes: int, is_plain: bool, images: int = 16) -> _Cost:
    model = untrained_backbone(backbone, num_classes, is_plain)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    batch = torch.rand(images, 3, backbone.image_size, backbone.image_size)
    try:
        with torch.no_grad():
            model.tail(model.features(batch[:2]))  # the first call sets things up
            start = time.perf_counter()
            cached = model.cached(batch)
            prefix_done = time.perf_counter()
            features = batch if is_plain else cached
            model.tail(features)
            forward_done = time.perf_counter()
        model.tail(features).sum().backward()  # type: ignore[no-untyped-call]
        step_done = time.perf_counter()
    finally:
        torch.set_num_threads(threads)
    return _Cost(
        prefix_seconds=(prefix_done - start) / images,
        forward_seconds=(forward_done - prefix_done) / images,
        step_seconds=(step_done - forward_done) / images,
        feature_numbers=cached[0].numel(),
    )
