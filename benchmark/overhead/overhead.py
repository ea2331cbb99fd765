"""What each detector costs: seconds added to training, to recording and by scoring, peak memory, bytes on disk.

What is added is read from the loop's clocks, each of which belongs to one recorder or to the objective. It is a share
of standard training, at the pace of the network's own steps in the very same run: these are the same steps whatever is
recorded beside them, so a machine that gets slower meets both. Twins without any detector alternate with those runs:
they say what cross-entropy itself takes, and whether the steps are slower with a detector than without.
"""

import multiprocessing
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.stats import quantile_test
from threadpoolctl import threadpool_limits

from benchmark.errors import LincBenchError
from benchmark.execution.executors import begin_worker
from benchmark.overhead.memory import keep_nothing, peak_memory
from benchmark.overhead.workbench import Bench, Measured, Setup
from benchmark.record.history import EVALUATION, OBJECTIVE, STEPS, THE_OBJECTIVE, TRAINING_LOOP, Charge
from benchmark.record.recorders import Signal
from benchmark.record.run_record import RunRecord
from benchmark.runs.own_detectors import loaded_files
from benchmark.runs.plan import signals_for
from benchmark.runs.studies import LineUp
from benchmark.training.loop import Recipe, Standard
from detectors import Detector

RUNS_BETWEEN_TWINS = 4
FAST = 0.1  # this share of epochs is faster
T = TypeVar("T")
P = ParamSpec("P")
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
    """Seconds that a run adds to standard training, by who has to pay for them."""

    objective: float
    signals: Mapping[str, float]  # by key


def charges(variant: Variant, run: Measured, epochs: int, twin_objective: float) -> Charges:
    """`epochs` are those of standard training; a recipe that passes over the data more often pays for the rest."""
    seconds, recipe = run.seconds, variant.recipe
    if not recipe.records:  # a training of its own, beside the one that gives the classifier
        own = run.whole - seconds[EVALUATION]
        return Charges(0.0, {signal.key: own / len(variant.signals) for signal in variant.signals})
    objective = 0.0
    if recipe != Standard():
        more_steps = seconds[STEPS] * (1 - epochs / recipe.passes(epochs))
        own = sum(taken for charge, taken in seconds.items() if charge.payers == THE_OBJECTIVE)
        objective = more_steps + own - twin_objective
    return Charges(objective, _by_signal(variant, seconds))


def _by_signal(variant: Variant, seconds: Mapping[Charge, float]) -> dict[str, float]:
    """Signals that one recorder records share its cost."""
    cost: defaultdict[str, float] = defaultdict(float)
    known = {signal.key for signal in variant.signals}
    for (_, payers), taken in seconds.items():
        if payers in (TRAINING_LOOP, THE_OBJECTIVE):
            continue
        if unknown := set(payers) - known:
            raise LincBenchError(
                f"A recorder goes by the name {min(unknown)!r}, which is no signal of its run "
                f"({', '.join(sorted(known))}), so nobody can be charged for it. Set its `name` to its signal's `key`."
            )
        for key in payers:
            cost[key] += taken / len(payers)
    return dict(cost)


@dataclass(frozen=True)
class Observation:
    """One run between its twins; everything in seconds but what it recorded."""

    base: float  # of standard training, at the pace of this run's own steps
    charges: Charges
    slower: float  # by how much these steps took longer than those of the twins, by a fast epoch of each
    outside: float  # what the run took beyond its clocks and is charged to nobody, less the same of its twins
    laps: Mapping[Charge, Sequence[float]]
    twin_objective: float  # of cross-entropy in standard training, at this run's pace
    scoring: Mapping[Detector, float]
    recorded: Mapping[str, int]  # bytes, by signal key

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

    def base(self, variant: Variant) -> float:
        """Seconds of standard training."""
        return float(np.median([run.base for run in self.of[variant]]))

    def share(self, variant: Variant, seconds: Callable[[Observation], float]) -> Interval:
        """Of standard training at the pace of the same run."""
        return median_interval([seconds(run) / run.base for run in self.of[variant]])


def measure_seconds(
    bench: Bench, variants: Mapping[Variant, Sequence[Detector]], rounds: int, folder: Path, warm_up: int = 1
) -> Seconds:
    """Every variant once per round, in this process; the rounds to warm up are forgotten.

    `variants` says whom to score on which run.
    """
    found = [_round(bench, variants, turn, folder) for turn in range(warm_up + rounds)]
    return Seconds({variant: [of[variant] for of in found[warm_up:]] for variant in variants})


def measure_seconds_in_children(
    setup: Setup, variants: Mapping[Variant, Sequence[Detector]], rounds: int, report: Report
) -> Seconds:
    """Every round in a process of its own, since one process as a whole is a little faster at this or that than the
    next: rounds of one process agree with each other better than with another call."""
    found = []
    report(0, rounds)
    for turn in range(rounds):
        found.append(_in_child(_round_after_warm_up, setup, variants, turn))
        report(turn + 1, rounds)
    return Seconds({variant: [of[variant] for of in found] for variant in variants})


def _round_after_warm_up(
    setup: Setup, variants: Mapping[Variant, Sequence[Detector]], turn: int
) -> dict[Variant, Observation]:
    with TemporaryDirectory() as folder:
        bench = setup.build(Path(folder))
        _round(bench.briefly(), variants, turn, Path(folder) / "run")
        return _round(bench, variants, turn, Path(folder) / "run")


def _round(
    bench: Bench, variants: Mapping[Variant, Sequence[Detector]], turn: int, folder: Path
) -> dict[Variant, Observation]:
    """Every variant once, twins between them."""
    observed: dict[Variant, Observation] = {}
    before, order = _run(bench, TWIN, folder), _rotated(list(variants), turn)
    for group in (order[at : at + RUNS_BETWEEN_TWINS] for at in range(0, len(order), RUNS_BETWEEN_TWINS)):
        runs = []
        for variant in group:
            run = _run(bench, variant, folder)
            scorers = _rotated(variants[variant], turn)  # the first of them finds the record not yet read
            runs.append((variant, run, {one: _scoring_seconds(one, run.record) for one in scorers}))
        after = _run(bench, TWIN, folder)
        observed |= {variant: observe(variant, run, (before, after), scoring) for variant, run, scoring in runs}
        before = after
    return observed


def _rotated(items: Sequence[T], turn: int) -> Sequence[T]:
    """So that nobody has the same place in every round."""
    at = turn % max(1, len(items))
    return [*items[at:], *items[:at]]


def _run(bench: Bench, variant: Variant, folder: Path) -> Measured:
    """In an empty folder; mapped files stay readable for as long as somebody has them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return bench.run(variant.recipe, variant.signals, folder)


def observe(
    variant: Variant, run: Measured, twins: tuple[Measured, Measured], scoring: Mapping[Detector, float]
) -> Observation:
    def of_twins(seconds: Callable[[Measured], float]) -> float:
        return sum(map(seconds, twins)) / len(twins)

    def outside_clocks(one: Measured) -> float:
        return one.whole - sum(one.seconds.values())

    def steady_steps(one: Measured) -> float:
        """As if every epoch took as long as a fast one: others on the machine can only slow it down."""
        laps = one.laps[STEPS]
        return float(np.quantile(laps, FAST)) * len(laps)

    epochs = twins[0].record.epochs
    of_standard = epochs / variant.recipe.passes(epochs)  # of this run's steps
    own_steps, twin_steps = steady_steps(run) * of_standard, of_twins(steady_steps)
    pace = own_steps / twin_steps if twin_steps else 1.0  # where there is no network, there are no steps
    objective = of_twins(lambda twin: twin.seconds[OBJECTIVE]) * pace
    return Observation(
        base=run.seconds[STEPS] * of_standard + objective,
        charges=charges(variant, run, epochs, objective),
        slower=own_steps - twin_steps,
        outside=outside_clocks(run) - of_twins(outside_clocks) if variant.recipe.records else 0.0,
        laps=run.laps,
        twin_objective=objective,
        scoring=scoring,
        recorded={key: array.nbytes for key, array in run.record.arrays.items()},
    )


def _scoring_seconds(detector: Detector, record: RunRecord) -> float:
    with threadpool_limits(limits=1):
        started = time.process_time()
        score(detector, record)
        return time.process_time() - started


def score(detector: Detector, record: RunRecord) -> None:
    try:
        detector.score(record)
    except Exception as error:
        raise LincBenchError(f"{detector.label} failed to score: {type(error).__name__}: {error}") from error


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
    return _in_child(_peaks, setup, variant, tuple(detectors))


def _in_child(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """A fresh process, on Linux with everything loaded that takes seconds to load."""
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        context.set_forkserver_preload([__name__, "timm", "torch._inductor"])  # the last for deterministic algorithms
    try:
        with ProcessPoolExecutor(1, context, initializer=begin_worker, initargs=(loaded_files(),)) as child:
            return child.submit(function, *arguments, **named).result()
    except BrokenExecutor as error:
        raise LincBenchError(
            "A process that measured a training run was killed. If memory ran out, measure fewer --samples, or fewer "
            "detectors with --detector."
        ) from error


def _peaks(setup: Setup, variant: Variant, detectors: Sequence[Detector]) -> Peaks:
    keep_nothing()
    with TemporaryDirectory() as folder:
        bench = setup.build(Path(folder))
        bench.briefly().run(variant.recipe, variant.signals, Path(folder))  # loads what is loaded once
        with peak_memory() as of_run:
            run = bench.run(variant.recipe, variant.signals, Path(folder))
        scoring = {}
        for detector in detectors:
            with peak_memory() as of_scoring:
                score(detector, run.record)
            scoring[detector] = of_scoring.added
    recorded = {key: array.nbytes for key, array in run.record.arrays.items()}
    held = sum(recorded[signal.key] for signal in variant.recipe.leaves if signal in variant.signals)
    return Peaks(of_run.bytes, of_run.device_bytes, scoring, sum(recorded.values()), held)


def users(line_up: LineUp, recipe: Recipe, signal: Signal) -> int:
    """How many detectors of a line-up share the cost of a signal in a run of this recipe."""
    readers = [detector for detector in line_up.detectors if detector.training == recipe]
    return sum(signal in variant_for([detector]).signals for detector in readers)
