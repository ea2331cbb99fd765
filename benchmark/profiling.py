"""`linc-bench profile`: measures what every detector of a study costs on its data set, and keeps it as rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmark.executors import InProcessExecutor
from benchmark.identity import Json
from benchmark.memory import is_known
from benchmark.overhead import (
    PASS_OF_OBJECTIVE,
    TWIN,
    Interval,
    Observation,
    Peaks,
    Seconds,
    Variant,
    measure_seconds,
    median_interval,
    peaks_in_child,
    users,
    variant_for,
)
from benchmark.overhead_tables import SETTING
from benchmark.pipeline import prepare
from benchmark.plan import Sources, Unit, plan_study
from benchmark.progress import Progress
from benchmark.provenance import origin
from benchmark.studies import Grid, LineUp, Study
from benchmark.table_files import merge_rows, same_in
from benchmark.training import END_OF_EPOCHS, Standard
from benchmark.workbench import OnDataset
from detectors import Detector
from detectors.linc import LiNCRecipe

RATE = 0.2
MEMORY_ROUNDS = 3


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int = 9
    samples: int = 256


def profile(grid: Grid, sources: Sources, effort: Effort, progress: Progress) -> None:
    """Writes a row per detector into overhead.csv, and LiNC's own terms into overhead_terms.csv."""
    for dataset in grid.datasets:
        one = replace(grid, datasets=(dataset,), rates=(RATE,), noise_seeds=(0,), training_seeds=(0,))
        study = Study("profile", "", (replace(one, recipes=(Standard(),)),))
        plan = plan_study(study, sources, force=True)
        unit = next(unit for unit in plan.units if unit.run.recipe == Standard())
        prepare(replace(plan, units=(unit,), to_train=(unit,)), InProcessExecutor(), progress)
        rows, terms = _measure(unit, grid.line_ups, effort, progress)
        merge_rows(sources.results, "overhead", rows, partial(same_in, [*SETTING, "line_up"], rows), SETTING)
        if terms:
            merge_rows(sources.results, "overhead_terms", terms, partial(same_in, SETTING, terms), SETTING)


def _measure(
    unit: Unit, line_ups: Sequence[LineUp], effort: Effort, progress: Progress
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    setup = OnDataset(unit, effort.samples)
    to_score = _variants(line_ups)
    with TemporaryDirectory() as folder:
        what = f"{unit.run.dataset}, {_path(unit)} path"
        with progress.counting(f"{what}: memory, runs") as report:
            peaks = _peaks(setup, to_score, report)
        bench = setup.build(Path(folder))
        with progress.counting(f"{what}: seconds, runs") as report:
            seconds = measure_seconds(bench, to_score, effort.rounds, Path(folder) / "run", report)
    about = _about(unit, effort.rounds, bench.shape.samples, seconds)
    scale = unit.info.sizes[0] / bench.shape.samples
    rows = []
    for line_up in line_ups:
        for detector in line_up.detectors:
            alone = variant_for([detector])
            bytes_needed = {
                "memory_bytes": peaks[alone].run - peaks[TWIN].run if is_known() else None,
                "scoring_memory_bytes": peaks[alone].scoring[detector] if is_known() else None,
                "device_bytes": peaks[alone].device - peaks[TWIN].device,
                "disk_bytes": round(scale * peaks[alone].recorded),
            }
            name = {"line_up": line_up.name, "detector": detector.label}
            rows.append(about | name | shares_of(seconds, line_up, detector) | bytes_needed | origin())
    first = next((variant for variant in to_score if isinstance(variant.recipe, LiNCRecipe)), None)
    terms = terms_of(seconds, first, unit.shape.epochs) if first else []
    return rows, [about | term | origin() for term in terms]


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


def _peaks(
    setup: OnDataset, to_score: Mapping[Variant, Sequence[Detector]], report: Callable[[int, int], None]
) -> dict[Variant, Peaks]:
    """Medians over some child processes of each; a machine's allocator is not quite the same every time."""
    wanted = {TWIN: to_score.get(TWIN, [])} | {variant: some for variant, some in to_score.items() if some}
    found: dict[Variant, list[Peaks]] = {variant: [] for variant in wanted}
    for turn in range(MEMORY_ROUNDS):
        for number, (variant, detectors) in enumerate(wanted.items(), turn * len(wanted) + 1):
            found[variant].append(peaks_in_child(setup, variant, detectors))
            report(number, MEMORY_ROUNDS * len(wanted))

    def median(counts: Iterable[int]) -> int:
        return int(np.median(list(counts)))

    return {
        variant: Peaks(
            median(peak.run for peak in peaks),
            median(peak.device for peak in peaks),
            {detector: median(peak.scoring[detector] for peak in peaks) for detector in wanted[variant]},
            peaks[0].recorded,
            peaks[0].held,
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
        **_columns("training", seconds.share(alone, lambda run: run.charges.objective)),
        **_columns("recording", seconds.share(alone, recording_alone)),
        **_columns("scoring", seconds.share(alone, scoring)),
        **_columns("alone", seconds.share(alone, lambda run: run.added + scoring(run))),
        **_columns("recording_shared", seconds.share(together, recording_shared)),
        **_columns("shared", median_interval([total_shared(of_round) for of_round in rounds])),
        **_columns("slower_steps", seconds.share(alone, lambda run: run.slower)),
        **_columns("outside_clocks", seconds.share(alone, lambda run: run.outside)),
    }


def terms_of(seconds: Seconds, variant: Variant, epochs: int) -> list[dict[str, Json]]:
    """The three operations by which the paper counts LiNC's cost, and the first of them per step while it is done."""
    assert isinstance(variant.recipe, LiNCRecipe)

    def mixture(run: Observation) -> float:
        return run.seconds[END_OF_EPOCHS]

    def relabelling(run: Observation) -> float:
        return run.seconds.get(PASS_OF_OBJECTIVE, 0.0)

    def forming(run: Observation) -> float:
        return run.charges.objective - mixture(run) - relabelling(run)

    active = min(epochs, variant.recipe.warm_up + variant.recipe.soft_epochs) / epochs
    found = {
        "forming q and moving trust, per step while it is done": lambda run: forming(run) / active,
        "forming q and moving trust, whole run": forming,
        "mixture": mixture,
        "relabelling pass": relabelling,
    }
    return [{"term": name} | _columns("share", seconds.share(variant, part)) for name, part in found.items()]


def _columns(name: str, interval: Interval) -> dict[str, Json]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), (float(f"{one:.4g}") for one in interval), strict=True))


def _about(unit: Unit, rounds: int, samples: int, seconds: Seconds) -> dict[str, Json]:
    run, whole = unit.run, unit.info.sizes[0]
    return {
        "dataset": run.dataset,
        "backbone": run.backbone.name,
        "image_size": run.backbone.image_size,
        "path": _path(unit),
        "epochs": run.training.epochs,
        "batch_size": run.training.batch_size,
        "classes": unit.info.num_classes,
        "training_samples": whole,
        "measured_samples": samples,
        "rounds": rounds,
        "threads": run.training.threads,
        "device": run.training.device,
        "standard_seconds": float(f"{seconds.base * whole / samples:.4g}"),
    }


def _path(unit: Unit) -> str:
    return "plain" if unit.run.training.plain else "fast"
