"""Where units run: in this process, or in worker processes. Everything goes through `concurrent.futures.Executor`."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmark.own_detectors import load_file


class InProcessExecutor(Executor):
    """Runs each call when it is submitted, in this very process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def make_executor(workers: int, detector_files: tuple[Path, ...] = ()) -> Executor:
    """Workers know the detectors that came from files of their own."""
    if workers <= 1:
        return InProcessExecutor()
    # Spawned, not forked: torch's thread pools do not survive a fork.
    return ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=begin_worker, initargs=(detector_files,)
    )


def begin_worker(detector_files: tuple[Path, ...]) -> None:
    """Loads detectors that came from files of their own, and sees to it that no worker outlives its parent."""
    for path in detector_files:
        load_file(path)
    _end_with_parent()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever; it ends instead."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def default_workers(threads_per_run: int, device: str) -> int:
    """As many as fit on the processors; one on an accelerator."""
    if device != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // threads_per_run)
