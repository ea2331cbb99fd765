"""Killed, run twice at once, or out of disk: nothing lost, nothing torn, the same bytes in the end."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from benchmark.disk.files import atomic_folder
from benchmark.record.run_record import open_record
from tests.conftest import score_bytes

Quick = tuple[str, ...]


def start(quick: Quick, results: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmark", *quick, "--results", str(results), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=_hear_ctrl_c,
    )


def _hear_ctrl_c() -> None:
    """A shell that runs the tests in its background has them ignore SIGINT, which children would inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(condition: Callable[[], object], what: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.01)


def epoch_of_any_run(results: Path) -> int:
    """How far the furthest of the running units is; 0 if none runs."""
    epochs = [0]
    for path in results.glob("running/*.json"):
        with suppress(OSError, ValueError):
            epochs.append(json.loads(path.read_text())["epoch"])
    return max(epochs)


MOMENTS: dict[str, Callable[[Path], object]] = {
    "while features are computed": lambda results: list(results.glob("features/.partial-*/features.npy")),
    "in the warm-up": lambda results: epoch_of_any_run(results) >= 2,
    "in the soft correction": lambda results: epoch_of_any_run(results) >= 7,
    "after the relabelling": lambda results: epoch_of_any_run(results) >= 11,
    "when a first record is there": lambda results: list(results.glob("runs/*/record.json")),
}


@pytest.mark.long
def test_killed_at_five_moments_the_scores_are_the_same_bytes(quick: Quick, quick_run: Path, tmp_path: Path) -> None:
    """At random moments, and with one process: tests/faults."""
    results, chance, workers = tmp_path / "results", random.Random(0), "2"
    for moment, has_come in MOMENTS.items():
        shutil.rmtree(results / "running", ignore_errors=True)  # what the last victim said of itself
        process = start(quick, results, "--workers", workers)
        wait_for(lambda has_come=has_come: has_come(results), moment)
        time.sleep(chance.uniform(0, 0.05))
        assert process.poll() is None, f"it ended before it could be killed {moment}"
        process.kill()  # the main process alone: its workers must notice
        process.wait()
    process = start(quick, results, "--workers", workers)
    said = process.communicate()[0]
    assert process.returncode == 0, said
    assert score_bytes(results) == score_bytes(quick_run)
    assert not list((results / "runs").glob(".partial*")), "what a killed run left is swept away"
    assert without_seconds(results) == without_seconds(quick_run)


def without_seconds(results: Path) -> str:
    return pd.read_csv(results / "metrics.csv").drop(columns="seconds").to_csv()


@pytest.mark.long
def test_workers_end_when_their_parent_is_killed(quick: Quick, tmp_path: Path) -> None:
    process = start(quick, tmp_path / "results", "--workers", "2", "--epochs", "5000")
    wait_for(lambda: epoch_of_any_run(tmp_path / "results"), "training")
    process.kill()
    process.wait()
    wait_for(lambda: not _members_of(process.pid), "the workers' end")


def _members_of(session: int) -> list[str]:
    """Processes of a session that still run (a zombie does not)."""
    listed = subprocess.run(["ps", "-o", "stat=", "-s", str(session)], capture_output=True, text=True).stdout.split()
    return [state for state in listed if not state.startswith("Z")]


@pytest.mark.long
def test_two_commands_at_once_share_the_work(quick: Quick, quick_run: Path, tmp_path: Path) -> None:
    both = [start(quick, tmp_path / "results") for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    trained = sum(int(text.split(" of 2 runs trained")[0].split()[-1]) for text in said)
    assert trained == 2, "nothing is trained twice"
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)
    assert without_seconds(tmp_path / "results") == without_seconds(quick_run)


@pytest.mark.long
def test_ctrl_c_ends_soon_and_says_what_is_kept(quick: Quick, tmp_path: Path) -> None:
    process = start(quick, tmp_path / "results", "--workers", "2", "--epochs", "5000")
    wait_for(lambda: epoch_of_any_run(tmp_path / "results"), "training")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    try:
        said = process.communicate(timeout=60)[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # if it did not hear, nobody else should
    assert process.returncode == 130
    assert "rerun the same command to continue" in said


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk takes root")
@pytest.mark.parametrize("kilobytes", [100, 400])
def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_torn(quick: Quick, tmp_path: Path, kilobytes: int) -> None:
    """With the smaller disk the features do not fit, with the larger one the records do not."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(tmp_path)]).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        process = start(quick, tmp_path / "results", "--workers", "1")
        said = process.communicate()[0]
        assert process.returncode == 1
        assert ("and the disk has" if kilobytes == 100 else "No space left on device") in said
        assert "Traceback" not in said
        for folder in (tmp_path / "results").glob("runs/*"):
            open_record(folder)  # LiNC's small record may fit, and is whole then
        assert not list((tmp_path / "results").glob("runs/*-standard-*"))
        assert bool(list((tmp_path / "results").glob("features/few*"))) is (kilobytes == 400)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    def fill_half() -> None:
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "half").write_text("…")
            raise KeyError

    with pytest.raises(KeyError):
        fill_half()
    assert not list(tmp_path.iterdir())
    for text in ("first", "second"):
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "file").write_text(text)
        assert (tmp_path / "folder" / "file").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
