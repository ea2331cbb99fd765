"""Worker processes of which one that is killed takes only its own call with it."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any

Arguments = tuple[Any, ...]
Initializer = Callable[..., object] | None  # called in every worker before its first call, with `initargs`


class WorkerDied(BrokenExecutor):
    """The process that ran a call has ended; other calls are not affected."""


class WorkerProcesses(Executor):
    """Replaces a worker that is killed, and loses no other call.

    The standard library's pool gives up all calls when it loses a process, so each worker is a pool of one process.
    """

    def __init__(self, workers: int, initializer: Initializer = None, initargs: Arguments = ()) -> None:
        self._threads = ThreadPoolExecutor(workers)
        self._workers = [_Worker(initializer, initargs) for _ in range(workers)]
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
    """One process, started with the first call and after a death."""

    def __init__(self, initializer: Initializer, initargs: Arguments) -> None:
        self._initializer = initializer, initargs
        self._pool: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None
        self._is_killed = False
        self._lock = threading.Lock()  # one thread calls, another may kill

    def call(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        if self._process is None or not self._process.is_alive():
            self._start()
        assert self._pool is not None
        try:
            return self._pool.submit(function, *arguments, **named).result()
        except BrokenExecutor as error:
            raise WorkerDied(f"its worker process {self._cause_of_death()}, perhaps because memory ran out") from error

    def _start(self) -> None:
        self.close()
        with self._lock:
            if self._is_killed:
                raise WorkerDied("its worker process was told to end")
            context = multiprocessing.get_context("spawn")  # torch's thread pools do not survive a fork
            self._pool = ProcessPoolExecutor(1, context, begin_worker, self._initializer)
            try:
                pid = self._pool.submit(os.getpid).result()
            except (OSError, BrokenExecutor) as error:
                raise WorkerDied(f"no worker process could be started ({error})") from error
            self._process = next(child for child in multiprocessing.active_children() if child.pid == pid)

    def _cause_of_death(self) -> str:
        if self._process is None:
            return "ended"
        self._process.join()
        code = self._process.exitcode or 0
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = self._process = None


def begin_worker(initializer: Initializer, initargs: Arguments) -> None:
    """The first thing that a worker process does: it leaves Ctrl-C to its parent and ends when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if initializer is not None:
        initializer(*initargs)
