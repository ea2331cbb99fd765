"""Functions that tests have worker processes call; importing them is fast, which starting a worker waits for."""

import os
import signal


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise ValueError(f"no {number}")


def process_id(_: int = 0) -> int:
    return os.getpid()


def end_process(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def many_bytes(count: int) -> bytes:
    return bytes(count)
