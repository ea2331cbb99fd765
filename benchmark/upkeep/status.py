"""What a results folder says of its runs: done, running, failed, or begun by somebody who is gone."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from benchmark.disk.files import PARTIAL
from benchmark.disk.results_folder import ResultsFolder


@dataclass(frozen=True)
class Running:
    """A run that somebody trains or scores now."""

    epoch: int = 0
    epochs: int = 0
    seconds_ago: float = 0.0  # since it last said so
    who: str = "somebody"


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
    stale: tuple[str, ...] = ()  # begun and not finished, and nobody is at it


def read_status(results: ResultsFolder) -> Status:
    """Opens no record, so that thousands take seconds."""
    names = [path.name for path in results.all_runs()]
    begun = {name.removeprefix(PARTIAL) for name in names if name.startswith(PARTIAL)}
    begun |= set(results.all_running())
    at_work = {run_id for run_id in begun if is_held(results, run_id)}
    failed = {path.stem: _failed(path) for path in results.all_failed() if path.stem not in at_work}
    others = begun | failed.keys()
    return Status(
        done=tuple(sorted(name for name in names if not name.startswith(".") and name not in others)),
        running={run_id: _running(results.running(run_id)) for run_id in sorted(at_work)},
        failed=failed,
        stale=tuple(sorted(begun - at_work - failed.keys())),
    )


def is_held(results: ResultsFolder, name: str) -> bool:
    """Whether a living process has the lock: the system frees it when a process dies."""
    path = results.locks / f"{name}.lock"
    if not path.exists():
        return False
    try:
        with FileLock(path, fallback_to_soft=False).acquire(timeout=0):
            return False
    except Timeout:
        return True


def _running(path: Path) -> Running:
    try:
        said = json.loads(path.read_text())
        who = f"process {said['process']} on {said['machine']}"
        return Running(int(said["epoch"]), int(said["epochs"]), time.time() - path.stat().st_mtime, who)
    except (OSError, ValueError, KeyError, TypeError):  # it has just begun, or just ended
        return Running()


def _failed(path: Path) -> Failed:
    try:
        said = json.loads(path.read_text())
        return Failed(str(said["reason"]), int(said["attempts"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Failed(f"its note cannot be read ({error})", 0)
