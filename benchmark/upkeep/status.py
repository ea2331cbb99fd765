"""`linc-bench status`: which runs of a results folder are done, running, failed or interrupted."""

import time
from typing import NamedTuple

from filelock import FileLock, Timeout

from benchmark.disk import PARTIAL, UNREADABLE, ResultsFolder, read_json
from benchmark.execution.progress import duration

RUNNING, FAILED, INTERRUPTED, DONE = "running", "failed", "interrupted", "done"


class RunState(NamedTuple):
    run_id: str
    state: str
    details: str = ""


def read_status(results: ResultsFolder) -> list[RunState]:
    """Every run once; opens no record, so that thousands take seconds."""
    names = {path.name for path in results.all_runs()}
    started = {name.removeprefix(PARTIAL) for name in names if name.startswith(PARTIAL)} | set(results.all_running())
    running = {run_id for run_id in started if is_locked(results, run_id)}
    failed = {path.stem for path in results.all_failed()} - running
    done = {name for name in names if not name.startswith(".")} - started - failed
    return [
        *(RunState(run_id, RUNNING, _progress(results, run_id)) for run_id in sorted(running)),
        *(RunState(run_id, FAILED, _failure(results, run_id)) for run_id in sorted(failed)),
        *(RunState(run_id, INTERRUPTED, "rerun the same command") for run_id in sorted(started - running - failed)),
        *(RunState(run_id, DONE) for run_id in sorted(done)),
    ]


def is_locked(results: ResultsFolder, name: str) -> bool:
    """Whether a living process holds the lock; the system frees it when a process dies."""
    path = results.locks / f"{name}.lock"
    if not path.exists():
        return False
    try:
        with FileLock(path, fallback_to_soft=False).acquire(timeout=0):
            return False
    except Timeout:
        return True


def _progress(results: ResultsFolder, run_id: str) -> str:
    path = results.running(run_id)
    try:
        note, ago = read_json(path), duration(time.time() - path.stat().st_mtime)
        where = f"process {note['process']} on {note['machine']}"
        if "scoring" in note:
            return f"scoring {note['scoring']} for {duration(time.time() - note['since'])}, {where}"
        return f"epoch {note['epoch']} of {note['epochs']} {ago} ago, {where}"
    except UNREADABLE:
        return "it has just started, or just ended"


def _failure(results: ResultsFolder, run_id: str) -> str:
    details = f"; details: {results.log(run_id)}" if results.log(run_id).exists() else ""
    try:
        note = read_json(results.failed(run_id))
        return f"{note['reason']} (attempts: {note['attempts']}{details})"
    except UNREADABLE as error:
        return f"its note cannot be read ({error}{details})"
