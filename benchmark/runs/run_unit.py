"""Runs one unit: trains unless its record is there, then scores what is not scored yet."""

import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmark.disk import atomic_folder, find_damage, is_transient, locked, write_json
from benchmark.errors import LincBenchError, error_message
from benchmark.futures import is_interrupt
from benchmark.identity import settings_of
from benchmark.networks.loading import set_up_torch
from benchmark.record import open_record, without_parts, write_record
from benchmark.runs.plan import Sources, reason_to_train
from benchmark.runs.scores import has_auroc_by_epochs, has_scores, limited, score_epochs, score_record
from benchmark.runs.training_job import training_job
from benchmark.runs.units import Outcome, Unit, write_log


def try_unit(unit: Unit, sources: Sources, force: bool, given_up: Mapping[str, str]) -> Outcome:
    """Returns errors in words, since not every exception can be sent from one process to another."""
    try:
        return run_unit(unit, sources, force, given_up)
    except BaseException as error:
        if is_interrupt(error):
            raise
        write_log(sources.results, unit.run_id, {unit.run_id: error})
        return Outcome(unit.run_id, error=error_message(error), is_transient=is_transient(error))


def run_unit(unit: Unit, sources: Sources, force: bool, given_up: Mapping[str, str]) -> Outcome:
    """Safe to call from two processes at once: the second waits, and finds the work done.

    `given_up` are the labels of detectors that ended the process before, with the reason: they are not scored.
    """
    results = sources.results
    with locked(results.locks, unit.run_id):
        results.running(unit.run_id).unlink(missing_ok=True)  # of an earlier attempt
        if not given_up:  # its log may say where a detector was
            results.log(unit.run_id).unlink(missing_ok=True)
        needs_training = reason_to_train(unit, sources, force) is not None
        try:
            if needs_training:
                train_unit(unit, sources)
            if force:
                for detector in unit.detectors:
                    sources.score_file(unit, detector).unlink(missing_ok=True)
            failures = _score_unit(unit, sources, given_up)
        finally:
            results.running(unit.run_id).unlink(missing_ok=True)
    return Outcome(unit.run_id, needs_training, failures=failures)


def _score_unit(unit: Unit, sources: Sources, given_up: Mapping[str, str]) -> dict[str, str]:
    """Returns why detectors failed, by their labels."""
    errors: dict[str, BaseException] = {}
    for label, compute in _not_scored(unit, sources):
        if label not in given_up:
            _note(unit, sources, unit.shape.epochs, scoring=label)
            try:
                compute()
            except BaseException as error:
                if is_interrupt(error):
                    raise
                errors[label] = error
    if errors:
        write_log(sources.results, unit.run_id, errors)
    return {**given_up, **{label: error_message(error) for label, error in errors.items()}}


def _not_scored(unit: Unit, sources: Sources) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is left to be computed, by the label under which it may fail; AUROC by epochs once there are scores."""
    limits = partial(_limits, unit, sources)
    for detector in unit.detectors:
        file, samples = sources.score_file(unit, detector), unit.shape.samples
        about = sources.record(unit), detector, file, limits
        if not has_scores(file, samples):
            yield detector.label, partial(score_record, *about)
        label = unit.label_by_epochs(detector)
        if label and has_scores(file, samples) and not has_auroc_by_epochs(file, unit.shape.epochs):
            yield label, partial(score_epochs, *about, sources.results.answer_key(unit.run.noise_id))


@contextmanager
def _limits(unit: Unit, sources: Sources) -> Iterator[None]:
    """Of threads, since scores' bytes depend on libraries' threads; and of time."""
    with (
        threadpool_limits(limits=unit.run.training.threads),
        limited(sources.score_limit, sources.results.log(unit.run_id)),
    ):
        yield


def _note(unit: Unit, sources: Sources, epoch: int, **scoring: object) -> None:
    """What the unit is doing, and since when, for progress and for who finds its process dead."""
    process = {"process": os.getpid(), "machine": platform.node(), "since": time.time()}
    note = {"epoch": epoch, "epochs": unit.shape.epochs} | process | scoring
    write_json(sources.results.running(unit.run_id), note)


def train_unit(unit: Unit, sources: Sources) -> None:
    run, settings, paths = unit.run, unit.run.training, set[str]()
    set_up_torch(settings.threads)
    started = time.perf_counter()

    _note(unit, sources, epoch=0)
    with atomic_folder(sources.record(unit)) as folder:
        job = training_job(unit, sources, folder, partial(_note, unit, sources), paths.add)
        history, left_behind = run.recipe.run(job)
        labels, path = job.data.train.labels.cpu().numpy(), " and ".join(sorted(paths))
        stored = (signal.key for signal in without_parts(unit.signals))
        keys = chain(stored, _keep_other_signals(unit, sources, folder))
        about = settings_of(run), labels, job.data.num_classes, history, left_behind
        write_record(folder, *about, keys, started, path, sources.commit)


def _keep_other_signals(unit: Unit, sources: Sources, folder: Path) -> Iterator[str]:
    """Copies the signals of the old record that this unit does not need, if the new history is the same.

    If it is not, the old scores are removed. A generator, since the history is written before it is asked for keys.
    """
    old_record, needed = sources.record(unit), {signal.key for signal in unit.signals}
    try:
        is_same = (
            old_record.exists()
            and find_damage(old_record) is None
            and (old_record / "history.json").read_bytes() == (folder / "history.json").read_bytes()
        )
        others = sorted(open_record(old_record).arrays.keys() - needed) if is_same else []
    except LincBenchError:  # damaged
        is_same, others = False, []
    if not is_same:
        shutil.rmtree(sources.results.all_scores(unit.run_id), ignore_errors=True)
    for key in others:
        shutil.copyfile(old_record / f"{key}.npy", folder / f"{key}.npy")
        yield key
