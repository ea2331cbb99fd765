"""Faults of many kinds, each at a moment drawn at random, and what must hold after every one of them."""

import errno
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmark.cli.command_line import main
from benchmark.disk import files as storage
from benchmark.disk.schema import STUDY_TABLES
from tests.conftest import score_bytes
from tests.test_interruptions import Quick, epoch_of_any_run, start, wait_for

EPOCHS = 12


class PowerCut(BaseException):
    """Nothing that we wrote can catch it."""


@dataclass
class Campaign:
    """A results folder that faults happen to; `whole` is the same study without any."""

    quick: Quick
    whole: Path
    results: Path
    chance: random.Random
    injected: dict[str, int] = field(default_factory=dict)

    def inject(self, kind: str) -> None:
        """One fault, then the same command, then everything is compared. A fault that came too late comes again."""
        struck = False
        while not struck:
            shutil.rmtree(self.results, ignore_errors=True)
            struck = KINDS[kind](self)
        self.injected[kind] = self.injected.get(kind, 0) + 1
        finished = self.finished_runs()
        assert self.command() == 0, f"after {kind}"
        self.compare(kind)
        assert finished.items() <= self.finished_runs().items(), f"after {kind} a whole record was trained again"

    def command(self) -> int:
        return main([*self.quick, "--workers", "1", "--results", str(self.results)])

    def compare(self, kind: str) -> None:
        """Zero lost, zero wrong: scores, records and tables have the bytes that they have without faults."""
        assert score_bytes(self.results) == score_bytes(self.whole), f"scores after {kind}"
        assert record_bytes(self.results) == record_bytes(self.whole), f"records after {kind}"
        for table in (table.name for table in STUDY_TABLES):
            assert table_text(self.results, table) == table_text(self.whole, table), f"{table}.csv after {kind}"
        leftovers = [path for part in ("runs", "features") for path in (self.results / part).glob(".*")]
        assert not leftovers, f"left behind after {kind}: {leftovers}"

    def finished_runs(self) -> dict[str, bytes]:
        """Runs whose record is whole; training one again would change the seconds in it."""
        folders = [path for path in (self.results / "runs").glob("*-t0-*") if not path.name.startswith(".")]
        whole = [path for path in folders if (path / storage.CHECKSUMS).exists() and storage.find_damage(path) is None]
        return {path.name: (path / "record.json").read_bytes() for path in whole}

    def copy_of_whole(self) -> None:
        shutil.copytree(self.whole, self.results)

    def any_file(self) -> Path:
        """Of all that is read again: records, features, scores, labels and answers."""
        parts = ("runs", "features", "scores", "labels", "answers")
        files = [path for part in parts for path in sorted((self.results / part).rglob("*.*")) if path.is_file()]
        return self.chance.choice(files)


def record_bytes(results: Path) -> dict[str, bytes]:
    """Of everything in records but what the clock says."""
    files = [
        file for file in sorted((results / "runs").glob("*/*")) if file.name not in ("record.json", storage.CHECKSUMS)
    ]
    return {str(file.relative_to(results)): file.read_bytes() for file in files}


def table_text(results: Path, name: str) -> str:
    return pd.read_csv(results / f"{name}.csv").drop(columns="seconds", errors="ignore").to_csv()


def kill_worker(campaign: Campaign) -> bool:
    process = start(
        campaign.quick, campaign.results, "--workers", "2", *campaign.chance.choice(((), ("--dask", "local")))
    )
    epoch = campaign.chance.randint(0, EPOCHS - 1)
    running = campaign.results / "running"
    wait_for(lambda: running.exists() and list(running.glob("*.json")), "a run")
    wait_for(lambda: epoch_of_any_run(campaign.results) >= epoch or process.poll() is not None, "an epoch")
    struck = False
    for path in running.glob("*.json"):
        with suppress(OSError, ValueError, KeyError):
            os.kill(json.loads(path.read_text())["process"], signal.SIGKILL)
            struck = True
            break
    said = process.communicate()[0]
    assert process.returncode == 0, f"it should have gone on by itself: {said}"
    return struck


def end_main(number: int) -> Callable[[Campaign], bool]:
    def fault(campaign: Campaign) -> bool:
        process = start(campaign.quick, campaign.results, "--workers", campaign.chance.choice("12"))
        wait_for(lambda: campaign.results.exists(), "a results folder")
        epoch = campaign.chance.randint(0, EPOCHS)
        wait_for(lambda: epoch_of_any_run(campaign.results) >= epoch or process.poll() is not None, "an epoch")
        time.sleep(campaign.chance.uniform(0, 0.2))
        process.send_signal(number)
        process.communicate()
        return process.returncode in (-number, 128 + number)

    return fault


def two_writers(campaign: Campaign) -> bool:
    first = start(campaign.quick, campaign.results, "--workers", "1")
    time.sleep(campaign.chance.uniform(0, 3))
    second = start(campaign.quick, campaign.results, "--workers", "1")
    both_at_work = first.poll() is None
    for process in (first, second):
        said = process.communicate()[0]
        assert process.returncode == 0, said
    return both_at_work


@contextmanager
def failing(names: list[tuple[Any, str]], call: int, error: Callable[[], BaseException]) -> Iterator[list[str]]:
    """From the given call on, each of the named functions fails; what is yielded lists those that did."""
    calls, failed = 0, []
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in names:
            real = getattr(owner, name)

            def fail(*arguments: Any, real: Callable[..., Any] = real, **named: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls >= call:
                    failed.append(real.__name__)
                    raise error()
                return real(*arguments, **named)

            patch.setattr(owner, name, fail)
        yield failed


def full_disk(campaign: Campaign) -> bool:
    """From some moment on every file that is made finds no room."""
    places = [(os, "posix_fallocate"), (os, "fsync")]
    no_room = partial(OSError, errno.ENOSPC, "No space left on device")
    with failing(places, campaign.chance.randint(1, 40), no_room) as failed:
        code = campaign.command()
    assert bool(code) == bool(failed), "who finds no room is told"
    return bool(failed)


def power_cut(campaign: Campaign) -> bool:
    """Between writing something and giving it its name; nothing after that is carried out, clean-up included.

    What was not flushed to the disk before is only there in part.
    """
    places = [(Path, "rename"), (Path, "replace"), (Path, "unlink"), (shutil, "rmtree")]
    with flushed() as on_disk, failing(places, campaign.chance.randint(1, 60), PowerCut) as failed, suppress(PowerCut):
        campaign.command()
    for file in sorted(campaign.results.rglob("*")) if failed else ():
        if file.is_file() and file.stat().st_ino not in on_disk:
            os.truncate(file, campaign.chance.randint(0, file.stat().st_size))
    return bool(failed)


@contextmanager
def flushed() -> Iterator[set[int]]:
    """Files that the system was told to write to its disk, by their numbers."""
    found: set[int] = set()
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        found.add(os.fstat(handle).st_ino)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield found


def truncated(campaign: Campaign) -> bool:
    campaign.copy_of_whole()
    file = campaign.any_file()
    content = file.read_bytes()
    file.write_bytes(content[: campaign.chance.randrange(max(1, len(content)))])
    return True


def flipped(campaign: Campaign) -> bool:
    campaign.copy_of_whole()
    file = campaign.any_file()
    content = bytearray(file.read_bytes())
    content[campaign.chance.randrange(len(content))] ^= 1 << campaign.chance.randrange(8)
    file.write_bytes(content)
    return True


def deleted(campaign: Campaign) -> bool:
    campaign.copy_of_whole()
    campaign.any_file().unlink()
    return True


KINDS: dict[str, Callable[[Campaign], bool]] = {  # each says whether it struck
    "truncated file": truncated,
    "flipped bit": flipped,
    "full disk": full_disk,
    "power cut between write and rename": power_cut,
    "killed worker": kill_worker,
    "killed main process": end_main(signal.SIGKILL),
    "SIGTERM": end_main(signal.SIGTERM),
    "two writers": two_writers,
    "deleted file": deleted,
}
