"""What the command line changes in a study, or takes of a pack."""

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmark.data.datasets import known_datasets
from benchmark.errors import LincBenchError, unknown_name
from benchmark.noise import noise_named
from benchmark.runs import Grid, LineUp, Plan, Seeds, Sources, Study
from benchmark.upkeep.packed_runs import plan_scoring, study_of
from benchmark.upkeep.packs import read_pack, unpack
from detectors import LINE_UPS, Detector, detector_named
from detectors.own_files import is_detector_file, load_detector

T = TypeVar("T")


@dataclass(frozen=True)
class Overrides:
    """What is not given stays as the study has it."""

    datasets: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()
    training_seeds: tuple[int, ...] = ()
    noise_seeds: tuple[int, ...] = ()
    trainings: int | None = None
    noise: str | None = None
    given_labels: str | None = None
    noise_file: str | None = None
    noise_matrix: str | None = None
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

    Data sets, rates, seeds, detectors and line-ups of the study select the grids that have them; a value in no grid is
    added to every grid.
    """
    is_scored = bool(overrides.detectors or overrides.line_ups)
    grids = [_overridden_grid(study, grid, overrides) for grid in study.grids]
    chosen = tuple(
        grid for grid in grids if grid.datasets and grid.rates and grid.seeds and (grid.detectors or not is_scored)
    )
    if not chosen:
        raise LincBenchError(
            f"No run of the study {study.name} matches --dataset, --rate, --seed, --detector and --line-up together. "
            "Leave one of them out, and see with --dry-run which runs there are."
        )
    changed = replace(study, grids=chosen)
    is_modified = changed != study or overrides.weights is not None
    name = overrides.name or (f"{study.name}-modified" if is_modified else study.name)
    device = _device(overrides)
    on_device = (replace(grid, training=replace(grid.training, device=device)) for grid in chosen)
    return replace(changed, name=name, grids=tuple(on_device), is_modified=is_modified)


def plan_pack(options: argparse.Namespace, sources: Sources, say: Callable[[str], None]) -> Plan:
    """The runs of a pack, which are unpacked unless the plan is only shown. Everything else is checked before that."""
    wanted, pack = Overrides.from_options(options), read_pack(options.from_pack)
    kept = replace(
        Overrides(), detectors=wanted.detectors, line_ups=wanted.line_ups, name=wanted.name, dask=wanted.dask
    )
    if wanted != kept or options.force or options.study not in (None, pack.study):
        raise LincBenchError(
            f"--from-pack scores the runs of {pack.path} as they are (study {pack.study}). Leave out what chooses or "
            "changes runs; it takes --detector, --line-up and --name."
        )
    study = study_of(pack.runs, wanted.name or f"{pack.study}-from-pack")
    chosen = overridden(study, replace(kept, name=study.name, device="cpu", dask=None))
    plan = plan_scoring(pack.runs, chosen, sources)
    plan.check_datasets()
    others = {detector.name for members in LINE_UPS.values() for detector in members}
    others -= {detector.name for detector in study.detectors}
    if others and all(map(is_detector_file, wanted.detectors)):
        say(f"note: left out, since the records lack what they read: {'; '.join(sorted(others))}")
    if not options.dry_run:
        unpack(pack, sources.results)
    return plan


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
    changed = {"epochs": wanted.epochs, "batch_size": wanted.batch_size, "augment": wanted.augment}
    training = _replaced(grid.training, changed | {"plain": wanted.plain or wanted.augment})
    line_ups = _line_ups(study, grid, wanted.line_ups)
    if wanted.detectors and (line_ups or not wanted.line_ups):
        own = tuple(load_detector(name, training) for name in wanted.detectors if is_detector_file(name))
        line_ups = _with_detectors(study, line_ups, wanted, own)
    noise = _noise(wanted)
    rates = {rate for other in study.grids for rate in other.rates}
    network = {"name": wanted.backbone, "image_size": wanted.image_size, "feature_dtype": wanted.feature_dtype}
    return replace(
        grid,
        datasets=_datasets(study, grid, wanted.datasets or study.datasets),
        rates=_selected(wanted.rates, grid.rates, rates),
        seeds=_seeds(study, grid, wanted),
        trainings=wanted.trainings or grid.trainings,
        line_ups=line_ups,
        noise=noise or grid.noise,
        backbone=_replaced(grid.backbone, network),
        training=training,
    )


def _noise(wanted: Overrides) -> str | None:
    """The one that is wanted, as `name:option`."""
    options = {
        "--noise": wanted.noise,
        "--given-labels": wanted.given_labels and f"given:{wanted.given_labels}",
        "--noise-file": wanted.noise_file and f"file:{wanted.noise_file}",
        "--noise-matrix": wanted.noise_matrix and f"asymmetric:{wanted.noise_matrix}",
    }
    chosen = {option: text for option, text in options.items() if text}
    if len(chosen) > 1:
        raise LincBenchError(f"{' and '.join(chosen)} each say which labels are wrong; give one of them.")
    for option, text in chosen.items():
        kind = noise_named(text)
        if wanted.rates and not kind.takes_rate:
            raise LincBenchError(f"{option} says by itself how many labels are wrong; leave out --rate.")
        if wanted.noise_seeds and not kind.takes_seed:
            raise LincBenchError(f"{option} says by itself which labels are wrong; leave out --noise-seed.")
        return text
    return None


def _replaced(settings: Any, values: Mapping[str, object]) -> Any:
    """The settings with the values that are given."""
    return replace(settings, **{name: value for name, value in values.items() if value})


def _selected(wanted: tuple[T, ...], of_grid: tuple[T, ...], of_study: set[T]) -> tuple[T, ...]:
    """The wanted values that this grid has or no grid has; everything of the grid if none is wanted."""
    return tuple(value for value in wanted if value in of_grid or value not in of_study) if wanted else of_grid


def _seeds(study: Study, grid: Grid, wanted: Overrides) -> tuple[Seeds, ...]:
    """The grid's pairs with the wanted training seeds; a seed in no grid is that of training and noise."""
    known = {training for other in study.grids for _, training in other.seeds}
    pairs = [pair for seed in wanted.training_seeds for pair in grid.seeds if pair[1] == seed] + [
        (seed, seed) for seed in wanted.training_seeds if seed not in known
    ]
    chosen = tuple(pairs) if wanted.training_seeds else grid.seeds
    changed = ((noise, training) for noise in wanted.noise_seeds for _, training in chosen)
    return tuple(dict.fromkeys(changed)) if wanted.noise_seeds else chosen


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


def _line_ups(study: Study, grid: Grid, wanted: tuple[str, ...]) -> tuple[LineUp, ...]:
    """The wanted line-ups of the grid; one that no grid has is added whole."""
    if not wanted:
        return grid.line_ups
    of_study, of_grid = ({line_up.name for line_up in part.line_ups} for part in (study, grid))
    chosen = _selected(wanted, tuple(of_grid), of_study)
    added = (LineUp(name, LINE_UPS[name]) for name in chosen if name not in of_study)
    return (*(line_up for line_up in grid.line_ups if line_up.name in chosen), *added)


def _with_detectors(
    study: Study, line_ups: tuple[LineUp, ...], wanted: Overrides, own: tuple[Detector, ...]
) -> tuple[LineUp, ...]:
    """The named detectors of these line-ups, and those that no grid has; `own` ones join them, or else all."""
    texts = [text for text in wanted.detectors if not is_detector_file(text)]
    members = {line_up.name: line_up.detectors for line_up in line_ups} or dict.fromkeys(LINE_UPS, ())
    in_study = [line_up for line_up in study.line_ups if line_up.name in (wanted.line_ups or (line_up.name,))]
    known = {text: _labels(text, [one for line_up in in_study for one in line_up.detectors]) for text in texts}
    addable = [detector for name in members for detector in LINE_UPS[name]]
    chosen = {label for found in known.values() for label in found}
    added = {label for text, found in known.items() if not found for label in _labels(text, addable)}
    of_study = {detector.name for detector in study.detectors}
    for name, detectors in members.items() if texts else ():
        new = (one for one in LINE_UPS[name] if one.label in added and one.name not in of_study)
        members[name] = tuple(dict.fromkeys([*(one for one in detectors if one.label in chosen), *new]))
    first = next(iter(members))
    members[first] = tuple(dict.fromkeys((*members[first], *own)))
    labels = [detector.label for detector in members[first]]
    for detector in own:
        if labels.count(detector.label) > 1:
            raise LincBenchError(f"There are two detectors called '{detector.label}'; give yours another `name`.")
    compares_more = {name: set(detectors) - set(members[first]) for name, detectors in members.items()}
    return tuple(LineUp(name, all_of) for name, all_of in members.items() if name == first or compares_more[name])


def _labels(text: str, detectors: Collection[Detector]) -> set[str]:
    """Of the detector that is called exactly so; of those with that name, with whatever options, if none is."""
    exact = {detector.label for detector in detectors if detector.label.lower() == text.lower()}
    return exact or {detector.label for detector in detectors if detector.name == detector_named(text).name}


def _device(overrides: Overrides) -> str:
    """The device of this machine, or the one that is wanted on others."""
    available, wanted = available_devices(), overrides.device
    if wanted is None or wanted == "auto":
        return next(device for device, is_available in available.items() if is_available)
    if not available[wanted] and overrides.dask is None:
        raise LincBenchError(f"This machine has no {wanted} device that torch can use; leave --device out, or use cpu.")
    return wanted
