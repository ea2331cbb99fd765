"""Functions that tests have worker processes call; importing them is fast, which starting a worker waits for."""

import os
import signal
import sys


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise ValueError(f"no {number}")


class UnpicklableError(Exception):
    """Pickles, and cannot be made again from what was pickled."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def raise_unpicklable() -> None:
    raise UnpicklableError(1, 2)


def leave() -> None:
    sys.exit(0)


def process_id(_: int = 0) -> int:
    return os.getpid()


def end_process(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def many_bytes(count: int) -> bytes:
    return bytes(count)
