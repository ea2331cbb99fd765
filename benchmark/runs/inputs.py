"""What the runs of a study share and none of them should make twice: features, given labels and answer keys."""

import errno
from concurrent.futures import CancelledError, Executor
from functools import partial
from pathlib import Path

from benchmark.data.datasets import DatasetInfo, missing_file
from benchmark.data.duplicates import duplicates_file, duplicates_sentence, kept_duplicates, read_duplicates
from benchmark.data.look_alikes import keep_look_alikes, look_alikes_sentence
from benchmark.disk import UNREADABLE, ResultsFolder, open_arrays
from benchmark.errors import LincBenchError, error_message
from benchmark.execution.progress import Progress
from benchmark.networks.feature_store import open_store
from benchmark.networks.features import FeatureJob, compute_features
from benchmark.runs.plan import Plan, Sources
from benchmark.runs.training_job import dataset_of
from benchmark.runs.units import Unit, write_log
from benchmark.runs.wrong_labels import samples_of, write_labels

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def prepare_inputs(plan: Plan, executor: Executor, progress: Progress) -> dict[Unit, LincBenchError]:
    """Finds duplicates, computes features and writes labels for the units that lack them.

    Returns the units whose data set is not available, with the reason; raises it if these are all units.
    """
    failed: dict[Unit, LincBenchError] = {}
    incomplete = _units_without_inputs(plan)
    for info, any_unit in {unit.info: unit for unit in plan.units}.items():
        units = [unit for unit in incomplete if unit.info == info]
        if not units and not _can_find_duplicates(info, plan.sources):
            continue
        try:
            dataset = dataset_of(any_unit, plan.sources)
            samples, results = samples_of(dataset), plan.sources.results
            unlabelled = [
                unit.run
                for noise_id, unit in {unit.run.noise_id: unit for unit in units}.items()
                if not _has_labels(results, noise_id)
            ]
            # Before anything is written, since a noise file may not fit.
            wrong = [plan.noise[run.noise_id].corrupt(samples, run.noise.rate, run.noise.seed) for run in unlabelled]
            for unit in {(unit.store_id, unit.foreign): unit for unit in units if unit in plan.to_train}.values():
                _compute_features(unit, plan.sources, executor, progress)
            for run, labels in zip(unlabelled, wrong, strict=True):
                write_labels(run, labels, samples, dataset.test.labels, results)
            duplicates = kept_duplicates(duplicates_file(plan.sources.results, info), dataset)
            if any(unit in plan.to_train for unit in units) and (sentence := duplicates_sentence(duplicates, dataset)):
                progress.say_once(sentence)
        except LincBenchError as error:
            failed |= dict.fromkeys(units, error)
        except CancelledError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                raise
            for unit in units:
                write_log(plan.sources.results, unit.run_id, {"features": error})
            reason = f"The features or labels of {info.name} could not be computed: {error_message(error)}"
            failed |= dict.fromkeys(units, LincBenchError(reason))
    if failed and len(failed) == len(plan.units):
        raise LincBenchError(f"{next(iter(failed.values()))}{plan.not_here_yet()}")
    for unit in {unit.store_id: unit for unit in plan.units}.values():
        _find_look_alikes(unit, plan.sources, progress, bool(plan.to_train))
    return failed


def _units_without_inputs(plan: Plan) -> list[Unit]:
    """Units to be trained, and those whose given labels or answer key are absent or damaged."""
    results = plan.sources.results
    unreadable = {
        noise_id for noise_id in {unit.run.noise_id for unit in plan.units} if not _has_labels(results, noise_id)
    }
    return [unit for unit in plan.units if unit in plan.to_train or unit.run.noise_id in unreadable]


def _can_find_duplicates(info: DatasetInfo, sources: Sources) -> bool:
    """Whether they are unknown, as in a folder of an earlier version, and the images are here."""
    is_known = read_duplicates(duplicates_file(sources.results, info), info.sizes) is not None
    is_here = info in sources.datasets and missing_file(sources.datasets[info], sources.data_root) is None
    return is_here and not is_known


def _has_labels(results: ResultsFolder, noise_id: str) -> bool:
    return _is_readable(results.answer_key(noise_id)) and _is_readable(results.given_labels(noise_id))


def _is_readable(npz: Path) -> bool:
    """Whether the labels in it match the zip file's own checksums."""
    try:
        with open_arrays(npz) as labels:
            return {"train", "validation"} <= {name for name in labels if labels[name].ndim == 1}
    except UNREADABLE:
        return False


def _compute_features(unit: Unit, sources: Sources, executor: Executor, progress: Progress) -> None:
    backbone, training = unit.run.backbone, unit.run.training
    if unit.store_id is None:
        progress.say_once(f"{backbone.name}: the whole network runs in every step (plain path)")
        return
    for info in unit.infos:
        job = FeatureJob(
            folder=sources.store(unit, info),
            dataset=sources.datasets[info],
            data_root=sources.data_root,
            info=info,
            backbone=backbone,
            weights_file=sources.weights_file,
            threads=training.threads,
            device=training.device,
        )
        counting = partial(progress.counting, f"features of {info.name}, images")
        compute_features(job, executor, sources.results.locks, progress.say_once, counting)


def _find_look_alikes(unit: Unit, sources: Sources, progress: Progress, is_new: bool) -> None:
    """If there are features: nothing else needs them."""
    duplicates = read_duplicates(duplicates_file(sources.results, unit.info), unit.info.sizes)
    if unit.store_id is None or duplicates is None or not sources.store(unit).is_dir():
        return
    splits = open_store(sources.store(unit), unit.info)
    pairs = keep_look_alikes(sources.results.look_alikes(unit.store_id), duplicates, splits)
    if is_new and len(pairs):
        progress.say_once(look_alikes_sentence(pairs, unit.info.name, unit.run.backbone.name))
