"""Computes the features of a data set on an executor, chunk by chunk, into a feature store."""

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from benchmark.data.datasets import Dataset, DatasetInfo, load_dataset_once
from benchmark.disk import find_damage, locked
from benchmark.errors import LincBenchError
from benchmark.futures import as_calls_complete, is_lost_worker
from benchmark.networks.backbone import Backbone
from benchmark.networks.feature_store import Say, begin_store, check_weights, finish_store, keep_chunk, remove_store
from benchmark.networks.loading import load_backbone, set_up_torch
from benchmark.networks.preprocessing import preprocess
from benchmark.networks.split_model import SplitModel

BATCH = 32  # images; their features' bytes depend on it
ATTEMPTS = 3  # to compute a chunk whose worker is lost
Report = Callable[[int, int], None]  # images done, of how many


@dataclass(frozen=True)
class FeatureJob:
    """A store to be computed, as a value that can be sent to a worker process."""

    folder: Path  # of the store
    dataset: str  # as `load_dataset` takes it
    data_root: Path | None
    info: DatasetInfo
    backbone: Backbone
    weights_file: Path | None
    threads: int
    device: str

    def model(self, device: str) -> SplitModel:
        set_up_torch(self.threads)
        return load_backbone(self.backbone, 2, self.weights_file, 0, device)  # features do not depend on the classifier


def compute_features(
    job: FeatureJob,
    executor: Executor,
    locks: Path,
    say: Say = lambda text: None,
    counting: Callable[[], AbstractContextManager[Report]] = lambda: nullcontext(lambda done, total: None),
) -> None:
    """Makes sure that the store is there and whole: workers compute the missing chunks, this process writes them.

    The lock is held meanwhile, so that no other command does the same.
    """
    if find_damage(job.folder) is None:
        return
    model = job.model("cpu")  # this machine may lack the workers' device; wrong weights fail before anything is written
    with locked(locks, job.folder.name):
        damage = find_damage(job.folder)
        if damage is None:
            return
        if job.folder.exists():
            say(f"The features in {job.folder} are damaged ({damage}) and are computed again.")
            remove_store(job.folder)
        say(f"{job.backbone.name} {model.summary()}")
        missing = begin_store(job.folder, job.info, job.backbone, model, say)
        with counting() as report:
            _compute_missing(job, missing, executor, report)
        finish_store(job.folder)


def _compute_missing(job: FeatureJob, missing: list[range], executor: Executor, report: Report) -> None:
    total = sum(job.info.sizes)
    done = total - sum(map(len, missing))
    report(done, total)
    for attempt in range(1, ATTEMPTS + 1):
        lost = []
        for (_, chunk), future in as_calls_complete(executor, _compute_chunk, [(job, chunk) for chunk in missing]):
            try:
                keep_chunk(job.folder, chunk, future.result())
            except Exception as error:
                if attempt == ATTEMPTS or not is_lost_worker(error):
                    raise
                lost.append(chunk)
                continue
            done += len(chunk)
            report(done, total)
        missing = lost


def _compute_chunk(job: FeatureJob, chunk: range) -> np.ndarray:
    model, dataset = _checked_model(job), load_dataset_once(job.dataset, job.data_root, job.info)
    set_up_torch(job.threads)  # after other jobs of this process
    return compute_chunk(chunk, dataset, job.backbone, model)


@lru_cache(maxsize=1)
def _checked_model(job: FeatureJob) -> SplitModel:
    """Loaded once per process. Another machine's hub may have other weights under the same name."""
    model = job.model(job.device)
    check_weights(job.folder, model)
    return model


@torch.no_grad()
def compute_chunk(chunk: range, dataset: Dataset, backbone: Backbone, model: SplitModel) -> np.ndarray:
    dtype, device, batches = np.dtype(backbone.feature_dtype), next(model.model.parameters()).device, []
    for first in chunk[::BATCH]:
        last = min(first + BATCH, chunk.stop)
        images = preprocess(dataset.images(first, last), backbone).to(device)
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is reported below
            batch = model.cached(images).cpu().numpy().astype(dtype)
        if not np.isfinite(batch).all():
            raise LincBenchError(
                f"Features {first} to {last} of {dataset.info.name} do not fit into {dtype}. "
                "Run with --feature-dtype float32; `linc-bench features clean --unfinished` frees the disk space."
            )
        batches.append(batch)
    return np.concatenate(batches)
