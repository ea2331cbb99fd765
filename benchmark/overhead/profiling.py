"""`linc-bench profile`: measures the cost of every detector of a study on its data sets, and writes it as rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmark.disk import provenance_columns
from benchmark.disk.tables import matches, merge_rows
from benchmark.execution.executors import InProcessExecutor
from benchmark.execution.progress import Progress
from benchmark.overhead.charges import (
    BASELINE,
    Observation,
    Row,
    Variant,
    four_digits,
    of_same_recipe,
    shares_of,
    terms_of,
    variant_for,
    variants_for,
)
from benchmark.overhead.measure import Memory, measure_memory, measure_seconds
from benchmark.overhead.setups import OnDataset
from benchmark.overhead.tables import SETTING
from benchmark.record.history import Stopwatch
from benchmark.runs import Grid, LineUp, Sources, Study, plan_study
from benchmark.runs.inputs import prepare_inputs
from detectors import Detector

RATE = 0.2
ROUNDS, SAMPLES = 6, 128  # unless the user says otherwise
MEMORY_ROUNDS = 3
MORE_SAMPLES = 10  # times as many for a recipe of its own: some of its cost, as of a mixture, hardly grows with them


def profile(grid: Grid, sources: Sources, rounds: int, samples: int, progress: Progress) -> None:
    """Writes a row per detector into overhead.csv, and the terms of LiNC's cost into overhead_terms.csv."""
    for dataset in grid.datasets:
        setup = _prepared(replace(grid, datasets=(dataset,)), sources, samples, progress)
        rows, terms = _measure(setup, grid.line_ups, rounds, progress)
        merge_rows(sources.results, "overhead", rows, partial(matches, [*SETTING, "line_up"], rows))
        merge_rows(sources.results, "overhead_terms", terms, partial(matches, SETTING, terms))


def _prepared(grid: Grid, sources: Sources, samples: int, progress: Progress) -> OnDataset:
    """A standard training whose features and labels are on disk."""
    setting = replace(grid, rates=(RATE,), noise_seeds=(0,), training_seeds=(0,), recipes=(BASELINE.recipe,))
    plan = plan_study(Study("profile", "", (setting,)), sources, force=True)
    unit = next(unit for unit in plan.units if unit.run.recipe == BASELINE.recipe)
    prepare_inputs(replace(plan, units=(unit,), to_train={unit: "to be measured"}), InProcessExecutor(), progress)
    return OnDataset(unit, plan.sources, samples)


def _measure(
    setup: OnDataset, line_ups: Sequence[LineUp], rounds: int, progress: Progress
) -> tuple[list[Row], list[Row]]:
    """The rows of overhead.csv and of overhead_terms.csv."""
    entries = [(line_up, detector) for line_up in line_ups for detector in line_up.detectors]
    alone = variants_for(detector for _, detector in entries)
    together = [variant_for(of_same_recipe(detector, line_up.detectors)) for line_up, detector in entries]
    variants = dict.fromkeys(together, ()) | alone
    setting = _setting(setup) | {"rounds": rounds}
    title = "{dataset}, {path} path".format_map(setting)
    with progress.counting(f"{title}: memory, runs") as report:
        # The baseline, measured like any other variant, says what a difference between two processes means.
        memory = measure_memory(_short(setup, alone), {BASELINE: [], **alone}, MEMORY_ROUNDS, report)
    observed: dict[Variant, list[Observation]] = {}
    sizes = {variant: setup.samples * _sample_factor(variant) for variant in variants}
    for size in dict.fromkeys(sizes.values()):
        some = {variant: detectors for variant, detectors in variants.items() if sizes[variant] == size}
        with progress.counting(f"{title}: seconds, rounds") as report:
            observed |= measure_seconds(replace(setup, samples=size), some, rounds, report)
    size = setup.unit.info.sizes[0]
    rows = [
        setting
        | {"line_up": line_up.name, "detector": detector.label}
        | _whole_training_set(observed[variant_for([detector])], size)
        | shares_of(observed, line_up, detector)
        | _memory_columns(memory, detector)
        | provenance_columns()
        for line_up, detector in entries
    ]
    return rows, [setting | term | provenance_columns() for term in terms_of(observed, setup.unit.shape.epochs)]


def _setting(setup: OnDataset) -> Row:
    """The columns that describe what is measured."""
    run, training, info = setup.unit.run, setup.unit.run.training, setup.unit.info
    stopwatch = Stopwatch(training.device, training.threads)
    return {
        "dataset": run.dataset,
        "backbone": run.backbone.name,
        "image_size": run.backbone.image_size,
        "path": "plain" if training.plain else "fast",
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "classes": info.num_classes,
        "training_samples": info.sizes[0],
        "threads": training.threads,
        "device": training.device,
        "clock": "processor" if stopwatch.counts_processor_time else "wall",
    }


def _sample_factor(variant: Variant) -> int:
    return MORE_SAMPLES if variant.recipe.records and variant.recipe != BASELINE.recipe else 1


def _short(setup: OnDataset, variants: Iterable[Variant]) -> OnDataset:
    """With as many epochs as the recipes need for all their phases: memory peaks no higher later."""
    run = setup.unit.run
    epochs = min(run.training.epochs, max(variant.recipe.min_epochs for variant in variants))
    shorter = replace(run, training=replace(run.training, epochs=epochs))
    return replace(setup, unit=replace(setup.unit, run=shorter))


def _whole_training_set(runs: Sequence[Observation], samples: int) -> Row:
    """What grows with the data, scaled from the measured samples to all of them."""
    scale = samples / runs[0].samples
    return {
        "measured_samples": runs[0].samples,
        "standard_seconds": four_digits(scale * float(np.median([run.base for run in runs]))),
        "disk_bytes": round(scale * sum(runs[0].recorded.values())),
    }


def _memory_columns(memory: Mapping[Variant, Memory], detector: Detector) -> Row:
    pairs = memory[variant_for([detector])]
    added = [own.run - baseline.run for own, baseline in pairs]
    of_baselines = [peaks.run for pair in memory[BASELINE] for peaks in pair]
    return {
        "memory_bytes": int(np.median(added)),
        "memory_bytes_low": min(added),
        "memory_bytes_high": max(added),
        "memory_floor_bytes": max(of_baselines) - min(of_baselines),
        "scoring_memory_bytes": int(np.median([own.scoring[detector] for own, _ in pairs])),
        "device_bytes": int(np.median([own.device - baseline.device for own, baseline in pairs])),
    }
