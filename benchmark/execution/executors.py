"""Where units run: in this process, in worker processes, or on a Dask cluster (`dask_cluster.py`).

Everything that runs goes through `concurrent.futures.Executor`.
"""

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from benchmark.runs.own_detectors import load_file


class InProcessExecutor(Executor):
    """Runs each call when it is submitted, in this very process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class WorkerDied(BrokenExecutor):
    """The process that ran a call is gone; nobody else's is."""


class Call(NamedTuple):
    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class WorkerProcesses(Executor):
    """So many processes at a time. One that is killed takes only its own call with it, and is replaced.

    The standard library's pool gives up all calls when it loses one process.
    """

    def __init__(self, workers: int, detector_files: tuple[Path, ...] = ()) -> None:
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._ended = False
        self._workers = [Worker(detector_files) for _ in range(workers)]
        self._threads = [threading.Thread(target=self._serve, args=(one,), daemon=True) for one in self._workers]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if self._ended:
            raise RuntimeError("no more calls after shutdown")
        future: Future[Any] = Future()
        self._calls.put(Call(future, function, arguments, named))
        return future

    def _serve(self, worker: "Worker") -> None:
        while (call := self._calls.get()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                call.future.set_result(worker.do(call))
            except BaseException as error:
                call.future.set_exception(error)
        worker.end()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """With `cancel_futures` at once: what has begun is not waited for either, and can be done again."""
        self._ended = True
        if cancel_futures:
            with suppress(queue.Empty):
                while (call := self._calls.get_nowait()) is not None:
                    call.future.cancel()
            for worker in self._workers:
                worker.kill()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads if wait else ():
            thread.join()


@dataclass
class Worker:
    """A process that does one call after the other; it begins with the first, and anew after a death."""

    detector_files: tuple[Path, ...]
    _running: tuple[SpawnProcess, Connection] | None = None
    _is_killed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)  # one thread asks for work, another may kill

    def do(self, call: Call) -> Any:
        process, connection = self._running or self._begin()
        try:
            connection.send(call[1:])
            result, error = connection.recv()
        except (EOFError, OSError) as broken:
            process.join()
            self._running, code = None, process.exitcode
            how = f"by signal {-code}" if code and code < 0 else f"and left the exit code {code}"
            raise WorkerDied(f"its worker process was ended {how}, perhaps since memory ran out") from broken
        if error is not None:
            raise error
        return result

    def _begin(self) -> tuple[SpawnProcess, Connection]:
        context = multiprocessing.get_context("spawn")  # not forked: torch's thread pools do not survive a fork
        with self._lock:
            if self._is_killed:
                raise WorkerDied("its worker process was told to end")
            try:
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, self.detector_files), daemon=True)
                process.start()
            except OSError as error:
                raise WorkerDied(f"no worker process could be started ({error})") from error
            theirs.close()
            self._running = process, ours
            return self._running

    def end(self) -> None:
        """When it has nothing left to do."""
        if self._running is not None:
            process, connection = self._running
            connection.close()
            process.join()

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            if self._running is not None:
                self._running[0].kill()


def _work(connection: Connection, detector_files: tuple[Path, ...]) -> None:
    begin_worker(detector_files)
    with suppress(EOFError, KeyboardInterrupt):  # no more calls; Ctrl-C, which the main process hears as well
        while True:
            function, arguments, named = connection.recv()
            try:
                answer: tuple[Any, Exception | None] = (function(*arguments, **named), None)
            except Exception as error:
                answer = (None, error)
            connection.send(answer)


@contextmanager
def make_executor(
    workers: int,
    detector_files: tuple[Path, ...] = (),
    dask: str | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Executor]:
    """Workers know the detectors that came from files of their own."""
    if dask is not None:
        from benchmark.execution.dask_cluster import dask_executor  # an extra, which takes a second to load

        with dask_executor(dask, workers, detector_files, device, say) as executor:
            yield executor
        return
    with InProcessExecutor() if workers <= 1 else WorkerProcesses(workers, detector_files) as executor:
        yield executor


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
