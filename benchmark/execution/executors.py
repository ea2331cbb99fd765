"""Executors of `concurrent.futures`: this process, worker processes, or a Dask cluster (`dask_cluster.py`)."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any

from benchmark.futures import Initializer, call


def make_executor(
    workers: int,
    initializer: Initializer = None,
    dask: str | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda text: None,
    is_isolated: bool = False,
) -> AbstractContextManager[Executor]:
    """Runs calls in this process for one worker, in worker processes for more, or on a Dask cluster.

    If `is_isolated`, one worker is a process too, so that a call which ends its process does not end this one.
    """
    if dask is not None:
        from benchmark.execution.dask_cluster import dask_executor  # optional, and slow to import

        return dask_executor(dask, workers, initializer, device, say)
    return InProcessExecutor() if workers <= 1 and not is_isolated else WorkerProcesses(workers, initializer)


def default_workers(threads_per_run: int, device: str) -> int:
    """As many as fit on the processors; one on an accelerator."""
    if device != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // threads_per_run)


class InProcessExecutor(Executor):
    """Runs each call in this process when it is submitted."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class WorkerDied(BrokenExecutor):
    """The process that ran a call has ended; other calls are not affected."""


class WorkerProcesses(Executor):
    """Replaces a worker that is killed, and loses no other call.

    The standard library's pool gives up all calls when it loses a process, and waits for ever if that process was
    sending a result.
    """

    def __init__(self, workers: int, initializer: Initializer = None) -> None:
        self._threads = ThreadPoolExecutor(workers)
        self._workers = [_Worker(initializer) for _ in range(workers)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._threads.submit(self._call, function, *arguments, **named)

    def _call(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        worker = self._idle.get()  # there are as many threads as workers
        try:
            return worker.call(function, *arguments, **named)
        finally:
            self._idle.put(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """With `cancel_futures`, running calls are killed too."""
        self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
        for worker in self._workers if cancel_futures else ():
            worker.kill()
        if wait:
            self._threads.shutdown()
            for worker in self._workers:
                worker.close()


class _Worker:
    """One process, started with the first call and after a death.

    Its pipe has no other holder, so that a death is seen as the end of the pipe, even halfway through a result.
    """

    def __init__(self, initializer: Initializer) -> None:
        self._initializer = initializer
        self._running: tuple[BaseProcess, Connection] | None = None
        self._is_killed = False
        self._lock = threading.Lock()  # one thread calls, another may kill

    def call(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        process, pipe = self._running_or_started()
        request = pickle.dumps((function, arguments, named))  # before anything is sent: what it raises ends nobody
        try:
            pipe.send_bytes(request)
            reply = pipe.recv_bytes()
        except (EOFError, OSError) as error:
            process.join()
            raise WorkerDied(f"its worker process {_end_of(process)}") from error
        is_error, result = pickle.loads(reply)
        if is_error:
            raise result
        return result

    def _running_or_started(self) -> tuple[BaseProcess, Connection]:
        if self._running is not None and self._running[0].is_alive():
            return self._running
        self.close()
        with self._lock:
            if self._is_killed:
                raise WorkerDied("its worker process was told to end")
            context = multiprocessing.get_context("spawn")  # torch's thread pools do not survive a fork
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._initializer))
            try:
                process.start()
            except OSError as error:
                ours.close()
                raise WorkerDied(f"no worker process could be started ({error})") from error
            finally:
                theirs.close()
            self._running = process, ours
            return self._running

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            if self._running is not None:
                self._running[0].kill()

    def close(self) -> None:
        if self._running is not None:
            process, pipe = self._running
            pipe.close()
            process.join()
        self._running = None


def _serve(pipe: Connection, initializer: Initializer) -> None:
    """A worker process: answers one call after another until the pipe is closed."""
    begin_worker(initializer)
    while True:
        try:
            request = pipe.recv_bytes()
        except EOFError:
            return
        try:
            function, arguments, named = pickle.loads(request)
            reply = pickle.dumps((False, call(function, *arguments, **named)))
        except Exception as error:
            reply = pickle.dumps((True, error))
        pipe.send_bytes(reply)


def _end_of(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code >= 0:
        return f"ended (exit code {code})"
    cause = ", perhaps because memory ran out" if code == -signal.SIGKILL else ""
    return f"was ended by signal {-code} ({signal.Signals(-code).name}){cause}"


def begin_worker(initializer: Initializer) -> None:
    """The first thing that a worker process does: it leaves Ctrl-C to its parent and ends when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if initializer is not None:
        initializer()
