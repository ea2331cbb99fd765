"""A whole session of commands as a user types them, watched: nothing is written or removed but where they were told to.

The home folder, the working folder, the data and a folder of precious files are listed before and after every command.
Caches may grow: medmnist's folder of downloads, torch's in the temporary folder, and those of libraries in the home
folder's .cache and .config.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from getpass import getuser
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from tests.snapshot import differences, snapshot
from tests.test_interruptions import Quick

pytestmark = pytest.mark.long
REPOSITORY = Path(__file__).parents[1]
CACHES = ("home/.medmnist", "home/.cache", "home/.config", f"tmp/torchinductor_{getuser()}")
TINY = ("--image-size", "32", "--batch-size", "32", "--epochs", "2", "--seed", "0", "--workers", "1")
SMALL, FAST = ("--image-size", "32"), ("--path", "fast", "--samples", "64", "--rounds", "6")
CHOSEN = ("results", "audit", "trials", "profile", "committed")  # what --results and --out name


@pytest.fixture
def place(quick: Quick) -> Iterator[Path]:
    """Files in every folder, with names that commands write elsewhere; its path is short, as sockets demand."""
    with TemporaryDirectory() as folder:
        yield _furnished(Path(folder), Path(quick[quick.index("--dataset") + 1]))


def _furnished(place: Path, dataset: Path) -> Path:
    for folder in ("home", "cwd", "cwd/results", "cwd/figures/demo", "cwd/audits", "data", "precious", "tmp"):
        (place / folder).mkdir(parents=True, exist_ok=True)
        for name in ("report.json", "roc_curves.svg", "audit.csv", "metrics.csv", "README.md") * (folder != "tmp"):
            (place / folder / name).write_text(f"{name} of {folder}")
    shutil.copy(dataset, place / "data" / "few.npz")
    (place / "committed").mkdir()
    for table in (REPOSITORY / "results").glob("*.csv"):
        shutil.copy(table, place / "committed")
    return place


def command(place: Path, *words: str) -> str:
    """Runs `linc-bench` from a folder that is not the repository's, and demands that it succeeds."""
    own = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "PYTHONPATH": str(REPOSITORY)}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")} | own
    line = [sys.executable, "-m", "benchmark", *words]
    ended = subprocess.run(line, cwd=place / "cwd", env=environment, capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said, said
    assert ended.returncode == 0 or (words[0] == "verify" and "recomputed" in said), said
    return said


def test_nothing_is_written_outside_the_folders_that_commands_are_given(
    place: Path, record_property: Callable[[str, object], None]
) -> None:
    without = [place / name for name in (*CACHES, *CHOSEN)]
    data, results, audit = str(place / "data" / "few.npz"), str(place / "results"), place / "audit"
    decisions = audit / "decisions.csv"
    session: tuple[tuple[str, ...], ...] = (
        ("list",),
        ("run", "--dataset", data, *TINY, "--detector", "AUM", "--dry-run", "--results", results),
        ("run", "--dataset", data, *TINY, "--detector", "AUM", "--detector", "LiNC", "--results", results),
        ("run", "--dataset", data, *TINY, "--detector", "AUM", "--workers", "2", "--force", "--results", results),
        ("report", "--results", results),
        ("status", "--results", results),
        ("doctor", "--results", results),
        ("verify", "demo", "--sample", "1", "--seed", "0", "--workers", "1", "--results", str(place / "committed")),
        ("features", "list", "--results", results),
        ("features", "clean", "--all", "--results", results),
        ("audit", data, *SMALL, "--workers", "1", "--out", str(audit)),
        ("apply-review", str(audit / "audit.csv"), str(decisions), "--out", str(audit / "reviewed.csv")),
        (
            "try-audit",
            data,
            "--trials",
            "1",
            "--rate",
            "0.2",
            *SMALL,
            "--workers",
            "1",
            "--results",
            f"{place / 'trials'}",
        ),
        ("profile", "--dataset", data, *FAST, *TINY[:6], "--detector", "AUM", "--results", f"{place / 'profile'}"),
    )
    before = snapshot(place, without)
    for words in session:
        if words[0] == "apply-review":
            decide(audit / "audit.csv", decisions)
        command(place, *words)
        assert differences(before, snapshot(place, without)) == [], f"linc-bench {' '.join(words)}"
    assert (place / "results" / "report.html").exists()
    assert (audit / "reviewed.csv").exists()
    watched = len(before)
    record_property("told", f"{len(session)} commands, {watched} files and folders watched: nothing outside changed")


def decide(audit_csv: Path, decisions: Path) -> None:
    """As the page exports it: the first sample is kept."""
    from benchmark.audit.apply_review import COLUMNS, audit_digest

    samples = pd.read_csv(audit_csv, dtype=str, keep_default_na=False)
    first = samples.head(1)[["id", "given"]].assign(audit=audit_digest(samples), decision="keep", label="")
    first[list(COLUMNS)].to_csv(decisions, index=False)
