"""What the command line changes in a study."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmark.data import noise_named
from benchmark.data.datasets import known_datasets
from benchmark.errors import LincBenchError, unknown_name
from benchmark.runs import Grid, LineUp, Study
from detectors import LINE_UPS, detector_named
from detectors.own_files import is_detector_file, load_detector

T = TypeVar("T")


@dataclass(frozen=True)
class Overrides:
    """What is not given stays as the study has it."""

    datasets: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()
    training_seeds: tuple[int, ...] = ()
    noise_seeds: tuple[int, ...] = ()
    noise: str | None = None
    detectors: tuple[str, ...] = ()
    line_ups: tuple[str, ...] = ()
    backbone: str | None = None
    image_size: int | None = None
    feature_dtype: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    plain: bool = False
    augment: bool = False
    weights: Path | None = None
    device: str | None = None
    dask: str | None = None  # other machines train, whose devices are not known here
    name: str | None = None

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> "Overrides":
        """From options whose destinations are the fields of this class; each value of a list counts once."""
        values: dict[str, Any] = {}
        for field in fields(cls):
            value = getattr(options, field.name, None)
            if value is not None:
                values[field.name] = tuple(dict.fromkeys(value)) if isinstance(value, list) else value
        return cls(**values)


def overridden(study: Study, overrides: Overrides) -> Study:
    """The study with the overrides in each of its grids.

    Data sets, rates and seeds of the study select the grids that have them; a value in no grid is added to every grid.
    """
    grids = [_overridden_grid(study, grid, overrides) for grid in study.grids]
    chosen = tuple(grid for grid in grids if grid.datasets and grid.rates and grid.training_seeds)
    if not chosen:
        raise LincBenchError(
            f"No run of the study {study.name} matches --dataset, --rate and --seed together. Leave one of them out, "
            "and see with --dry-run which runs there are."
        )
    changed = replace(study, grids=chosen)
    is_modified = changed != study or overrides.weights is not None
    name = overrides.name or (f"{study.name}-modified" if is_modified else study.name)
    device = _device(overrides)
    on_device = (replace(grid, training=replace(grid.training, device=device)) for grid in chosen)
    return replace(changed, name=name, grids=tuple(on_device), is_modified=is_modified)


def with_absolute_paths(study: Study) -> Study:
    """For workers that run in another folder."""
    paths = [name for name in study.datasets if name not in known_datasets() and Path(name).exists()]
    absolute = {path: str(Path(path).absolute()) for path in paths}
    grids = [replace(grid, datasets=tuple(absolute.get(name, name) for name in grid.datasets)) for grid in study.grids]
    return replace(study, grids=tuple(grids))


def available_devices() -> dict[str, bool]:
    import torch

    return {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}


def _overridden_grid(study: Study, grid: Grid, wanted: Overrides) -> Grid:
    for name in wanted.line_ups:
        if name not in LINE_UPS:
            raise unknown_name("line-up", name, LINE_UPS)
    line_ups = _with_detectors(grid, wanted.detectors) if wanted.detectors else grid.line_ups
    if wanted.line_ups:
        line_ups = tuple(line_up for line_up in line_ups if line_up.name in wanted.line_ups)
    rates = {rate for other in study.grids for rate in other.rates}
    seeds = {seed for other in study.grids for seed in other.training_seeds}
    network = {"name": wanted.backbone, "image_size": wanted.image_size, "feature_dtype": wanted.feature_dtype}
    training = {"epochs": wanted.epochs, "batch_size": wanted.batch_size, "augment": wanted.augment}
    return replace(
        grid,
        datasets=_datasets(study, grid, wanted.datasets or study.datasets),
        rates=_selected(wanted.rates, grid.rates, rates),
        training_seeds=_selected(wanted.training_seeds, grid.training_seeds, seeds),
        noise_seeds=wanted.noise_seeds or grid.noise_seeds,
        line_ups=line_ups,
        noise=noise_named(wanted.noise).name if wanted.noise else grid.noise,
        backbone=_replaced(grid.backbone, network),
        training=_replaced(grid.training, training | {"plain": wanted.plain or wanted.augment}),
    )


def _replaced(settings: Any, values: Mapping[str, object]) -> Any:
    """The settings with the values that are given."""
    return replace(settings, **{name: value for name, value in values.items() if value})


def _selected(wanted: tuple[T, ...], of_grid: tuple[T, ...], of_study: set[T]) -> tuple[T, ...]:
    """The wanted values that this grid has or no grid has; everything of the grid if none is wanted."""
    return tuple(value for value in wanted if value in of_grid or value not in of_study) if wanted else of_grid


def _datasets(study: Study, grid: Grid, wanted: Iterable[str]) -> tuple[str, ...]:
    """The wanted data sets of the grid (NAME=PATH is a file for one of them), and those in no grid of the study."""
    chosen = []
    for text in wanted:
        name, equals, path = text.partition("=")
        if name not in study.datasets:
            chosen.append(text)
        elif name in grid.datasets:
            chosen.append(path if equals else name)
    return tuple(dict.fromkeys(chosen))


def _with_detectors(grid: Grid, names: tuple[str, ...]) -> tuple[LineUp, ...]:
    """The named detectors in every line-up that has them; a detector from a file joins them, or else the study's."""
    own = tuple(load_detector(name) for name in names if is_detector_file(name))
    known = {detector_named(name).name for name in names if not is_detector_file(name)}
    line_ups = list(grid.line_ups) or [LineUp("original", ())]
    if known:
        line_ups = [
            LineUp(name, tuple(detector for detector in detectors if detector.name in known))
            for name, detectors in LINE_UPS.items()
        ]
    line_ups[0] = LineUp(line_ups[0].name, tuple(dict.fromkeys((*line_ups[0].detectors, *own))))
    labels = [detector.label for detector in line_ups[0].detectors]
    for detector in own:
        if labels.count(detector.label) > 1:
            raise LincBenchError(f"There are two detectors called '{detector.label}'; give yours another `name`.")
    return tuple(line_up for line_up in line_ups if line_up.detectors)


def _device(overrides: Overrides) -> str:
    """The device of this machine, or the one that is wanted on others."""
    available, wanted = available_devices(), overrides.device
    if wanted is None or wanted == "auto":
        return next(device for device, is_available in available.items() if is_available)
    if not available[wanted] and overrides.dask is None:
        raise LincBenchError(f"This machine has no {wanted} device that torch can use; leave --device out, or use cpu.")
    return wanted
