"""Estimates the time and disk space of a plan by timing one batch of each network."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from benchmark.networks import Backbone
from benchmark.networks.loading import untrained_backbone
from benchmark.record import EvalLogits, without_parts
from benchmark.runs.plan import Plan

IMAGES, CLASSES = 16, 10  # in the batch; the number of classes hardly changes the time


def estimate(plan: Plan, workers: int) -> tuple[float, int]:
    """Seconds, and bytes on disk."""
    seconds, size = 0.0, 0
    for unit, info in plan.stores_to_compute().values():
        cost = measure(unit.run.backbone, unit.run.training.plain)
        seconds += sum(info.sizes) * cost.prefix_seconds / workers
        itemsize = np.dtype(unit.run.backbone.feature_dtype).itemsize
        size += int(sum(info.sizes) * cost.feature_numbers * itemsize)
    for unit in plan.to_train:
        shape, training, images = unit.shape, unit.run.training, sum(unit.info.sizes)
        cost = measure(unit.run.backbone, training.plain)
        per_epoch = shape.samples * cost.step_seconds + (images - shape.samples) * cost.forward_seconds
        of_passes = [signal for signal in unit.signals if issubclass(signal.recorded_with, EvalLogits)]
        recorded = [signal.epochs_of(shape.epochs) for signal in of_passes]
        passes = len(set().union(*recorded)) * shape.samples * cost.forward_seconds
        streams = sum(signal.prefix_passes(shape) for signal in unit.signals) * shape.samples * cost.prefix_seconds
        at_a_time = min(workers, len(plan.to_train))
        seconds += (unit.run.recipe.passes(training.epochs) * per_epoch + passes + streams) / at_a_time
        size += sum(signal.bytes_needed(shape) for signal in without_parts(unit.signals))
    return seconds, size


@dataclass(frozen=True)
class Cost:
    """Per image."""

    prefix_seconds: float
    forward_seconds: float
    step_seconds: float
    feature_numbers: int


@cache
def measure(backbone: Backbone, is_plain: bool) -> Cost:
    """Uses random weights, which take as long as trained ones."""
    model = untrained_backbone(backbone, CLASSES, is_plain)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    batch = torch.rand(IMAGES, 3, backbone.image_size, backbone.image_size)
    with torch.no_grad():
        model.tail(model.features(batch[:2]))  # the first call sets things up
        prefix_seconds, cached = _timed(lambda: model.cached(batch))
        features = batch if is_plain else cached
        forward_seconds, _ = _timed(lambda: model.tail(features))
    step_seconds, _ = _timed(lambda: model.tail(features).sum().backward())  # type: ignore[no-untyped-call]
    torch.set_num_threads(threads)
    return Cost(prefix_seconds, forward_seconds, step_seconds, cached[0].numel())


def _timed(call: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    """Seconds per image, and what the call returns."""
    started = time.perf_counter()
    result = call()
    return (time.perf_counter() - started) / IMAGES, result
