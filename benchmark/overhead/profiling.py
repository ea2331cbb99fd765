"""`linc-bench profile`: measures the cost of every detector of a study on its data sets, and writes it as rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmark.disk import provenance_columns
from benchmark.disk.tables import matches, merge_rows
from benchmark.execution.executors import InProcessExecutor
from benchmark.execution.progress import Progress
from benchmark.overhead.charges import BASELINE, Observation, Variant, variants_for
from benchmark.overhead.measure import measure_memory, measure_seconds
from benchmark.overhead.setups import OnDataset
from benchmark.overhead.shares import Row, memory_columns, row_of, shared_run, terms_of
from benchmark.overhead.tables import SETTING
from benchmark.runs import Grid, LineUp, Sources, Study, plan_study
from benchmark.runs.inputs import prepare_inputs

RATE = 0.2
MEMORY_ROUNDS = 3
MORE_SAMPLES = (
    10  # times as many for a recipe of its own: some of its cost, as of a mixture, hardly grows with the data
)


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int = 6
    samples: int = 128


def profile(grid: Grid, sources: Sources, effort: Effort, progress: Progress) -> None:
    """Writes a row per detector into overhead.csv, and the terms of LiNC's cost into overhead_terms.csv."""
    for dataset in grid.datasets:
        setup = _prepared(replace(grid, datasets=(dataset,)), sources, effort, progress)
        rows, terms = _measure(setup, grid.line_ups, effort, progress)
        merge_rows(sources.results, "overhead", rows, partial(matches, [*SETTING, "line_up"], rows))
        merge_rows(sources.results, "overhead_terms", terms, partial(matches, SETTING, terms))


def _prepared(grid: Grid, sources: Sources, effort: Effort, progress: Progress) -> OnDataset:
    """A standard training whose features and labels are on disk."""
    setting = replace(grid, rates=(RATE,), noise_seeds=(0,), training_seeds=(0,), recipes=(BASELINE.recipe,))
    plan = plan_study(Study("profile", "", (setting,)), sources, force=True)
    unit = next(unit for unit in plan.units if unit.run.recipe == BASELINE.recipe)
    prepare_inputs(replace(plan, units=(unit,), to_train={unit: "to be measured"}), InProcessExecutor(), progress)
    return OnDataset(unit, plan.sources, effort.samples)


def _measure(
    setup: OnDataset, line_ups: Sequence[LineUp], effort: Effort, progress: Progress
) -> tuple[list[Row], list[Row]]:
    """The rows of overhead.csv and of overhead_terms.csv."""
    entries = [(line_up, detector) for line_up in line_ups for detector in line_up.detectors]
    alone = variants_for([detector for _, detector in entries])
    variants = dict.fromkeys((shared_run(*entry) for entry in entries), ()) | alone
    unit, setting = setup.unit, setup.setting | {"rounds": effort.rounds}
    title = "{dataset}, {path} path".format_map(setting)
    with progress.counting(f"{title}: memory, runs") as report:
        # The baseline, measured like any other variant, says what a difference between two processes means.
        memory = measure_memory(_short(setup, alone), {BASELINE: [], **alone}, MEMORY_ROUNDS, report)
    observed: dict[Variant, list[Observation]] = {}
    sizes = {variant: effort.samples * _sample_factor(variant) for variant in variants}
    for size in dict.fromkeys(sizes.values()):
        some = {variant: detectors for variant, detectors in variants.items() if sizes[variant] == size}
        with progress.counting(f"{title}: seconds, rounds") as report:
            observed |= measure_seconds(replace(setup, samples=size), some, effort.rounds, report)
    rows = [
        setting | row_of(unit.info.sizes[0], observed, *entry) | memory_columns(memory, entry[1]) | provenance_columns()
        for entry in entries
    ]
    return rows, [setting | term | provenance_columns() for term in terms_of(observed, unit.shape.epochs)]


def _sample_factor(variant: Variant) -> int:
    return MORE_SAMPLES if variant.recipe.records and variant.recipe != BASELINE.recipe else 1


def _short(setup: OnDataset, variants: Iterable[Variant]) -> OnDataset:
    """With as many epochs as the recipes need for all their phases: memory peaks no higher later."""
    run = setup.unit.run
    epochs = min(run.training.epochs, max(variant.recipe.min_epochs for variant in variants))
    shorter = replace(run, training=replace(run.training, epochs=epochs))
    return replace(setup, unit=replace(setup.unit, run=shorter))
