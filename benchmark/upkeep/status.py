"""`linc-bench status`: which runs of a results folder are done, running, failed or interrupted."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from benchmark.disk import PARTIAL, ResultsFolder


@dataclass(frozen=True)
class Running:
    """A run that is being trained or scored."""

    epoch: int = 0
    epochs: int = 0
    seconds_ago: float = 0.0  # since its note was written
    process: str = "unknown process"


@dataclass(frozen=True)
class Failed:
    """A run that could not be trained, or that some detectors could not score."""

    reason: str
    attempts: int


@dataclass(frozen=True)
class Status:
    done: tuple[str, ...]
    running: dict[str, Running] = field(default_factory=dict)
    failed: dict[str, Failed] = field(default_factory=dict)
    interrupted: tuple[str, ...] = ()


def read_status(results: ResultsFolder) -> Status:
    """Opens no record, so that thousands take seconds."""
    names = [path.name for path in results.all_runs()]
    started = {name.removeprefix(PARTIAL) for name in names if name.startswith(PARTIAL)} | set(results.all_running())
    running = {run_id for run_id in started if is_locked(results, run_id)}
    failed = {path.stem: _read_failed(path) for path in results.all_failed() if path.stem not in running}
    not_done = started | failed.keys()
    return Status(
        done=tuple(sorted(name for name in names if not name.startswith(".") and name not in not_done)),
        running={run_id: _read_running(results.running(run_id)) for run_id in sorted(running)},
        failed=failed,
        interrupted=tuple(sorted(started - running - failed.keys())),
    )


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


def _read_running(path: Path) -> Running:
    try:
        note = json.loads(path.read_text())
        process = f"process {note['process']} on {note['machine']}"
        return Running(int(note["epoch"]), int(note["epochs"]), time.time() - path.stat().st_mtime, process)
    except (OSError, ValueError, KeyError, TypeError):  # it has just started, or just ended
        return Running()


def _read_failed(path: Path) -> Failed:
    try:
        note = json.loads(path.read_text())
        return Failed(str(note["reason"]), int(note["attempts"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Failed(f"its note cannot be read ({error})", 0)
