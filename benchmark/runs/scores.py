"""Scores on disk: one number per sample with the sample's index beside it, so that no order can be mistaken.

Beside them is a detector's AUROC had training ended earlier, which is slow to compute.
"""

import faulthandler
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

from benchmark.disk import UNREADABLE, atomic_file, checksum, is_transient, open_array, read_json, write_json
from benchmark.errors import LincBenchError
from benchmark.futures import is_interrupt
from benchmark.identity import Json, file_digest, settings_of
from benchmark.noise import AnswerKey
from benchmark.record import RunRecord, open_record
from benchmark.statistics.metrics import why_undefined
from detectors import Detector

SCORE_DTYPE = np.dtype([("sample", "<i8"), ("score", "<f8")])
Limits = Callable[[], AbstractContextManager[None]]  # inside which a detector's own code runs


def score_record(record_folder: Path, detector: Detector, file: Path, limits: Limits) -> None:
    record = open_record(record_folder)
    scores, seconds = _scored(detector, record, limits)
    table = np.empty(len(scores), dtype=SCORE_DTYPE)
    table["sample"], table["score"] = np.arange(len(scores)), scores
    about = {"detector": settings_of(detector), "seconds": seconds, "crc32": checksum([table.tobytes()])}
    write_json(file.with_suffix(".json"), about)
    with atomic_file(file) as opened:
        np.save(opened, table, allow_pickle=False)


def _scored(detector: Detector, record: RunRecord, limits: Limits) -> tuple[np.ndarray, float]:
    """Scores and the seconds they took."""
    with limits():
        started = time.perf_counter()
        scores = np.asarray(detector.score(record))
        seconds = time.perf_counter() - started
    n = len(record.given_labels)
    if scores.shape != (n,) or scores.dtype != np.float64:
        raise LincBenchError(f"scores are {scores.dtype} of shape {scores.shape}; expected float64 of shape ({n},)")
    if not np.isfinite(scores).all():
        raise LincBenchError(f"{np.count_nonzero(~np.isfinite(scores))} of {n} scores are not finite numbers")
    return scores, seconds


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
    table, about = open_array(file), read_json(file.with_suffix(".json"))
    if about["crc32"] != checksum([table.tobytes()]):
        raise ValueError("the scores changed since they were written")
    scores = np.empty(len(table))
    scores[table["sample"]] = table["score"]
    return scores, float(about["seconds"])


def has_auroc_by_epochs(file: Path, epochs: int) -> bool:
    try:
        return bool(read_auroc_by_epochs(file, epochs))
    except UNREADABLE:
        return False


def read_auroc_by_epochs(file: Path, epochs: int) -> list[Json]:
    """Of these scores, after 1, 2, … epochs; None where the detector needs more. Damaged ones are a `ValueError`."""
    kept = read_json(_by_epochs(file))
    points, counts = kept["points"], [point["epochs_read"] for point in kept["points"]]
    if (kept["crc32"], kept["scores"], counts) != (_checksum(points), [file_digest(file)], epochs_read(epochs)):
        raise ValueError("AUROC by epochs is damaged, or that of other scores")
    return points


def score_epochs(record_folder: Path, detector: Detector, file: Path, limits: Limits, answer_key: Path) -> None:
    """Keeps the AUROC of scores had training ended after 1, 2, … epochs. The detector does not see the answer key."""
    from sklearn.metrics import roc_auc_score

    record, aurocs = open_record(record_folder), dict[int, float]()
    is_mislabelled = AnswerKey.read(answer_key).is_mislabelled(record.given_labels)
    for count in epochs_read(record.epochs) if why_undefined(is_mislabelled) is None else ():
        try:
            scores, _ = _scored(detector, record.first_epochs(count), limits)
        except BaseException as error:
            if is_interrupt(error) or is_transient(error):
                raise
            continue  # it needs more epochs than these
        aurocs[count] = round(float(roc_auc_score(is_mislabelled, scores)), 6)
    points = [{"epochs_read": count, "auroc": aurocs.get(count)} for count in epochs_read(record.epochs)]
    write_json(_by_epochs(file), {"scores": [file_digest(file)], "points": points, "crc32": _checksum(points)})


def _by_epochs(file: Path) -> Path:
    return file.parent / "by_epochs" / f"{file.stem}.json"


def _checksum(points: Json) -> str:
    return checksum([json.dumps(points).encode()])


def epochs_read(epochs: int) -> list[int]:
    """After how many epochs AUROCs are computed: each of the first ten, where most changes, then every fifth."""
    return [*range(1, min(10, epochs) + 1), *range(15, epochs, 5), *([epochs] if epochs > 10 else [])]
