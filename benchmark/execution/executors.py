"""Executors of `concurrent.futures`: this process, worker processes, or a Dask cluster (`dask_cluster.py`)."""

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from typing import Any

from benchmark.execution.worker_processes import Initializer, WorkerProcesses


class InProcessExecutor(Executor):
    """Runs each call in this process when it is submitted."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def make_executor(
    workers: int,
    initializer: Initializer = None,
    dask: str | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda text: None,
) -> AbstractContextManager[Executor]:
    """Runs calls in this process for one worker, in worker processes for more, or on a Dask cluster."""
    if dask is not None:
        from benchmark.execution.dask_cluster import dask_executor  # optional, and slow to import

        return dask_executor(dask, workers, initializer, device, say)
    return InProcessExecutor() if workers <= 1 else WorkerProcesses(workers, initializer)


def default_workers(threads_per_run: int, device: str) -> int:
    """As many as fit on the processors; one on an accelerator."""
    if device != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // threads_per_run)
