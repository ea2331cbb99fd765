"""Scores on disk: one number per sample with the sample's index beside it, so that no order can be mistaken."""

import json
import time
from pathlib import Path

import numpy as np

from benchmark.disk.files import UNREADABLE, checksum, write_json, write_npy
from benchmark.errors import LincBenchError
from benchmark.identity import settings_of
from benchmark.record.run_record import open_record
from benchmark.runs.plan import Unit
from detectors import Detector

SCORE_DTYPE = np.dtype([("sample", "<i8"), ("score", "<f8")])


def score_record(unit: Unit, detector: Detector) -> None:
    record = open_record(unit.folder)
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
    path = unit.score_file(detector)
    about = {"detector": settings_of(detector), "seconds": seconds, "crc32": checksum([table.tobytes()])}
    write_json(path.with_suffix(".json"), about)
    write_npy(path, table)


def has_scores(unit: Unit, detector: Detector) -> bool:
    """Whether there are scores to read; damaged ones count as missing, since making them again is cheap."""
    try:
        return len(read_scores(unit.score_file(detector))[0]) == unit.shape.samples
    except UNREADABLE:
        return False


def read_scores(path: Path) -> tuple[np.ndarray, float]:
    """Scores in sample order, and the seconds it took to compute them; damaged ones are a `ValueError`."""
    table, about = np.load(path, allow_pickle=False), json.loads(path.with_suffix(".json").read_text())
    found = checksum([table.tobytes()])
    if about.get("crc32", found) not in (found, int(found, 16)):  # older files have a number, or none
        raise ValueError("the scores changed since they were written")
    scores = np.empty(len(table))
    scores[table["sample"]] = table["score"]
    return scores, about["seconds"]
