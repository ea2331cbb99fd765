"""Commands in processes of their own that can be killed, forked from one that has imported everything already."""

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmark.cli.command_line import main

PRELOADED = ["tests.faults.processes", "benchmark.cli.studies", "torch", "timm", "sklearn.mixture"]


class Forked:
    """What the campaign uses of a `subprocess.Popen`, without seconds of imports."""

    def __init__(self, arguments: list[str], makes_report: bool, output: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._output = output
        self._process = context.Process(target=run, args=(arguments, makes_report, output))
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.is_alive():
            assert self._process.pid is not None
            os.kill(self._process.pid, number)

    def communicate(self) -> tuple[str, None]:
        self._process.join()
        return self._output.read_text() if self._output.exists() else "", None


@contextmanager
def forked_workers() -> Iterator[None]:
    """Worker processes of commands in this process are forked in the same way; otherwise they are as they were."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing, "get_context", lambda method=None: context)
        yield


def run(arguments: list[str], makes_report: bool, output: Path) -> None:
    """In the new process: the command line as `python -m benchmark` runs it."""
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(handle, stream)
    if not makes_report:
        pytest.MonkeyPatch().setattr("benchmark.cli.studies.make_report", lambda *_: None)
    sys.exit(main(arguments))
