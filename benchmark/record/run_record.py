"""A run record: the given labels and the signals of one training run, on disk or in memory.

The folder is the identity, and a finished folder means finished. Inside: `record.json` with every effective setting,
library versions, seconds and peak bytes; `given_labels.npy`; `history.json`; one `.npy` per signal. The clean labels
are not here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.disk import UNREADABLE, is_transient, open_array, read_json, write_json
from benchmark.disk.provenance import provenance
from benchmark.errors import LincBenchError, unknown_name
from benchmark.identity import Json
from benchmark.record.history import RECORDING, Charge, History
from benchmark.record.signals import EVAL_LOGITS, TRAIN_LOGITS, Signal, kinds_of_signals
from benchmark.record.summary import EXACT, summarise

BLOCK_BYTES = 16 * 2**20  # how much of a signal is in memory at a time while it is scored


@dataclass(frozen=True)
class RunRecord:
    """What a detector sees of a run. `record[SIGNAL]` is read-only and may be larger than memory."""

    given_labels: np.ndarray
    num_classes: int
    epochs: int
    arrays: Mapping[str, np.ndarray]  # by signal key; use record[SIGNAL]
    settings: Json = None
    cut_from: int | None = None  # how many epochs the run has, where this record has the first ones only

    def __getitem__(self, signal: Signal) -> np.ndarray:
        array, is_of_logits = self._stored(signal)
        if not is_of_logits:
            return array
        summary = np.empty(array.shape[:2], EXACT)
        for window in self._blocks(array):
            summary[:, window] = summarise(array[:, window], self.given_labels[window], EXACT)
        return summary

    def _stored(self, signal: Signal) -> tuple[np.ndarray, bool]:
        """Its array, or the logits from which it follows, and which of the two."""
        source = next((source for source in signal.sources if source.key in self.arrays), None)
        if source is None:
            has = f"This record has no {signal.key}; it has {', '.join(sorted(self.arrays)) or 'no signals'}. "
            own = " or ".join(f"`{kind}=`" for kind in dict.fromkeys(source.kind for source in signal.sources[::-1]))
            raise LincBenchError(
                has + "Declare what a detector reads in its `needs`."
                if self.settings
                else has + f"Give `RunRecord.from_arrays` {own}, or declare what a detector reads in its `needs`."
            )
        array, trained = self.arrays[source.key], self.cut_from or self.epochs
        recorded, wanted = source.epochs_of(trained), signal.epochs_of(self.epochs)
        if not set(wanted) <= set(recorded) or (not signal.per_epoch and self.epochs < trained):
            raise LincBenchError(f"{signal.key} belongs to the whole run and is not known after {self.epochs} epochs.")
        rows = _rows(array, [recorded.index(epoch) for epoch in wanted]) if signal.per_epoch else array
        return rows, source.kind != signal.kind

    def __contains__(self, signal: Signal) -> bool:
        return any(source.key in self.arrays for source in signal.sources)

    def first_epochs(self, count: int) -> "RunRecord":
        """The same record as if training had ended after `count` epochs."""
        if not 1 <= count <= self.epochs:
            raise LincBenchError(f"The record has {self.epochs} epochs; there are no first {count}.")
        return replace(self, epochs=count, cut_from=self.cut_from or self.epochs)

    def map_samples(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray], signal: Signal) -> np.ndarray:
        """`function(labels_B, signal_EB…)` block by block of samples in bounded memory; results in sample order."""
        array, is_of_logits = self._stored(signal)
        results = []
        for window in self._blocks(array):
            labels = self.given_labels[window]
            values = np.asarray(array[:, window] if signal.per_epoch else array[window])
            results.append(function(labels, summarise(values, labels, EXACT) if is_of_logits else values))
        return np.concatenate(results).astype(np.float64, copy=False)

    def _blocks(self, array: np.ndarray) -> Iterator[slice]:
        """Of samples, so that a part of the array is in memory at a time."""
        n = len(self.given_labels)
        block = max(1, BLOCK_BYTES // max(1, array.nbytes // n))
        yield from (slice(start, start + block) for start in range(0, n, block))

    @classmethod
    def from_arrays(
        cls, *, given_labels: np.ndarray, num_classes: int | None = None, **signals: np.ndarray
    ) -> "RunRecord":
        """A record from arrays of your own: `train_logits` and `eval_logits` are epochs × samples × classes."""
        labels = checked_labels(given_labels)
        arrays = {key: np.asarray(array).view() for key, array in signals.items()}
        for key in (key for key in arrays if key.partition("-")[0] not in kinds_of_signals()):
            raise unknown_name("signal", key, kinds_of_signals())
        logits = {signal.key: arrays[signal.key] for signal in (TRAIN_LOGITS, EVAL_LOGITS) if signal.key in arrays}
        for key, array in logits.items():
            if array.ndim != 3 or array.shape[1] != len(labels):
                raise LincBenchError(f"{key} has shape {array.shape}; expected (epochs, {len(labels)}, classes).")
            if bad := int((~np.isfinite(array)).any(axis=-1).sum()):
                raise LincBenchError(f"{key} has {bad:,} rows that are not finite; leave these samples out.")
        shapes = {array.shape for array in logits.values()}
        if len(shapes) > 1:
            raise LincBenchError("train_logits and eval_logits differ in shape; both are epochs × samples × classes.")
        longest = max(map(len, arrays.values()), default=0)
        epochs, _, classes = shapes.pop() if shapes else (longest, len(labels), int(labels.max(initial=0)) + 1)
        classes = num_classes or classes
        checked_labels(labels, classes)
        for array in arrays.values():
            array.flags.writeable = False
        return cls(labels, classes, epochs, arrays)


def checked_labels(given_labels: Any, classes: int | None = None) -> np.ndarray:
    labels = np.asarray(given_labels)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise LincBenchError(f"given_labels are {labels.dtype} of shape {labels.shape}; expected whole numbers (n,).")
    if classes is not None and len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise LincBenchError(f"given_labels run from {labels.min()} to {labels.max()}; expected 0 to {classes - 1}.")
    return labels


def _rows(array: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    """Not copied if they are neighbours, since the array may be larger than memory."""
    start = rows[0] if rows else 0
    stop = start + len(rows)
    return array[start:stop] if rows == list(range(start, stop)) else array[rows]


def write_record(
    folder: Path,
    settings: Json,
    given_labels: np.ndarray,
    num_classes: int,
    history: History,
    left_behind: Mapping[Signal, np.ndarray],
    keys: Iterable[str],
    started: float,
    path: str = "",
    commit: str | None = None,
) -> RunRecord:
    """Completes the folder into which recorders wrote their signals, and opens the record.

    `left_behind` is what the recipe returned; writing it is charged to its signals. `keys` are those of all signals
    in the record, `started` is the value of `time.perf_counter` at the start, and `path` says how the network ran.
    """
    for signal, array in left_behind.items():
        with history.clock(Charge(RECORDING, (signal.key,))):
            np.save(folder / f"{signal.key}.npy", np.ascontiguousarray(array))
    np.save(folder / "given_labels.npy", given_labels)
    for split, predictions in history.predictions.items():
        np.save(folder / f"{split}_predictions.npy", np.stack(predictions))
    write_json(folder / "history.json", history.rows)
    arrays = {key: open_array(folder / f"{key}.npy") for key in keys}
    about = {
        "settings": settings,
        "num_classes": num_classes,
        "epochs": len(history.rows),
        "signals": {key: {"shape": list(array.shape), "dtype": str(array.dtype)} for key, array in arrays.items()},
        "seconds": history.seconds | {"whole run": time.perf_counter() - started},
        "path": path,
    }
    write_json(folder / "record.json", about | provenance(commit))
    return RunRecord(given_labels, num_classes, len(history.rows), arrays, settings)


def open_record(folder: Path) -> RunRecord:
    """Opens a finished record; a damaged one is an error that says so."""
    try:
        about = read_metadata(folder)
        if outside := [key for key in about["signals"] if Path(key).name != key]:
            raise ValueError(f"{outside[0]!r} is not the name of a signal")
        arrays = {key: open_array(folder / f"{key}.npy") for key in about["signals"]}
        for key, array in arrays.items():
            if list(array.shape) != about["signals"][key]["shape"]:
                raise ValueError(f"{key} has shape {array.shape}, not {about['signals'][key]['shape']}")
        labels = np.array(open_array(folder / "given_labels.npy"))
        history = read_history(folder)
        splits = [split for split in ("validation", "test") if f"{split}_accuracy" in history[0]]  # an audit has none
        predictions = [open_array(folder / f"{split}_predictions.npy") for split in splits]
        if {about["epochs"]} != {len(history), *map(len, predictions)}:
            raise ValueError("history and predictions do not cover every epoch")
        return RunRecord(labels, about["num_classes"], about["epochs"], arrays, about["settings"])
    except UNREADABLE as error:
        if is_transient(error):
            raise
        raise LincBenchError(f"The record {folder} is damaged ({error}).") from error


def read_metadata(folder: Path) -> Json:
    """Settings, versions, seconds and the rest of `record.json`."""
    return read_json(folder / "record.json")


def read_history(folder: Path) -> Json:
    """Per-epoch rows, as `history.json` has them."""
    return read_json(folder / "history.json")
