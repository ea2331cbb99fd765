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
from benchmark.overhead.setups import on_dataset
from benchmark.overhead.tables import SETTING
from benchmark.record.history import Stopwatch
from benchmark.runs import Grid, LineUp, Plan, Sources, Study, Unit, plan_study
from benchmark.runs.inputs import prepare_inputs
from detectors import Detector

RATE = 0.2
ROUNDS, SAMPLES = 6, 128  # unless the user says otherwise
MEMORY_ROUNDS = 3
MORE_SAMPLES = 10  # times as many for a recipe of its own: some of its cost, as of a mixture, hardly grows with them


def profile(grid: Grid, sources: Sources, rounds: int, samples: int, progress: Progress) -> None:
    """Writes a row per detector into overhead.csv, and the terms of LiNC's cost into overhead_terms.csv."""
    _plan(grid, sources).check_datasets()
    for dataset in grid.datasets:
        plan = _prepared(replace(grid, datasets=(dataset,)), sources, progress)
        rows, terms = _measure(plan, grid.line_ups, rounds, samples, progress)
        merge_rows(sources.results, "overhead", rows, partial(matches, [*SETTING, "line_up"], rows))
        merge_rows(sources.results, "overhead_terms", terms, partial(matches, SETTING, terms))


def _prepared(grid: Grid, sources: Sources, progress: Progress) -> Plan:
    """Of one standard training, whose features and labels are then on disk."""
    plan = _plan(grid, sources)
    unit = next(unit for unit in plan.units if unit.run.recipe == BASELINE.recipe)
    plan = replace(plan, units=(unit,), to_train={unit: "to be measured"})
    prepare_inputs(plan, InProcessExecutor(), progress)
    return plan


def _plan(grid: Grid, sources: Sources) -> Plan:
    setting = replace(grid, rates=(RATE,), seeds=((0, 0),), recipes=(BASELINE.recipe,))
    return plan_study(Study("profile", "", (setting,)), sources, force=True)


def _measure(
    plan: Plan, line_ups: Sequence[LineUp], rounds: int, samples: int, progress: Progress
) -> tuple[list[Row], list[Row]]:
    """The rows of overhead.csv and of overhead_terms.csv."""
    unit = plan.units[0]
    entries = [(line_up, detector) for line_up in line_ups for detector in line_up.detectors]
    alone = variants_for(detector for _, detector in entries)
    together = [variant_for(of_same_recipe(detector, line_up.detectors)) for line_up, detector in entries]
    variants = dict.fromkeys(together, ()) | alone
    setting = _setting(unit) | {"rounds": rounds}
    title = "{dataset}, {path} path".format_map(setting)
    with progress.counting(f"{title}: memory, runs") as report:
        # The baseline, measured like any other variant, says what a difference between two processes means.
        setup = partial(on_dataset, _shortened(unit, alone), plan.sources, samples)
        memory = measure_memory(setup, {BASELINE: [], **alone}, MEMORY_ROUNDS, report)
    observed: dict[Variant, list[Observation]] = {}
    sizes = {variant: samples * _sample_factor(variant) for variant in variants}
    for size in dict.fromkeys(sizes.values()):
        some = {variant: detectors for variant, detectors in variants.items() if sizes[variant] == size}
        with progress.counting(f"{title}: seconds, rounds") as report:
            observed |= measure_seconds(partial(on_dataset, unit, plan.sources, size), some, rounds, report)
    rows = [
        setting
        | {"line_up": line_up.name, "detector": detector.label}
        | _whole_training_set(observed[variant_for([detector])], unit.shape.samples)
        | shares_of(observed, line_up, detector)
        | _memory_columns(memory, detector)
        | provenance_columns()
        for line_up, detector in entries
    ]
    return rows, [setting | term | provenance_columns() for term in terms_of(observed, unit.shape.epochs)]


def _setting(unit: Unit) -> Row:
    """The columns that describe what is measured."""
    run, training, info = unit.run, unit.run.training, unit.info
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


def _shortened(unit: Unit, variants: Iterable[Variant]) -> Unit:
    """With as many epochs as the recipes need for all their phases: memory peaks no higher later."""
    training = unit.run.training
    epochs = min(training.epochs, max(variant.recipe.min_epochs for variant in variants))
    return replace(unit, run=replace(unit.run, training=replace(training, epochs=epochs)))


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
