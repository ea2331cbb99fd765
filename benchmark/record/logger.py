"""Logs the dynamics of any training loop on disk, for detectors that read logits or their summaries.

    log = DynamicsLogger(given_labels, classes=10, folder="dynamics")
    for epoch in range(epochs):
        for indices, images in loader:  # indices: the places of the samples in given_labels
            logits = model(images)
            log.batch(indices, logits)
            ...
        log.end_epoch()
    scores = AUM().score(log.record())

It keeps six numbers of each sample and epoch (see `summary`), or all logits with `full=True`. `log.evaluation(indices,
logits)` logs a pass at the end of each epoch, for detectors that read that. Samples come in any order. Of a sample that
comes twice in an epoch the last logits count. One that is missing, or whose logits are not finite, keeps its values of
the epoch before; if it never came before, it gets those of the first epoch in which it comes. `end_epoch` returns how
many there were.

Each epoch is appended to a memory-mapped file and counts once `end_epoch` has returned, whatever happens later. To
continue a training, open the same folder with `after_epoch`, the number of epochs that the restored model has seen.
In distributed training, gather indices and logits, and log them in one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmark.disk import UNREADABLE, read_json, write_json
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest
from benchmark.record.run_record import RunRecord, checked_labels
from benchmark.record.signals import EVAL_LOGITS, EVAL_SUMMARY, TRAIN_LOGITS, TRAIN_SUMMARY
from benchmark.record.summary import NUMBERS, SUMMARY, summarise

if TYPE_CHECKING:
    from torch import Tensor

SIGNALS = {
    ("train", False): TRAIN_SUMMARY,
    ("train", True): TRAIN_LOGITS,
    ("eval", False): EVAL_SUMMARY,
    ("eval", True): EVAL_LOGITS,
}
EMPTY = np.array((*[np.nan] * len(NUMBERS), -1), SUMMARY)
WAITING = 64  # batches that stay where they were computed, so that an accelerator is not waited for in each step


@dataclass(frozen=True)
class EpochNote:
    """What was unusual in an epoch."""

    epoch: int
    missing: int = 0  # samples that did not come
    repeated: int = 0  # samples that came more than once

    def __str__(self) -> str:
        return f"epoch {self.epoch}: {self.missing:,} samples missing, {self.repeated:,} repeated"


def processes() -> int:
    """That train together."""
    from torch import distributed

    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


class DynamicsLogger:
    def __init__(
        self, given_labels: Any, classes: int, folder: Path | str, full: bool = False, after_epoch: int = 0
    ) -> None:
        self.labels, self.classes, self.folder = checked_labels(given_labels, classes), classes, Path(folder)
        self.full, self.epochs = full, after_epoch
        about = {"version": 1, "labels": bytes_digest([self.labels.astype(np.int64).tobytes()])}
        self.about = about | {"classes": classes, "full": full}
        self._check_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.moments: dict[str, _Moment] = {}
        names = self._read()["moments"] if after_epoch else []
        self._keep(names)  # before any file is cut
        for name in names:
            self._moment(name)

    def batch(self, indices: Tensor, logits: Tensor) -> None:
        """Logits of a training step, before the update."""
        self._moment("train").add(indices, logits)

    def evaluation(self, indices: Tensor, logits: Tensor) -> None:
        """Logits of a pass over the training samples, after the last step of the epoch."""
        self._moment("eval").add(indices, logits)

    def end_epoch(self) -> EpochNote:
        """Of the training steps."""
        silent = [name for name, moment in self.moments.items() if not moment.was_logged]
        if "train" not in self.moments or silent:
            what = "`evaluation(indices, logits)` after" if silent == ["eval"] else "`batch(indices, logits)` in"
            raise LincBenchError(f"Nothing was logged by {what} this epoch.")
        notes = {name: moment.end(self.epochs + 1) for name, moment in self.moments.items()}
        self.epochs += 1
        self._keep(self.moments)
        for moment in self.moments.values():
            moment.begin(self.epochs + 1)
        return notes["train"]

    def record(self) -> RunRecord:
        """Of the complete epochs so far."""
        if not self.epochs:
            raise LincBenchError("No epoch is complete yet. Call `end_epoch()` after each.")
        arrays = {}
        for name, moment in self.moments.items():
            history = moment.history(self.epochs, "r")
            if len(never := np.flatnonzero(moment.is_empty(history[-1]))):
                raise LincBenchError(
                    f"{len(never):,} of {len(self.labels):,} samples never came (the first: {never[0]}). Log every "
                    "sample at least once, or leave those out of `given_labels` and count the others anew."
                )
            arrays[SIGNALS[name, self.full].key] = history
        return RunRecord(self.labels, self.classes, self.epochs, arrays)

    def _moment(self, name: str) -> _Moment:
        if name not in self.moments:
            if processes() > 1:
                raise LincBenchError("Several processes train; gather their indices and logits, and log them in one.")
            if self.epochs and name not in self._read()["moments"]:
                raise LincBenchError(f"Evaluations were not logged in the first {self.epochs} epochs. Log all or none.")
            self.moments[name] = _Moment(self.folder / f"{name}.bin", self.labels, self.classes, self.full)
            self.moments[name].begin(self.epochs + 1)
        return self.moments[name]

    def _read(self) -> Any:
        try:
            return read_json(self.folder / "log.json")
        except UNREADABLE as error:
            raise LincBenchError(f"{self.folder} has no log of a training that can be read ({error}).") from error

    def _keep(self, moments: Iterable[str]) -> None:
        write_json(self.folder / "log.json", self.about | {"epochs": self.epochs, "moments": list(moments)})

    def _check_folder(self) -> None:
        known = self._read() if (self.folder / "log.json").exists() or self.epochs else {"epochs": 0}
        if known["epochs"] < self.epochs:
            raise LincBenchError(f"{self.folder} has {known['epochs']} complete epochs, fewer than {self.epochs}.")
        if known["epochs"] and {key: known[key] for key in self.about} != self.about:
            raise LincBenchError(f"{self.folder} has the log of other labels or settings. Choose another folder.")
        if known["epochs"] and not self.epochs:
            raise LincBenchError(
                f"{self.folder} has {known['epochs']} epochs of an earlier training. Choose another folder, or "
                "continue that training with `after_epoch`; epochs after it are dropped."
            )


class _Moment:
    """The growing file of the logits that produce the updates, or of those of evaluations."""

    def __init__(self, path: Path, labels: np.ndarray, classes: int, full: bool) -> None:
        self.path, self.labels, self.classes, self.full = path, labels, classes, full
        self.shape: tuple[int, ...] = (len(labels), classes) if full else (len(labels),)
        self.dtype: np.dtype = np.dtype(np.float32) if full else SUMMARY
        self.waiting: list[tuple[Tensor, Tensor]] = []

    def history(self, epochs: int, mode: Literal["r", "r+"]) -> np.memmap:
        return np.memmap(self.path, self.dtype, mode, shape=(epochs, *self.shape))

    def begin(self, epoch: int) -> None:
        """Makes room for the epoch; what an interrupted one left behind is dropped."""
        size = self.dtype.itemsize * int(np.prod(self.shape))
        with self.path.open("ab") as file:
            if (there := self.path.stat().st_size) < (epoch - 1) * size:
                raise LincBenchError(f"{self.path} has {there:,} bytes, fewer than its {epoch - 1} epochs: it was cut.")
            file.truncate((epoch - 1) * size)
            file.truncate(epoch * size)
            if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and no crash later
                os.posix_fallocate(file.fileno(), 0, epoch * size)
        self.current = self.history(epoch, "r+")[-1]
        self.times_seen = np.zeros(len(self.labels), dtype=np.int32)

    def add(self, indices: Tensor, logits: Tensor) -> None:
        if logits.shape != (len(indices), self.classes):
            raise LincBenchError(
                f"Logits have the shape {tuple(logits.shape)}; expected ({len(indices)}, {self.classes}), a row for "
                "each index and a column for each class."
            )
        self.waiting.append((indices.detach(), logits.detach()))
        if logits.device.type == "cpu" or len(self.waiting) >= WAITING:
            self.write()

    @property
    def was_logged(self) -> bool:
        return bool(self.waiting) or bool(self.times_seen.any())

    def write(self) -> None:
        import torch

        if not self.waiting:
            return
        rows, logits = torch.cat([rows for rows, _ in self.waiting]).cpu().numpy(), self.waiting[0][1]
        logits = torch.cat([each for _, each in self.waiting]) if len(self.waiting) > 1 else logits
        self.waiting.clear()
        if rows.min() < 0 or rows.max() >= len(self.labels):
            raise LincBenchError(
                f"Indices run from {rows.min()} to {rows.max()}; expected 0 to {len(self.labels) - 1}, the places of "
                "the samples in `given_labels`."
            )
        values = logits.float().cpu().numpy() if self.full else summarise(logits, self.labels[rows])
        is_finite = ~self.is_empty(values)
        self.current[rows[is_finite]] = values[is_finite]
        np.add.at(self.times_seen, rows[is_finite], 1)

    def is_empty(self, values: np.ndarray) -> np.ndarray:
        """Which samples have no values."""
        return ~np.isfinite(values).all(axis=-1) if self.full else ~np.isfinite(values["loss"])

    def end(self, epoch: int) -> EpochNote:
        self.write()
        history, is_missing = self.history(epoch, "r+"), self.times_seen == 0
        if epoch == 1:
            history[0][is_missing] = np.full((), np.nan, np.float32) if self.full else EMPTY
        else:
            is_new = self.is_empty(history[-2]) & ~is_missing
            history[-1][is_missing] = history[-2][is_missing]
            history[:-1, is_new] = history[-1][is_new]
        history.flush()
        return EpochNote(epoch, int(is_missing.sum()), int((self.times_seen > 1).sum()))
