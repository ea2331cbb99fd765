"""What each detector costs: seconds added to training, to recording and by scoring, peak memory, bytes on disk.

Runs with a detector alternate with twins without any, so that a machine that gets slower meets both. What is added is
read from the loop's clocks, each of which belongs to one recorder or to the objective; what none of them sees is kept
as a check. Shares are of standard training: the steps of the twins in the same minute.
"""

import multiprocessing
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from scipy.stats import quantile_test

from benchmark.executors import begin_worker
from benchmark.memory import peak_memory
from benchmark.own_detectors import loaded_files
from benchmark.plan import signals_for
from benchmark.recorders import Signal
from benchmark.studies import LineUp
from benchmark.training import END_OF_EPOCHS, EVALUATION, OBJECTIVE, PASS, STEPS, Recipe, Standard
from benchmark.workbench import Bench, Measured, Setup
from detectors import Detector

RUNS_BETWEEN_TWINS = 3
PASS_OF_OBJECTIVE = f"{PASS} for {END_OF_EPOCHS}"
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Variant:
    """A run that is measured."""

    recipe: Recipe
    signals: tuple[Signal, ...]


TWIN = Variant(Standard(), ())


def variant_for(detectors: Sequence[Detector]) -> Variant:
    """The run that these detectors, all of one recipe, can share."""
    recipe = detectors[0].training
    return Variant(recipe, signals_for(recipe, detectors))


@dataclass(frozen=True)
class Charges:
    """Seconds of a run beyond its twin's, by who has to pay for them."""

    objective: float
    signals: Mapping[str, float]  # by key


def charges(variant: Variant, run: Measured, twin_objective: float) -> Charges:
    seconds = run.seconds
    if not variant.recipe.records:  # a training of its own, beside the one that gives the classifier
        own = sum(taken for part, taken in seconds.items() if part != EVALUATION)
        return Charges(0.0, {signal.key: own / len(variant.signals) for signal in variant.signals})
    objective = seconds[OBJECTIVE] - twin_objective + seconds[END_OF_EPOCHS] + seconds.get(PASS_OF_OBJECTIVE, 0.0)
    by_signal: defaultdict[str, float] = defaultdict(float)
    for part, taken in seconds.items():
        if part not in (STEPS, OBJECTIVE, END_OF_EPOCHS, EVALUATION, PASS_OF_OBJECTIVE):
            keys = part.removeprefix(f"{PASS} for ").split(" and ")  # a recorder of several signals names them all
            for key in keys:
                by_signal[key] += taken / len(keys)
    return Charges(objective, by_signal)


@dataclass(frozen=True)
class Observation:
    """One run between its twins; everything in seconds."""

    base: float  # steps of standard training, from the twins before and after
    charges: Charges
    outside: float  # what the run took beyond its clocks, less the same of its twins
    run: Measured
    scoring: Mapping[Detector, float]

    @property
    def added(self) -> float:
        return self.charges.objective + sum(self.charges.signals.values())


class Interval(NamedTuple):
    """A median, and the interval that covers it in 95 of 100 cases whatever the distribution."""

    median: float
    low: float
    high: float


def median_interval(values: Sequence[float]) -> Interval:
    interval = quantile_test(values, p=0.5).confidence_interval(0.95)
    low, high = (bound if np.isfinite(bound) else end(values) for bound, end in zip(interval, (min, max), strict=True))
    return Interval(float(np.median(values)), float(low), float(high))


@dataclass(frozen=True)
class Seconds:
    """Observations of every variant, one per round."""

    of: Mapping[Variant, Sequence[Observation]]
    twin: Sequence[Measured]

    @cached_property
    def base(self) -> float:
        return float(np.median([_steps(run) for run in self.twin]))

    def share(self, variant: Variant, seconds: Callable[[Observation], float]) -> Interval:
        """Of standard training in the same minute."""
        return median_interval([seconds(one) / one.base for one in self.of[variant]])


def measure_seconds(
    bench: Bench,
    variants: Mapping[Variant, Sequence[Detector]],
    rounds: int,
    folder: Path,
    report: Report = lambda done, total: None,
    warm_up: int = 1,
) -> Seconds:
    """Every variant once per round, twins between them; the rounds to warm up are forgotten.

    `variants` says whom to score on which run.
    """
    observations: dict[Variant, list[Observation]] = {variant: [] for variant in variants}
    twins: list[Measured] = []
    groups = [list(variants)[at : at + RUNS_BETWEEN_TWINS] for at in range(0, len(variants), RUNS_BETWEEN_TWINS)]
    total, done = (warm_up + rounds) * len(variants), 0
    for turn in range(warm_up + rounds):
        before = _run(bench, TWIN, folder)
        for group in groups[turn % len(groups) :] + groups[: turn % len(groups)]:
            runs = []
            for variant in group:
                run = _run(bench, variant, folder)
                runs.append((variant, run, {one: _scoring_seconds(one, run) for one in variants[variant]}))
                done += 1
                report(done, total)
            after = _run(bench, TWIN, folder)
            if turn >= warm_up:
                twins += [after]
                for variant, run, scoring in runs:
                    observations[variant].append(observe(variant, run, (before, after), scoring))
            before = after
    return Seconds(observations, twins)


def _run(bench: Bench, variant: Variant, folder: Path) -> Measured:
    with _empty(folder) as place:
        return bench.run(variant.recipe, variant.signals, place)


@contextmanager
def _empty(folder: Path) -> Iterator[Path]:
    """A folder that the next run may fill; mapped files stay readable after their names are gone."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder


def _steps(run: Measured) -> float:
    return run.seconds[STEPS] + run.seconds[OBJECTIVE]


def observe(
    variant: Variant, run: Measured, twins: tuple[Measured, Measured], scoring: Mapping[Detector, float]
) -> Observation:
    def of_twins(seconds: Callable[[Measured], float]) -> float:
        return sum(map(seconds, twins)) / len(twins)

    def outside_clocks(one: Measured) -> float:
        return one.whole - sum(one.seconds.values())

    return Observation(
        base=of_twins(_steps),
        charges=charges(variant, run, of_twins(lambda twin: twin.seconds[OBJECTIVE])),
        outside=outside_clocks(run) - of_twins(outside_clocks),
        run=run,
        scoring=scoring,
    )


def _scoring_seconds(detector: Detector, run: Measured) -> float:
    started = time.perf_counter()
    detector.score(run.record)
    return time.perf_counter() - started


@dataclass(frozen=True)
class Peaks:
    """Peak private bytes of a process that does one run, and of each detector's scoring above what was there."""

    run: int
    device: int
    scoring: Mapping[Detector, int]
    recorded: int  # bytes on disk
    held: int  # of these in memory until the end: what a recipe leaves behind


def peaks_in_child(setup: Setup, variant: Variant, detectors: Sequence[Detector]) -> Peaks:
    """In a process of its own, since memory that was once used stays with a process."""
    context = multiprocessing.get_context("forkserver")  # a fresh process, with the libraries loaded already
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, context, initializer=begin_worker, initargs=(loaded_files(),)) as child:
        return child.submit(_peaks, setup, variant, tuple(detectors)).result()


def _peaks(setup: Setup, variant: Variant, detectors: Sequence[Detector]) -> Peaks:
    with TemporaryDirectory() as folder:
        bench = setup.build(Path(folder))
        with peak_memory() as of_run:
            run = bench.run(variant.recipe, variant.signals, Path(folder))
        scoring = {}
        for detector in detectors:
            with peak_memory() as of_scoring:
                detector.score(run.record)
            scoring[detector] = of_scoring.added
    recorded, held = (bytes_recorded(run, signals) for signals in (variant.signals, variant.recipe.leaves))
    return Peaks(of_run.bytes, of_run.device_bytes, scoring, recorded, held)


def bytes_recorded(run: Measured, signals: Sequence[Signal]) -> int:
    return sum(run.record.arrays[signal.key].nbytes for signal in signals)


def users(line_up: LineUp, signal: Signal) -> int:
    """How many detectors of a line-up share the cost of a signal."""
    return sum(signal in variant_for([detector]).signals for detector in line_up.detectors)
