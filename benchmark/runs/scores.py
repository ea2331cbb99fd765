"""Scores on disk: one number per sample with the sample's index beside it, so that no order can be mistaken."""

import faulthandler
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmark.disk import UNREADABLE, atomic_file, checksum, read_json, write_json
from benchmark.errors import LincBenchError
from benchmark.identity import settings_of
from benchmark.record import open_record
from detectors import Detector

SCORE_DTYPE = np.dtype([("sample", "<i8"), ("score", "<f8")])


def score_record(record_folder: Path, detector: Detector, file: Path) -> None:
    record = open_record(record_folder)
    started = time.perf_counter()
    scores = np.asarray(detector.score(record))
    seconds = time.perf_counter() - started
    n = len(record.given_labels)
    if scores.shape != (n,) or scores.dtype != np.float64:
        raise LincBenchError(f"scores are {scores.dtype} of shape {scores.shape}; expected float64 of shape ({n},)")
    if not np.isfinite(scores).all():
        raise LincBenchError(f"{np.count_nonzero(~np.isfinite(scores))} of {n} scores are not finite numbers")
    table = np.empty(n, dtype=SCORE_DTYPE)
    table["sample"], table["score"] = np.arange(n), scores
    about = {"detector": settings_of(detector), "seconds": seconds, "crc32": checksum([table.tobytes()])}
    write_json(file.with_suffix(".json"), about)
    with atomic_file(file) as opened:
        np.save(opened, table, allow_pickle=False)


@contextmanager
def limited(seconds: float | None, log: Path) -> Iterator[None]:
    """Ends this process if what is inside takes longer, even in a loop of C code; the log says where it was."""
    if seconds is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        faulthandler.dump_traceback_later(seconds, exit=True, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
    if not log.stat().st_size:
        log.unlink()


def has_scores(file: Path, samples: int) -> bool:
    """Damaged scores count as missing, since computing them again is cheap."""
    try:
        return len(read_scores(file)[0]) == samples
    except UNREADABLE:
        return False


def read_scores(file: Path) -> tuple[np.ndarray, float]:
    """Scores in sample order, and the seconds it took to compute them; damaged ones are a `ValueError`."""
    table, about = np.load(file, allow_pickle=False), read_json(file.with_suffix(".json"))
    if about["crc32"] != checksum([table.tobytes()]):
        raise ValueError("the scores changed since they were written")
    scores = np.empty(len(table))
    scores[table["sample"]] = table["score"]
    return scores, float(about["seconds"])
