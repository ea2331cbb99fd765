"""Estimates the time and disk space of a plan by timing one batch of each network."""

import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache

import numpy as np
import torch

from benchmark.disk import UNREADABLE, ResultsFolder, read_json, slug, write_json
from benchmark.disk.provenance import machine
from benchmark.networks import Backbone
from benchmark.networks.loading import untrained_backbone
from benchmark.record import EvalLogits, without_parts
from benchmark.runs.plan import Plan

KEPT = 24 * 3600  # seconds for which a timing counts: the machine may have been busy
IMAGES, CLASSES = 16, 10  # in the batch; the number of classes hardly changes the time


def estimate(plan: Plan, workers: int) -> tuple[float, int]:
    """Seconds, and bytes on disk."""
    seconds, size = 0.0, 0
    for unit, info in plan.stores_to_compute().values():
        cost = known_cost(plan.sources.results, unit.run.backbone, unit.run.training.plain)
        seconds += sum(info.sizes) * cost.prefix_seconds / workers
        itemsize = np.dtype(unit.run.backbone.feature_dtype).itemsize
        size += int(sum(info.sizes) * cost.feature_numbers * itemsize)
    for unit in plan.to_train:
        shape, training, images = unit.shape, unit.run.training, sum(unit.info.sizes)
        cost = known_cost(plan.sources.results, unit.run.backbone, training.plain)
        per_epoch = shape.samples * cost.step_seconds + (images - shape.samples) * cost.forward_seconds
        of_passes = [signal for signal in unit.signals if issubclass(signal.recorded_with, EvalLogits)]
        recorded = [signal.epochs_of(shape.epochs) for signal in of_passes]
        passes = len(set().union(*recorded)) * shape.samples * cost.forward_seconds
        streams = sum(signal.prefix_passes(shape) for signal in unit.signals) * shape.samples * cost.prefix_seconds
        at_a_time = min(workers, len(plan.to_train))
        seconds += (unit.run.recipe.passes(training.epochs) * per_epoch + passes + streams) / at_a_time
        size += sum(signal.bytes_needed(shape) for signal in without_parts(unit.signals))
    return seconds, size


def without_input_gradients(plan: Plan) -> tuple[Plan, list[str]]:
    """The plan without the signals that need further passes through the whole network, and who reads these."""
    wanting = [
        (detector.name, unit)
        for unit in plan.to_train
        for detector in unit.detectors
        if any(signal.prefix_passes(unit.shape) for signal in detector.needs)
    ]
    others = {
        replace(unit, signals=tuple(signal for signal in unit.signals if not signal.prefix_passes(unit.shape))): why
        for unit, why in plan.to_train.items()
    }
    return replace(plan, to_train=others), list(dict.fromkeys(name for name, _ in wanting))


def known_cost(results: ResultsFolder, backbone: Backbone, is_plain: bool) -> "Cost":
    """As it was timed here within a day, or timed now and kept, if there is a results folder."""
    place = slug(f"{platform.node()}-{machine()}-{backbone.name}-{backbone.image_size}px{'-plain' * is_plain}")
    file = results.speed(place)
    with suppress(*UNREADABLE):
        if 0 <= time.time() - file.stat().st_mtime < KEPT:
            return Cost(**read_json(file))
    cost = measure(backbone, is_plain)
    with suppress(OSError):
        if results.root.is_dir():
            write_json(file, asdict(cost))
    return cost


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
