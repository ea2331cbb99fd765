"""What the command line says instead of what a study says."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from benchmark.data.datasets import known_datasets
from benchmark.data.noise import noise_named
from benchmark.errors import LincBenchError, unknown_name
from benchmark.runs.own_detectors import is_detector_file, load_detector
from benchmark.runs.studies import Grid, LineUp, Study
from detectors import LINE_UPS, detector_named

T = TypeVar("T")


def overridden(study: Study, options: argparse.Namespace) -> Study:
    """The study with what the command line says instead, in each of its grids.

    Data sets, rates and seeds that the study has are chosen from it; others are tried in all of its grids.
    """
    grids = [_overridden_grid(study, grid, options) for grid in study.grids]
    chosen = tuple(grid for grid in grids if grid.datasets and grid.rates and grid.training_seeds)
    if not chosen:
        raise LincBenchError(
            f"No run of the study {study.name} has all that was chosen by --dataset, --rate and --seed. Leave one of "
            "them out to see with --dry-run which runs there are."
        )
    changed = replace(study, grids=chosen)
    is_modified = changed != study or options.weights is not None
    name = options.name or (f"{study.name}-modified" if is_modified else study.name)
    device = _device(options.device, elsewhere=getattr(options, "dask", None) is not None)
    training = [replace(grid.training, device=device) for grid in changed.grids]
    on_device = tuple(replace(grid, training=one) for grid, one in zip(changed.grids, training, strict=True))
    return replace(changed, name=name, grids=on_device, is_modified=is_modified)


def with_whole_paths(study: Study) -> Study:
    """For workers in another folder."""

    def whole(argument: str) -> str:
        is_path = argument not in known_datasets() and Path(argument).exists()
        return str(Path(argument).absolute()) if is_path else argument

    grids = [replace(grid, datasets=tuple(map(whole, grid.datasets))) for grid in study.grids]
    return replace(study, grids=tuple(grids))


def _datasets(study: Study, grid: Grid, wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of the grid that are wanted, NAME=PATH being a file for one of them, and those that the study has not."""
    found = []
    for text in wanted:
        name, equals, path = text.partition("=")
        if name not in study.datasets:
            found.append(text)
        elif name in grid.datasets:
            found.append(path if equals else name)
    return tuple(dict.fromkeys(found))


def _chosen(wanted: Sequence[T], of_grid: tuple[T, ...], of_study: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """Of what is wanted, if anything is: what the grid has, and what no grid of the study has."""
    elsewhere = {value for values in of_study for value in values} - set(of_grid)
    return tuple(dict.fromkeys(value for value in wanted if value not in elsewhere)) if wanted else of_grid


def _overridden_grid(study: Study, grid: Grid, options: argparse.Namespace) -> Grid:
    seeds = _seeds("--seed", options.seed)
    return replace(
        grid,
        datasets=_datasets(study, grid, options.dataset or study.datasets),
        rates=_chosen(options.rate or (), grid.rates, (one.rates for one in study.grids)),
        training_seeds=_chosen(seeds, grid.training_seeds, (one.training_seeds for one in study.grids)),
        noise_seeds=_seeds("--noise-seed", options.noise_seed) or grid.noise_seeds,
        line_ups=_named_line_ups(
            _chosen_line_ups(grid, options.detector) if options.detector else grid.line_ups, options.line_up
        ),
        noise=noise_named(options.noise).name if options.noise else grid.noise,
        backbone=replace(
            grid.backbone,
            name=options.backbone or grid.backbone.name,
            image_size=within("--image-size", options.image_size, 8, 2048) or grid.backbone.image_size,
            feature_dtype=options.feature_dtype or grid.backbone.feature_dtype,
        ),
        training=replace(
            grid.training,
            epochs=within("--epochs", options.epochs, 1, 100_000) or grid.training.epochs,
            batch_size=within("--batch-size", options.batch_size, 1, 10**6) or grid.training.batch_size,
            plain=options.plain or options.augment or grid.training.plain,
            augment=options.augment or grid.training.augment,
        ),
    )


def _named_line_ups(line_ups: tuple[LineUp, ...], names: list[str] | None) -> tuple[LineUp, ...]:
    for name in names or ():
        if name not in LINE_UPS:
            raise unknown_name("line-up", name, LINE_UPS)
    return tuple(line_up for line_up in line_ups if not names or line_up.name in names)


def _chosen_line_ups(grid: Grid, names: list[str]) -> tuple[LineUp, ...]:
    """The named detectors in every line-up that has them. One from a file of its own joins them, or the whole study."""
    own = tuple(load_detector(name) for name in names if is_detector_file(name))
    known = {detector_named(name).name for name in names if not is_detector_file(name)}
    chosen = [
        LineUp(name, tuple(one for one in detectors if one.name in known)) for name, detectors in LINE_UPS.items()
    ]
    line_ups = chosen if known else list(grid.line_ups) or [LineUp("original", ())]
    line_ups[0] = LineUp(line_ups[0].name, tuple(dict.fromkeys((*line_ups[0].detectors, *own))))
    labels = [detector.label for detector in line_ups[0].detectors]
    for detector in own:
        if labels.count(detector.label) > 1:
            raise LincBenchError(f"There are two detectors called '{detector.label}'; give yours another `name`.")
    return tuple(line_up for line_up in line_ups if line_up.detectors)


def within(option: str, value: int | None, least: int, most: int) -> int | None:
    if value is not None and not least <= value <= most:
        raise LincBenchError(f"{option} is {value}; it must be from {least} to {most:,}.")
    return value


def _seeds(option: str, values: list[int] | None) -> tuple[int, ...]:
    return tuple(dict.fromkeys(within(option, value, 0, 2**31) or 0 for value in values or ()))


def available_devices() -> dict[str, bool]:
    return {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}


def _device(wanted: str | None, elsewhere: bool) -> str:
    """What this machine has, or what is wanted of others."""
    there = available_devices()
    if wanted in (None, "auto"):
        return next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[str(wanted)] and not elsewhere:
        raise LincBenchError(f"This machine has no {wanted} device that torch can use; leave --device out, or use cpu.")
    return str(wanted)
