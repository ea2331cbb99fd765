"""Accidents: processes that die, disks that fill up or lose power, files that are damaged."""

import errno
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.faults.campaign import REAL_COMMANDS, Campaign, Fault
from tests.faults.processes import forked_workers
from tests.test_interruptions import epoch_of_any_run, start, wait_for

EPOCHS = 12


class PowerCut(BaseException):
    """Nothing that we wrote can catch it."""


def kill_worker(campaign: Campaign) -> bool:
    """The command goes on by itself."""
    epoch, ended = campaign.chance.randint(0, EPOCHS - 1), Event()
    with ThreadPoolExecutor(1) as thread:
        if campaign.chance.random() < REAL_COMMANDS:
            dask = campaign.chance.choice(((), ("--dask", "local")))
            process = start(campaign.quick, campaign.results, "--workers", "2", *dask)
            struck = thread.submit(_kill_one, campaign.results, epoch, ended)
            said = process.communicate()[0]
            code: int | None = process.returncode
        else:
            struck = thread.submit(_kill_one, campaign.results, epoch, ended)
            with forked_workers():
                code, said = campaign.run([*campaign.quick, "--workers", "2", "--results", str(campaign.results)])
        ended.set()
    assert code == 0, f"it should have gone on by itself: {said}"
    return struck.result()


def _kill_one(results: Path, epoch: int, ended: Event) -> bool:
    """A worker whose run is so far; whether there was one."""
    running = results / "running"
    wait_for(lambda: ended.is_set() or (running.exists() and list(running.glob("*.json"))), "a run")
    wait_for(lambda: ended.is_set() or epoch_of_any_run(results) >= epoch, "an epoch")
    for path in running.glob("*.json"):
        with suppress(OSError, ValueError, KeyError):
            process = json.loads(path.read_text())["process"]
            if process != os.getpid():
                os.kill(process, signal.SIGKILL)
                return True
    return False


def end_main(number: int) -> Fault:
    def fault(campaign: Campaign) -> bool:
        process = campaign.start(campaign.chance.choice("1112"))
        wait_for(lambda: any(path.is_dir() for path in campaign.results.iterdir()), "a folder in the results folder")
        epoch = campaign.chance.randint(0, EPOCHS)
        wait_for(lambda: epoch_of_any_run(campaign.results) >= epoch or process.poll() is not None, "an epoch")
        time.sleep(campaign.chance.uniform(0, 0.2))
        process.send_signal(number)
        process.communicate()
        return process.returncode in (-number, 128 + number)

    return fault


def two_writers(campaign: Campaign) -> bool:
    first = campaign.start("1")
    time.sleep(campaign.chance.uniform(0, 2))
    second = campaign.start("1")
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
    before = {file.stat().st_ino: file.stat().st_mtime_ns for file in campaign.results.rglob("*")}
    with flushed() as on_disk, failing(places, campaign.chance.randint(1, 60), PowerCut) as failed, suppress(PowerCut):
        campaign.command()
    for file in sorted(campaign.results.rglob("*")) if failed else ():
        is_old = before.get(file.stat().st_ino) == file.stat().st_mtime_ns
        if file.is_file() and file.stat().st_ino not in on_disk and not is_old:
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


ACCIDENTS: dict[str, Fault] = {
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
