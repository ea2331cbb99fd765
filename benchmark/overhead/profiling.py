"""`linc-bench profile`: measures what every detector of a study costs on its data set, and keeps it as rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmark.disk.provenance import provenance_columns
from benchmark.disk.tables import matches, merge_rows
from benchmark.execution.executors import InProcessExecutor
from benchmark.execution.progress import Progress
from benchmark.identity import Json
from benchmark.overhead.memory import is_known
from benchmark.overhead.overhead import (
    TWIN,
    Interval,
    Observation,
    Peaks,
    Report,
    Seconds,
    Variant,
    measure_seconds_in_children,
    median_interval,
    peaks_in_child,
    users,
    variant_for,
)
from benchmark.overhead.tables import SETTING
from benchmark.overhead.workbench import OnDataset
from benchmark.record.history import END_OF_EPOCHS, OBJECTIVE, PASS_OF_OBJECTIVE, Stopwatch
from benchmark.runs.pipeline import prepare
from benchmark.runs.plan import Sources, Unit, plan_study
from benchmark.runs.studies import Grid, LineUp, Study
from benchmark.training.loop import Standard
from detectors import Detector
from detectors.linc import LiNCRecipe

RATE = 0.2
MEMORY_ROUNDS = 3
MORE_SAMPLES = 10  # times as many where the training itself is changed


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int = 6
    samples: int = 128


def profile(grid: Grid, sources: Sources, effort: Effort, progress: Progress) -> None:
    """Writes a row per detector into overhead.csv, and LiNC's own terms into overhead_terms.csv."""
    for dataset in grid.datasets:
        one = replace(grid, datasets=(dataset,), rates=(RATE,), noise_seeds=(0,), training_seeds=(0,))
        study = Study("profile", "", (replace(one, recipes=(Standard(),)),))
        plan = plan_study(study, sources, force=True)
        unit = next(unit for unit in plan.units if unit.run.recipe == Standard())
        prepare(replace(plan, units=(unit,), to_train={unit: "to be measured"}), InProcessExecutor(), progress)
        rows, terms = _measure(unit, grid.line_ups, effort, progress)
        merge_rows(sources.results, "overhead", rows, partial(matches, [*SETTING, "line_up"], rows))
        if terms:
            merge_rows(sources.results, "overhead_terms", terms, partial(matches, SETTING, terms))


def _measure(
    unit: Unit, line_ups: Sequence[LineUp], effort: Effort, progress: Progress
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    to_score, what = _variants(line_ups), f"{unit.run.dataset}, {_path(unit)} path"
    with progress.counting(f"{what}: memory, runs") as report:
        memory = _memory(OnDataset(_short(unit, to_score), effort.samples), to_score, report)
    seconds, samples = _seconds(unit, to_score, effort, lambda: progress.counting(f"{what}: seconds, rounds"))
    about = _about(unit, effort.rounds)
    rows = []
    for line_up in line_ups:
        for detector in line_up.detectors:
            alone = variant_for([detector])
            n, whole = samples[alone], unit.info.sizes[0]
            scaled = {
                "measured_samples": n,
                "standard_seconds": _digits(seconds.base(alone) * whole / n),
                "disk_bytes": round(sum(seconds.of[alone][0].recorded.values()) * whole / n),
            }
            name = {"line_up": line_up.name, "detector": detector.label}
            costs = shares_of(seconds, line_up, detector) | memory[alone].columns(detector)
            rows.append(about | name | scaled | costs | provenance_columns())
    of_linc = [variant for variant in to_score if isinstance(variant.recipe, LiNCRecipe)][:1]
    terms = [
        about | {"measured_samples": samples[variant]} | term | provenance_columns()
        for variant in of_linc
        for term in terms_of(seconds, variant, unit.shape.epochs)
    ]
    return rows, terms


def _seconds(
    unit: Unit,
    to_score: Mapping[Variant, Sequence[Detector]],
    effort: Effort,
    counting: Callable[[], AbstractContextManager[Report]],
) -> tuple[Seconds, dict[Variant, int]]:
    """Of every variant, and on how many samples.

    What changes the training has costs that do not grow with the data, such as a mixture's: it is measured on more.
    """
    sizes = {
        variant: effort.samples * (MORE_SAMPLES if variant.recipe.records and variant.recipe != Standard() else 1)
        for variant in to_score
    }
    observed: dict[Variant, Sequence[Observation]] = {}
    measured: dict[Variant, int] = {}
    for size in dict.fromkeys(sizes.values()):
        some = {variant: detectors for variant, detectors in to_score.items() if sizes[variant] == size}
        with counting() as report:
            observed |= measure_seconds_in_children(OnDataset(unit, size), some, effort.rounds, report).of
        measured |= dict.fromkeys(some, min(size, unit.info.sizes[0]))
    return Seconds(observed), measured


def _variants(line_ups: Sequence[LineUp]) -> dict[Variant, list[Detector]]:
    """Every detector alone, with whoever reads the same; then whole line-ups, where nobody is scored."""
    to_score: dict[Variant, list[Detector]] = {}
    for detector in dict.fromkeys(one for line_up in line_ups for one in line_up.detectors):
        to_score.setdefault(variant_for([detector]), []).append(detector)
    for line_up in line_ups:
        for detector in line_up.detectors:
            to_score.setdefault(_together(line_up, detector), [])
    return to_score


def _together(line_up: LineUp, detector: Detector) -> Variant:
    """The run that a detector reads when the whole line-up is measured."""
    return variant_for([one for one in line_up.detectors if one.training == detector.training])


@dataclass(frozen=True)
class Memory:
    """What a variant's process had at its peak above its twin's in the same round, and what scoring had."""

    added: Sequence[int]
    device: Sequence[int]
    scoring: Mapping[Detector, Sequence[int]]
    floor: int  # by how much two twins differ

    def columns(self, detector: Detector) -> dict[str, Json]:
        if not is_known():
            return {"device_bytes": int(np.median(self.device))}
        return {
            "memory_bytes": int(np.median(self.added)),
            "memory_bytes_low": min(self.added),
            "memory_bytes_high": max(self.added),
            "memory_floor_bytes": self.floor,
            "scoring_memory_bytes": int(np.median(self.scoring[detector])),
            "device_bytes": int(np.median(self.device)),
        }


def _short(unit: Unit, variants: Iterable[Variant]) -> Unit:
    """With no more epochs than it takes for everything to happen: memory peaks no higher later."""
    epochs = min(unit.shape.epochs, max(variant.recipe.min_epochs for variant in variants))
    return replace(unit, run=replace(unit.run, training=replace(unit.run.training, epochs=epochs)))


def _memory(
    setup: OnDataset, to_score: Mapping[Variant, Sequence[Detector]], report: Callable[[int, int], None]
) -> dict[Variant, Memory]:
    """In rounds of child processes, each beginning with a twin; a machine's allocator is not quite the same every time.

    A second twin, measured like any other variant, tells what a difference is worth.
    """
    wanted = {TWIN: to_score.get(TWIN, [])} | {variant: some for variant, some in to_score.items() if some}
    twins: list[Peaks] = []
    found: dict[Variant, list[Peaks]] = {variant: [] for variant in wanted}
    total = MEMORY_ROUNDS * (1 + len(wanted))
    for turn in range(MEMORY_ROUNDS):
        twins.append(peaks_in_child(setup, TWIN, ()))
        for number, (variant, detectors) in enumerate(wanted.items(), turn * (1 + len(wanted)) + 2):
            found[variant].append(peaks_in_child(setup, variant, detectors))
            report(number, total)
    of_twins = [peaks.run for peaks in (*twins, *found[TWIN])]
    return {
        variant: Memory(
            added=[own.run - twin.run for own, twin in zip(peaks, twins, strict=True)],
            device=[own.device - twin.device for own, twin in zip(peaks, twins, strict=True)],
            scoring={detector: [own.scoring[detector] for own in peaks] for detector in wanted[variant]},
            floor=max(of_twins) - min(of_twins),
        )
        for variant, peaks in found.items()
    }


def shares_of(seconds: Seconds, line_up: LineUp, detector: Detector) -> dict[str, Json]:
    """Of standard training: alone, and in the line-up, where those who read the same signal share its cost."""
    alone, together = variant_for([detector]), _together(line_up, detector)
    same_recipe = sum(one.training == detector.training for one in line_up.detectors)

    def recording_alone(run: Observation) -> float:
        return sum(run.charges.signals.values())

    def recording_shared(run: Observation) -> float:
        return sum(
            run.charges.signals.get(signal.key, 0.0) / users(line_up, detector.training, signal)
            for signal in alone.signals
        )

    def scoring(run: Observation) -> float:
        return run.scoring[detector]

    def total_shared(of_round: tuple[Observation, Observation]) -> float:
        own, shared = of_round
        in_training = shared.charges.objective / same_recipe + recording_shared(shared)
        return scoring(own) / own.base + in_training / shared.base

    rounds = list(zip(seconds.of[alone], seconds.of[together], strict=True))
    return {
        **_columns("objective", seconds.share(alone, lambda run: run.charges.objective)),
        **_columns("recording", seconds.share(alone, recording_alone)),
        **_columns("scoring", seconds.share(alone, scoring)),
        **_columns("alone", seconds.share(alone, lambda run: run.added + scoring(run))),
        **_columns("recording_shared", seconds.share(together, recording_shared)),
        **_columns("shared", median_interval([total_shared(of_round) for of_round in rounds])),
        **_columns("slower_steps", seconds.share(alone, lambda run: run.slower)),
        **_columns("outside_clocks", seconds.share(alone, lambda run: run.outside)),
    }


def terms_of(seconds: Seconds, variant: Variant, epochs: int) -> list[dict[str, Json]]:
    """The three operations by which the paper counts LiNC's cost, the first of them also per step while it is done, and
    what keeping trust for the record takes; each read from the epochs in which it happens."""
    recipe = variant.recipe
    assert isinstance(recipe, LiNCRecipe)
    active = min(epochs, recipe.warm_up + recipe.soft_epochs)

    def forming(run: Observation) -> float:
        """Beyond cross-entropy, as the same run has it after the soft phases, or else its twins."""
        laps_EB = np.reshape(run.laps[OBJECTIVE], (epochs, -1))
        usual = np.median(laps_EB[active:], axis=0).sum() if active < epochs else run.twin_objective / epochs
        return float(laps_EB[:active].sum() - active * usual)

    def at_end_of(epoch: int, run: Observation) -> float:
        return run.laps[END_OF_EPOCHS][epoch - 1] if epoch <= epochs else 0.0

    def mixture(run: Observation) -> float:
        return at_end_of(recipe.warm_up, run)

    def relabelling(run: Observation) -> float:
        return sum(run.laps.get(PASS_OF_OBJECTIVE, ())) + at_end_of(recipe.warm_up + recipe.soft_epochs, run)

    def keeping(run: Observation) -> float:
        special = {recipe.warm_up, recipe.warm_up + recipe.soft_epochs}
        return sum(at_end_of(epoch, run) for epoch in range(1, epochs + 1) if epoch not in special)

    found = {
        "forming q and moving trust, per step while it is done": lambda run: forming(run) * epochs / active,
        "forming q and moving trust, whole run": forming,
        "mixture": mixture,
        "relabelling pass": relabelling,
        "keeping trust for the record": keeping,
    }
    return [{"term": name} | _columns("share", seconds.share(variant, part)) for name, part in found.items()]


def _columns(name: str, interval: Interval) -> dict[str, Json]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(_digits, interval), strict=True))


def _digits(value: float) -> float:
    """The four that count."""
    return float(f"{value:.4g}")


def _about(unit: Unit, rounds: int) -> dict[str, Json]:
    run, training = unit.run, unit.run.training
    stopwatch = Stopwatch(training.device, training.threads)
    return {
        "dataset": run.dataset,
        "backbone": run.backbone.name,
        "image_size": run.backbone.image_size,
        "path": _path(unit),
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "classes": unit.info.num_classes,
        "training_samples": unit.info.sizes[0],
        "rounds": rounds,
        "threads": training.threads,
        "device": training.device,
        "clock": "processor" if stopwatch.counts_processor_time else "wall",
    }


def _path(unit: Unit) -> str:
    return "plain" if unit.run.training.plain else "fast"
