"""Runs one unit: trains unless its record is there, then scores what is not scored yet."""

import os
import platform
import shutil
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmark.disk import atomic_folder, find_damage, locked, write_json
from benchmark.errors import LincBenchError
from benchmark.identity import settings_of
from benchmark.networks.loading import set_up_torch
from benchmark.record import open_record, write_record
from benchmark.runs.plan import Sources, reason_to_train
from benchmark.runs.scores import has_scores, score_record
from benchmark.runs.training_job import training_job
from benchmark.runs.units import Outcome, Unit, error_message, write_log


def try_unit(unit: Unit, sources: Sources, force: bool) -> Outcome:
    """Returns errors in words, since not every exception can be sent from one process to another."""
    try:
        return run_unit(unit, sources, force)
    except Exception as error:
        write_log(sources.results, unit.run_id, {unit.run_id: error})
        return Outcome(unit.run_id, error=error_message(error), is_transient=not isinstance(error, LincBenchError))


def run_unit(unit: Unit, sources: Sources, force: bool) -> Outcome:
    """Safe to call from two processes at once: the second waits, and finds the work done."""
    results = sources.results
    with locked(results.locks, unit.run_id):
        results.log(unit.run_id).unlink(missing_ok=True)  # of an earlier attempt
        needs_training = reason_to_train(unit, sources, force) is not None
        try:
            if needs_training:
                train_unit(unit, sources)
            failures = _score_unit(unit, sources, force)
        finally:
            results.running(unit.run_id).unlink(missing_ok=True)
    return Outcome(unit.run_id, needs_training, failures=failures)


def _score_unit(unit: Unit, sources: Sources, force: bool) -> dict[str, str]:
    """Returns why detectors failed, by their labels."""
    errors: dict[str, BaseException] = {}
    for detector in unit.detectors:
        file = sources.score_file(unit, detector)
        if force or not has_scores(file, unit.shape.samples):
            try:
                with threadpool_limits(limits=unit.run.training.threads):  # scores' bytes depend on libraries' threads
                    score_record(sources.record(unit), detector, file)
            except Exception as error:
                errors[detector.label] = error
    if errors:
        write_log(sources.results, unit.run_id, errors)
    return {label: error_message(error) for label, error in errors.items()}


def train_unit(unit: Unit, sources: Sources) -> None:
    run, settings, paths = unit.run, unit.run.training, set[str]()
    set_up_torch(settings.threads)
    started = time.perf_counter()

    def after_epoch(epoch: int) -> None:
        process = {"process": os.getpid(), "machine": platform.node()}
        write_json(sources.results.running(run.run_id), {"epoch": epoch, "epochs": settings.epochs} | process)

    after_epoch(0)
    with atomic_folder(sources.record(unit)) as folder:
        job = training_job(unit, sources, folder, after_epoch, paths.add)
        history, left_behind = run.recipe.run(job)
        labels, path = job.data.train.labels.cpu().numpy(), " and ".join(sorted(paths))
        keys = chain((signal.key for signal in unit.signals), _keep_other_signals(unit, sources, folder))
        write_record(folder, settings_of(run), labels, job.data.num_classes, history, left_behind, keys, started, path)


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
