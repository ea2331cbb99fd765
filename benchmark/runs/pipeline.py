"""Carries out a plan: features once, then every unit (one training run with its scoring) on an executor."""

import errno
import os
import platform
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from traceback import format_exception
from typing import TypeVar
from zipfile import ZipFile

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmark.data.datasets import SPLITS, Dataset, load_dataset_once
from benchmark.data.labelled import LabelledFeatures, Rows, TrainingData
from benchmark.disk.files import (
    UNREADABLE,
    atomic_folder,
    find_damage,
    is_transient,
    locked,
    new_array,
    open_array,
    write_json,
    write_npz,
    write_text,
)
from benchmark.disk.provenance import provenance
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.futures import as_calls_complete, is_lost_worker
from benchmark.identity import settings_of
from benchmark.networks.feature_store import check_weights, open_store
from benchmark.networks.features import FeatureJob, compute_features
from benchmark.networks.loading import load_backbone, set_up_torch
from benchmark.networks.preprocessing import LiveImages, preprocess
from benchmark.networks.split_model import SplitModel
from benchmark.record.recorders import Recorder, RunContext
from benchmark.record.run_record import open_record
from benchmark.record.signals import recorders_of
from benchmark.runs.plan import Plan, Unit
from benchmark.runs.scores import has_scores, score_record
from benchmark.training import Job

T = TypeVar("T")

ATTEMPTS = 3
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
MANY = 100  # records, from which on checking them deserves a bar
LOST_SCHEDULER = LincBenchError(
    "The cluster's scheduler was lost. What was finished is kept; the same command goes on from there."
)


@dataclass(frozen=True)
class Outcome:
    """What became of a unit."""

    run_id: str
    trained: bool = False
    error: str | None = None  # why there is no record
    failures: dict[str, str] = field(default_factory=dict)  # why a detector has no scores, by its label
    is_transient: bool = False  # an error that may not come again: a worker was killed, a disk was away


def carry_out(plan: Plan, executor: Executor, progress: Progress) -> list[Outcome]:
    """Runs every unit; one that fails does not stop the others, and is tried again when they are done."""
    with _cancelling(executor):
        plan = plan.with_damaged(_find_damage(plan, executor, progress))
        broken = prepare(plan, executor, progress)
    outcomes = [Outcome(unit.run.run_id, error=str(reason)) for unit, reason in broken.items()]
    for unit, outcome in zip(broken, outcomes, strict=True):
        _note_failure(unit, outcome, 1)
    to_do = [unit for unit in plan.units if unit not in broken]
    with progress.units(plan), _cancelling(executor):
        for unit in broken:
            progress.finished(unit)
        for attempt in range(1, ATTEMPTS + 1):
            again = []
            for (unit,), future in as_calls_complete(executor, try_unit, [(unit,) for unit in to_do]):
                outcome = _outcome(unit, future)
                if outcome.is_transient and attempt < ATTEMPTS:
                    progress.say(f"{unit.run.run_id} failed ({outcome.error}) and is tried again later.")
                    again.append(unit)
                    continue
                _note_failure(unit, outcome, attempt)
                outcomes.append(outcome)
                progress.finished(unit)
            to_do = again
    return outcomes


def _outcome(unit: Unit, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except CancelledError as error:
        raise LOST_SCHEDULER from error
    except Exception as error:  # a worker that was killed could not say what it failed of
        return Outcome(unit.run.run_id, error=_sentence(error), is_transient=is_lost_worker(error))


def _find_damage(plan: Plan, executor: Executor, progress: Progress) -> dict[Unit, str]:
    """Records that look whole and are not: every byte of what is there is read, by all workers."""
    there = [(unit,) for unit in plan.units if unit not in plan.to_train]
    found = {}
    bar = progress.counting("checking records") if len(there) > MANY else nullcontext(lambda done, total: None)
    with bar as report:
        for number, ((unit,), future) in enumerate(as_calls_complete(executor, _damage_of, there), 1):
            try:
                wrong = future.result()
            except CancelledError as error:
                raise LOST_SCHEDULER from error
            except Exception as error:
                if is_transient(error):
                    continue  # who runs the unit will find out too, and it alone fails
                if not is_lost_worker(error):
                    raise
                wrong = _damage_of(unit)
            if wrong is not None:
                found[unit] = wrong
                progress.say(f"{unit.run.run_id} is trained again: {wrong}")
            report(number, len(there))
    return found


def _damage_of(unit: Unit) -> str | None:
    return find_damage(unit.folder)


def _note_failure(unit: Unit, outcome: Outcome, attempts: int) -> None:
    """For `linc-bench status`; what has succeeded since is forgotten."""
    results = unit.sources.results
    note = results.failed(unit.run.run_id)
    reasons = [f"{detector}: {reason}" for detector, reason in outcome.failures.items()]
    if outcome.error is None and not reasons:
        note.unlink(missing_ok=True)
        results.log(unit.run.run_id).unlink(missing_ok=True)
        return
    with suppress(OSError):  # where the disk is full, the reason is shown all the same
        write_json(note, {"reason": outcome.error or "; ".join(reasons), "attempts": attempts})


@contextmanager
def _cancelling(executor: Executor) -> Iterator[None]:
    """Whoever interrupts us does not want the units that have not begun."""
    try:
        yield
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise


def prepare(plan: Plan, executor: Executor, progress: Progress) -> dict[Unit, LincBenchError]:
    """What units share and none of them should do twice: features, given labels and answer keys.

    Returns the units whose data set cannot be had; if that is all of them, raises.
    """
    broken: dict[Unit, LincBenchError] = {}
    lacking = _lacking(plan)
    for argument in plan.study.datasets:
        units = [unit for unit in lacking if unit.dataset_argument == argument]
        try:
            if units:
                dataset = dataset_of(units[0])
                for unit in {(unit.store, unit.needs_store): unit for unit in units if unit in plan.to_train}.values():
                    _compute_features(unit, executor, progress)
                for unit in {unit.run.noise_id: unit for unit in units}.values():
                    _write_labels(unit, dataset)
        except LincBenchError as error:
            broken |= dict.fromkeys(units, error)
        except CancelledError as error:
            raise LOST_SCHEDULER from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise
            for unit in units:
                _write_log(unit, "".join(format_exception(error)))
            why = LincBenchError(f"The features of {argument} could not be computed: {_sentence(error)}")
            broken |= dict.fromkeys(units, why)
    if broken and len(broken) == len(plan.units):
        raise next(iter(broken.values()))
    return broken


def _lacking(plan: Plan) -> list[Unit]:
    """Units that need features and labels, or whose labels or answer key are not there or damaged."""
    results = plan.sources.results
    noise_ids = {unit.run.noise_id for unit in plan.units}
    files = {noise_id: (results.answer_key(noise_id), results.given_labels(noise_id)) for noise_id in noise_ids}
    unreadable = {noise_id for noise_id, both in files.items() if not all(map(_is_readable, both))}
    return [unit for unit in plan.units if unit in plan.to_train or unit.run.noise_id in unreadable]


def _is_readable(npz: Path) -> bool:
    """Its own checksums are right."""
    try:
        with ZipFile(npz) as file:
            return file.testzip() is None
    except UNREADABLE:
        return False


def _compute_features(unit: Unit, executor: Executor, progress: Progress) -> None:
    if not unit.needs_store:
        progress.say_once(f"{unit.run.backbone.name}: the whole network runs in every step (plain path)")
        return
    sources, training = unit.sources, unit.run.training
    where = unit.store, unit.dataset_argument, sources.data_root, unit.info
    job = FeatureJob(*where, unit.run.backbone, sources.weights_file, training.threads, training.device)
    compute_features(job, executor, sources.results.locks, progress.say, lambda: progress.features(unit.info.name))


def _write_labels(unit: Unit, dataset: Dataset) -> None:
    """The labels that training is given, and, in a file of its own that only evaluation opens, the clean ones."""
    results, noise = unit.sources.results, unit.run.noise
    clean = {"train": dataset.train.labels, "validation": dataset.validation.labels}
    given = {split: noise.corrupt(labels, unit.info.num_classes, split) for split, labels in clean.items()}
    write_npz(results.answer_key(unit.run.noise_id), clean)
    write_npz(results.given_labels(unit.run.noise_id), given | {"test": dataset.test.labels})


def try_unit(unit: Unit) -> Outcome:
    """What is wrong comes back in words, since not every exception can be sent from one process to another."""
    try:
        return run_unit(unit)
    except Exception as error:
        _write_log(unit, "".join(format_exception(error)))
        return Outcome(unit.run.run_id, error=_sentence(error), is_transient=not isinstance(error, LincBenchError))


def _write_log(unit: Unit, text: str) -> None:
    with suppress(OSError):  # a full disk is told all the same
        write_text(unit.sources.results.log(unit.run.run_id), text)


def run_unit(unit: Unit) -> Outcome:
    """Trains unless the record is there and whole, then scores what is not scored yet; safe from two processes."""
    results = unit.sources.results
    with locked(results.locks, unit.run.run_id):
        results.log(unit.run.run_id).unlink(missing_ok=True)  # what an earlier attempt failed of
        needs_training = unit.why_train() is not None
        try:
            if needs_training:
                train_record(unit)
            failures = _score(unit)
        finally:
            results.running(unit.run.run_id).unlink(missing_ok=True)
    return Outcome(unit.run.run_id, needs_training, failures=failures)


def _score(unit: Unit) -> dict[str, str]:
    """By every detector that has not scored it; returns why some could not, by their labels."""
    failures, log = {}, ""
    for detector in unit.detectors:
        if unit.force or not has_scores(unit, detector):
            try:
                with threadpool_limits(limits=unit.run.training.threads):  # libraries' own threads change bytes
                    score_record(unit, detector)
            except Exception as error:
                failures[detector.label] = _sentence(error)
                log += f"{detector.label}\n{''.join(format_exception(error))}\n"
    if log:
        _write_log(unit, log)
    return failures


def train_record(unit: Unit) -> None:
    run, settings = unit.run, unit.run.training
    set_up_torch(settings.threads)
    started = time.perf_counter()
    data, device = training_data(unit), torch.device(settings.device)
    path: set[str] = set()

    def new_model(seed: int) -> SplitModel:
        weights, classes = unit.sources.weights_file, data.num_classes
        model = load_backbone(run.backbone, classes, weights, seed, device, settings.plain)
        if unit.needs_store:
            check_weights(unit.store, model)
        path.add(model.summary())
        return model

    def after_epoch(epoch: int) -> None:
        who = {"process": os.getpid(), "machine": platform.node()}
        write_json(unit.sources.results.running(run.run_id), {"epoch": epoch, "epochs": settings.epochs} | who)

    after_epoch(0)
    with atomic_folder(unit.folder) as folder:
        job = Job(data, settings, new_model, lambda model: _recorders(unit, folder, model, data), after_epoch)
        history, left_behind = run.recipe.run(job)
        for signal, array in left_behind.items():
            new_array(folder / f"{signal.key}.npy", array.shape, array.dtype)[:] = array
        np.save(folder / "given_labels.npy", data.train.labels.cpu().numpy())
        for split, predictions in history.predictions.items():
            np.save(folder / f"{split}_predictions.npy", np.stack(predictions))
        write_json(folder / "history.json", history.rows)
        seconds = history.seconds | {"whole run": time.perf_counter() - started}
        keys = [*(signal.key for signal in unit.signals), *_carried_over(unit, folder)]
        arrays = {key: open_array(folder / f"{key}.npy") for key in keys}
        about = {
            "settings": settings_of(run),
            "num_classes": data.num_classes,
            "epochs": len(history.rows),
            "signals": {key: {"shape": list(array.shape), "dtype": str(array.dtype)} for key, array in arrays.items()},
            "seconds": seconds,
            "path": " and ".join(sorted(path)),
        }
        write_json(folder / "record.json", about | provenance())


def _carried_over(unit: Unit, folder: Path) -> list[str]:
    """Signals of the old record that nobody reads now, if training came out the same; else its scores go too."""
    try:
        old = set(open_record(unit.folder).arrays) if unit.folder.exists() else set()
        is_whole = bool(old) and find_damage(unit.folder) is None
        is_same = is_whole and _same_bytes(unit.folder / "history.json", folder / "history.json")
    except LincBenchError:  # damaged, and trained again by force
        old, is_same = set(), False
    if not is_same:
        shutil.rmtree(unit.sources.results.all_scores(unit.run.run_id), ignore_errors=True)
        return []
    others = sorted(old - {signal.key for signal in unit.signals})
    for key in others:
        shutil.copyfile(unit.folder / f"{key}.npy", folder / f"{key}.npy")
    return others


def _same_bytes(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


def training_data(unit: Unit) -> TrainingData:
    """Features, or live images, with the labels that the unit is given."""
    if unit.needs_store:
        features: tuple[Rows, ...] = open_store(unit.store, unit.info)
    else:
        dataset = dataset_of(unit)
        features = tuple(LiveImages(split.images, unit.run.backbone) for split in dataset.splits)
    device = torch.device(unit.run.training.device)
    with np.load(unit.sources.results.given_labels(unit.run.noise_id), allow_pickle=False) as labels:
        given = [torch.from_numpy(labels[split]).to(device) for split in SPLITS]
    train_split, validation, test = map(LabelledFeatures, features, given)
    return TrainingData(train_split, validation, test, unit.info.num_classes)


def _recorders(unit: Unit, folder: Path, model: SplitModel, data: TrainingData) -> list[Recorder]:
    def images(start: int, stop: int) -> Tensor:
        return preprocess(list(dataset_of(unit).train.images[start:stop]), unit.run.backbone)

    return recorders_of(unit.signals, RunContext(unit.shape, folder, model, data, images))


def dataset_of(unit: Unit) -> Dataset:
    return load_dataset_once(unit.dataset_argument, unit.sources.data_root, unit.info)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, LincBenchError) else f"{type(error).__name__}: {error}"
