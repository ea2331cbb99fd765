"""Calls on an executor and in the background: results as they complete, who pays for them, and lost workers."""

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from multiprocessing import parent_process
from typing import Any, TypeVar

from benchmark.errors import error_message

T = TypeVar("T")
Arguments = TypeVar("Arguments", bound=tuple[Any, ...])
Initializer = Callable[[], object] | None  # called in every worker before its first call


def as_calls_complete(
    executor: Executor, function: Callable[..., T], calls: Iterable[Arguments]
) -> Iterator[tuple[Arguments, Future[T]]]:
    """Yields the arguments of each call with its future as it completes; cancels the rest when the caller stops."""
    pending: dict[Future[T], Arguments] = {}
    try:
        for arguments in calls:
            future = executor.submit(function, *arguments)
            if future.done():  # it ran in this process
                yield arguments, future
            else:
                pending[future] = arguments
        for future in as_completed(list(pending)):
            yield pending.pop(future), future  # popped, since results may together be larger than memory
    finally:
        for future in pending:
            future.cancel()


def call(function: Callable[..., T], /, *arguments: Any, **named: Any) -> T:
    """By a worker: SystemExit would end the process that waits, and what cannot be unpickled would not reach it."""
    try:
        return function(*arguments, **named)
    except BaseException as error:
        try:
            pickle.loads(pickle.dumps(error))
            is_sent = isinstance(error, Exception)
        except Exception:
            is_sent = False
        if is_sent:
            raise
        raise RuntimeError(error_message(error)) from error


_background = threading.local()


def charge_background(seconds: float) -> None:
    """Charges this thread for the processor time that another thread spent on its behalf."""
    _background.seconds = background_seconds() + seconds


def background_seconds() -> float:
    return getattr(_background, "seconds", 0.0)


def is_interrupt(error: BaseException) -> bool:
    """Ctrl-C or SIGTERM; workers hear neither, so there a KeyboardInterrupt is an error like any other."""
    is_main = parent_process() is None and threading.current_thread() is threading.main_thread()
    return is_main and isinstance(error, KeyboardInterrupt)


def is_lost_worker(error: Exception) -> bool:
    """Whether a call failed because its worker was lost, not because of the call itself."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"  # Dask's, which is optional
