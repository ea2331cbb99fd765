"""Killed, run twice at once, or out of disk: nothing lost, nothing torn, the same bytes in the end."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.storage import whole_folder
from tests.conftest import QUICK, score_bytes


def command(results: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "benchmark", "run", *QUICK, "--results", str(results), *options]


def start(results: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(results, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_at_random_moments_the_scores_are_the_same_bytes(quick_run: Path, tmp_path: Path, workers: str) -> None:
    results = tmp_path / "results"
    moments = random.Random(int(workers))
    for _ in range(5):
        process = start(results, "--workers", workers)
        try:
            process.wait(moments.uniform(2.0, 14.0))
        except subprocess.TimeoutExpired:
            process.kill()  # the main process alone: its workers must notice
            process.wait()
    assert subprocess.run(command(results, "--workers", workers), capture_output=True).returncode == 0
    assert score_bytes(results) == score_bytes(quick_run)
    assert not list((results / "runs").glob(".partial*")), "what a killed run left is swept away"
    assert (results / "metrics.csv").read_text().count("\n") == (quick_run / "metrics.csv").read_text().count("\n")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    process = start(tmp_path / "results", "--workers", "2", "--epochs", "500")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "results").glob("running/*.json")):
        assert time.monotonic() < deadline, "training never began"
        time.sleep(0.2)
    process.kill()
    process.wait()
    while _members_of(process.pid):
        assert time.monotonic() < deadline + 30, "workers outlived their parent"
        time.sleep(0.2)


def _members_of(session: int) -> list[str]:
    """Processes of a session that still run (a zombie does not)."""
    listed = subprocess.run(["ps", "-o", "stat=", "-s", str(session)], capture_output=True, text=True).stdout.split()
    return [state for state in listed if not state.startswith("Z")]


def test_two_commands_at_once_share_the_work(quick_run: Path, tmp_path: Path) -> None:
    both = [start(tmp_path / "results") for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    trained = sum(int(text.split(" of 2 runs trained")[0].split()[-1]) for text in said)
    assert trained == 2, "nothing is trained twice"
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)
    assert sorted((tmp_path / "results" / "metrics.csv").read_text().splitlines()[0].split(",")) == sorted(
        (quick_run / "metrics.csv").read_text().splitlines()[0].split(",")
    )


def test_ctrl_c_ends_soon_and_says_what_is_kept(tmp_path: Path) -> None:
    process = start(tmp_path / "results", "--workers", "2", "--epochs", "500")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "results").glob("running/*.json")):
        assert time.monotonic() < deadline, "training never began"
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    assert "the same command goes on from there" in said


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting a small disk takes root")
def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_torn(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(tmp_path)]).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        ended = subprocess.run(command(tmp_path / "results", "--workers", "1"), capture_output=True, text=True)
        assert ended.returncode != 0
        assert "No space left on device" in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stdout + ended.stderr
        assert not list((tmp_path / "results").glob("runs/*-standard-*")), "no record that is not whole"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    def fill_half() -> None:
        with whole_folder(tmp_path / "folder") as folder:
            (folder / "half").write_text("…")
            raise KeyError

    with pytest.raises(KeyError):
        fill_half()
    assert not list(tmp_path.iterdir())
    for text in ("first", "second"):
        with whole_folder(tmp_path / "folder") as folder:
            (folder / "file").write_text(text)
        assert (tmp_path / "folder" / "file").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
