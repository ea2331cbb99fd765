"""Measures seconds and peak memory of runs, in processes of their own, always together with baseline runs."""

import copy
import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmark.data.labelled import TrainingData
from benchmark.errors import LincBenchError, error_message
from benchmark.execution.executors import begin_worker
from benchmark.networks.split_model import SplitModel
from benchmark.overhead.charges import BASELINE, Measured, Observation, Variant, observe
from benchmark.overhead.memory import peak_memory, return_freed_memory
from benchmark.record import RunRecord, RunShape, recorders_of, without_parts, write_record
from benchmark.record.history import Stopwatch
from benchmark.record.recorders import Recorder, RunContext
from benchmark.training import Job, TrainingSettings
from detectors import Detector
from detectors.own_files import load_files, loaded_files

RUNS_BETWEEN_BASELINES = 4
T = TypeVar("T")
P = ParamSpec("P")
Report = Callable[[int, int], None]
Scored = Mapping[Variant, Sequence[Detector]]  # the detectors to score on the run of each variant


@dataclass(frozen=True)
class Workbench:
    """A training run that is set up to be measured."""

    data: TrainingData
    settings: TrainingSettings
    model: SplitModel  # copied for each run
    images: Callable[[int, int], Tensor]

    @property
    def shape(self) -> RunShape:
        return RunShape(self.settings.epochs, len(self.data.train.labels), self.data.num_classes)

    def briefly(self) -> "Workbench":
        """The same with a single epoch, for warming up."""
        return replace(self, settings=replace(self.settings, epochs=1))

    def run(self, variant: Variant, folder: Path) -> Measured:
        """In an emptied folder; mapped files that were deleted stay readable while they are open."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

        def recorders(model: SplitModel) -> list[Recorder]:
            return recorders_of(variant.signals, RunContext(self.shape, folder, model, self.data, self.images))

        def new_model(seed: int, more_classes: int = 0) -> SplitModel:
            model = copy.deepcopy(self.model)
            if more_classes:
                model.model.reset_classifier(self.data.num_classes + more_classes)  # type: ignore[operator]
            return model

        job = Job(self.data, self.settings, new_model, recorders)
        stopwatch, began = Stopwatch(self.settings.device, self.settings.threads), time.perf_counter()
        started = stopwatch.elapsed
        history, left_behind = variant.recipe.run(job)
        outside_clocks = stopwatch.elapsed - started - sum(history.seconds.values())
        labels, keys = self.data.train.labels.cpu().numpy(), [signal.key for signal in without_parts(variant.signals)]
        about = {"training": asdict(self.settings)}, labels, self.data.num_classes, history, left_behind
        record = write_record(folder, *about, keys, began, commit="")
        return Measured(history.laps, outside_clocks, record)


Setup = Callable[[Path], Workbench]  # can be sent to another process; the folder is for files of its own


def measure_seconds(
    setup: Setup, variants: Scored, rounds: int, report: Report = lambda done, total: None
) -> dict[Variant, list[Observation]]:
    """An observation of every variant per round.

    Every round has a process of its own, since rounds of one process agree with each other better than with those of
    the next.
    """
    found: dict[Variant, list[Observation]] = {variant: [] for variant in variants}
    report(0, rounds)
    for turn in range(rounds):
        for variant, observation in _in_child(_round_after_warm_up, setup, variants, turn).items():
            found[variant].append(observation)
        report(turn + 1, rounds)
    return found


def _round_after_warm_up(setup: Setup, variants: Scored, turn: int) -> dict[Variant, Observation]:
    with TemporaryDirectory() as folder:
        bench = setup(Path(folder))
        measure_round(bench.briefly(), variants, turn, Path(folder) / "run")
        return measure_round(bench, variants, turn, Path(folder) / "run")


def measure_round(bench: Workbench, variants: Scored, turn: int, folder: Path) -> dict[Variant, Observation]:
    """Every variant once in this process, with baseline runs in between."""
    observed: dict[Variant, Observation] = {}
    before, order = bench.run(BASELINE, folder), _rotated(list(variants), turn)
    for group in (order[at : at + RUNS_BETWEEN_BASELINES] for at in range(0, len(order), RUNS_BETWEEN_BASELINES)):
        runs = []
        for variant in group:
            run = bench.run(variant, folder)
            detectors = _rotated(variants[variant], turn)  # the first one reads a record that is not cached yet
            scoring = {detector: _scoring_seconds(detector, run.record) for detector in detectors}
            runs.append((variant, run, scoring))
        after = bench.run(BASELINE, folder)
        observed |= {variant: observe(variant, run, (before, after), scoring) for variant, run, scoring in runs}
        before = after
    return observed


def _rotated(items: Sequence[T], turn: int) -> Sequence[T]:
    """In an order in which no item has the same position in every round."""
    start = turn % max(1, len(items))
    return [*items[start:], *items[:start]]


def _scoring_seconds(detector: Detector, record: RunRecord) -> float:
    with _noted(detector), threadpool_limits(limits=1):
        started = time.process_time()
        _score(detector, record)
        return time.process_time() - started


_note: Path | None = None  # in a child process


@contextmanager
def _noted(detector: Detector) -> Iterator[None]:
    """The parent process can name the detector that ended its child."""
    if _note is not None:
        _note.write_text(detector.label)
    yield
    if _note is not None:
        _note.unlink()


def _begin_child(note: Path, files: tuple[Path, ...]) -> None:
    global _note
    _note = note
    load_files(files)


def _score(detector: Detector, record: RunRecord) -> None:
    try:
        detector.score(record)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LincBenchError(f"{detector.label} failed to score: {error_message(error)}") from error


@dataclass(frozen=True)
class Peaks:
    """Peak private bytes of a process that does one run, and what each detector's scoring adds to what was there."""

    run: int
    device: int
    scoring: Mapping[Detector, int]
    recorded: int  # bytes on disk
    held: int  # those of them that are in memory until the end: what a recipe leaves behind


Memory = list[tuple[Peaks, Peaks]]  # a variant's process and the baseline process of the same round, for every round


def measure_memory(
    setup: Setup, variants: Scored, rounds: int, report: Report = lambda done, total: None
) -> dict[Variant, Memory]:
    """In rounds of child processes, each beginning with a baseline process: allocators differ from time to time."""
    found: dict[Variant, Memory] = {variant: [] for variant in variants}
    total = rounds * (1 + len(variants))
    for start in range(0, total, 1 + len(variants)):
        baseline = _in_child(_peaks, setup, BASELINE, ())
        report(start + 1, total)
        for number, (variant, detectors) in enumerate(variants.items(), start + 2):
            found[variant].append((_in_child(_peaks, setup, variant, detectors), baseline))
            report(number, total)
    return found


def _peaks(setup: Setup, variant: Variant, detectors: Sequence[Detector]) -> Peaks:
    return_freed_memory()
    with TemporaryDirectory() as folder:
        bench = setup(Path(folder))
        bench.briefly().run(variant, Path(folder) / "run")  # loads what is loaded once
        with peak_memory() as of_run:
            run = bench.run(variant, Path(folder) / "run")
        scoring = {}
        for detector in detectors:
            with _noted(detector), peak_memory() as of_scoring:
                _score(detector, run.record)
            scoring[detector] = of_scoring.added
    held = sum(run.recorded[signal.key] for signal in variant.recipe.leaves if signal in variant.signals)
    return Peaks(of_run.bytes, of_run.device_bytes, scoring, sum(run.recorded.values()), held)


def _in_child(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """A fresh process, since memory that was once used stays with a process; on Linux with libraries loaded."""
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        context.set_forkserver_preload([__name__, "timm", "torch._inductor"])  # the last for deterministic algorithms
    try:
        with TemporaryDirectory() as folder:
            begin = partial(_begin_child, note := Path(folder) / "scored", loaded_files())
            try:
                with ProcessPoolExecutor(1, context, begin_worker, (begin,)) as child:
                    return child.submit(function, *arguments, **named).result()
            except BrokenExecutor as error:
                ended = f"ended while {note.read_text()} was scored" if note.exists() else "was killed"
                raise LincBenchError(
                    f"A process that measured a training run {ended}. If memory ran out, measure fewer --samples, or "
                    "fewer detectors with --detector."
                ) from error
    except OSError as error:
        if "AF_UNIX" not in str(error):
            raise
        raise LincBenchError(
            f"The path of the temporary folder, {gettempdir()}, is too long for the socket of a process that measures. "
            "Name a shorter one in the environment variable TMPDIR, such as /tmp."
        ) from error
