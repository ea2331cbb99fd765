"""Detectors from files that exit, crash, loop or lie: each is a failed row or a sentence, and the others are scored."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from benchmark.cli.command_line import main
from benchmark.disk import ResultsFolder
from benchmark.disk.tables import read_table
from tests.conftest import score_bytes
from tests.test_interruptions import Quick

FILE = """
import ctypes, os, signal, sys, time
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from benchmark.record import TRAIN_LOGITS
from detectors.base import Detector

class Unpicklable(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")

class Silent(BaseException):
    def __str__(self):
        raise ValueError

@dataclass(frozen=True)
class Mine(Detector):
    name: ClassVar[str] = "mine"
    needs = (TRAIN_LOGITS,)
    def score(self, record):
        BODY

@dataclass(frozen=True)
class Other(Detector):
    name: ClassVar[str] = "other"
    needs = (TRAIN_LOGITS,)
    def score(self, record):
        OTHER
"""
LIMIT = "10"  # seconds to score: long enough for whatever does not loop, also on a busy machine
GOOD = "return np.arange(len(record.given_labels)).astype(float)"


def scored(quick: Quick, results: Path, body: str, *options: str, other: str = GOOD) -> tuple[int, pd.DataFrame]:
    """The exit code of a run of a detector with this body and another one after it, and the rows by detector."""
    file = results.parent / "own.py"
    file.write_text(FILE.replace("BODY", body).replace("OTHER", other))
    own = ("--detector", f"{file}:Mine", "--detector", f"{file}:Other")
    code = main([*quick, *own, *options, "--results", str(results)])
    return code, pd.read_csv(results / "metrics.csv").query("line_up == 'original'").set_index("detector")


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize(
    ("body", "reason", "workers"),
    [
        ("sys.exit(0)", "SystemExit: 0", "1"),
        pytest.param("sys.exit(0)", "SystemExit: 0", "2", marks=pytest.mark.long),
        pytest.param("raise KeyboardInterrupt", "KeyboardInterrupt", "1", marks=pytest.mark.long),
        pytest.param("raise Unpicklable(1, 2)", "Unpicklable: 1 and 2", "1", marks=pytest.mark.long),
        pytest.param("raise Silent", "Silent", "1", marks=pytest.mark.long),
        pytest.param("os._exit(3)", "its worker process ended (exit code 3) while it was", "1", marks=pytest.mark.long),
        pytest.param("os._exit(0)", "its worker process ended (exit code 0) while it was", "2", marks=pytest.mark.long),
        pytest.param("ctypes.string_at(0)", "by signal 11 (SIGSEGV) while it was scored", "1", marks=pytest.mark.long),
        pytest.param(
            "os.kill(os.getpid(), 9)",
            "by signal 9 (SIGKILL), perhaps because memory ran out, while it was scored",
            "2",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_detector_that_ends_its_process_is_a_failed_row_and_the_others_are_scored(
    quick: Quick, copied: Path, body: str, reason: str, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = score_bytes(copied)
    code, rows = scored(quick, copied, body, "--workers", workers)
    assert code == 1
    assert rows.loc["mine", "status"] == "failed"
    assert reason in rows.loc["mine", "reason"]
    assert (rows.drop(index="mine")["status"] == "ok").all()
    assert "other" in rows.index
    assert score_bytes(copied).items() >= before.items()
    assert "failed: mine on " in " ".join(capsys.readouterr().out.split())


@pytest.mark.long
@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("loop", ["while True: pass", "import re; re.match('(a+)+$', 'a' * 40 + 'b')"])
def test_a_detector_that_loops_fails_at_the_limit_and_the_others_are_scored(
    quick: Quick, copied: Path, loop: str, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that never lets go of the interpreter, as a regular expression does."""
    code, rows = scored(quick, copied, loop, "--score-limit", LIMIT, "--workers", workers)
    assert code == 1
    assert rows.loc["mine", "reason"] == "it took longer than 10 s to score (--score-limit)"
    assert (rows.drop(index="mine")["status"] == "ok").all()
    said = " ".join(capsys.readouterr().out.split())
    (log,) = (copied / "logs").iterdir()
    assert f"(--score-limit) (details: {log})" in said
    assert "own.py" in log.read_text(), "where it was"
    assert scored(quick, copied, GOOD, "--score-limit", LIMIT)[0] == 0
    assert not list((copied / "logs").iterdir())
    assert not list((copied / "running").iterdir())


@pytest.mark.long
@pytest.mark.usefixtures("without_report")
def test_two_detectors_that_end_their_process_are_two_failed_rows(
    quick: Quick, quick_run: Path, tmp_path: Path
) -> None:
    """In the process that trained, too, and with --force: nothing is trained twice."""
    results = tmp_path / "results"
    code, rows = scored(quick, results, "os._exit(3)", "--force", other="os._exit(4)")
    assert code == 1
    assert "exit code 3" in rows.loc["mine", "reason"]
    assert "exit code 4" in rows.loc["other", "reason"]
    assert (rows.drop(index=["mine", "other"])["status"] == "ok").all()
    assert score_bytes(results) == score_bytes(quick_run)


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize(
    "problem",
    [
        "record[TRAIN_LOGITS][5]",
        pytest.param("if record.epochs < 6: sys.exit(0)", marks=pytest.mark.long),
        pytest.param("if record.epochs < 6: raise Silent", marks=pytest.mark.long),
        pytest.param("if record.epochs < 6: raise KeyboardInterrupt", marks=pytest.mark.long),
        pytest.param("if record.epochs < 6: return np.full(400, np.nan)", marks=pytest.mark.long),
        pytest.param("if record.epochs < 6: return np.zeros(3)", marks=pytest.mark.long),
    ],
)
def test_a_detector_that_needs_some_epochs_has_no_auroc_before_them(quick: Quick, copied: Path, problem: str) -> None:
    """Its scores of whole runs are judged all the same."""
    code, rows = scored(quick, copied, f"{problem}\n        {GOOD}", "--workers", "1")
    assert code == 0
    assert rows.loc["mine", "status"] == "ok"
    points = read_table(ResultsFolder(copied), "auc_by_epochs").query("detector == 'mine' and line_up == 'original'")
    assert points["epochs_read"].tolist() == [6, 7, 8, 9, 10, 12]
    assert not list((copied / "running").iterdir())
    before = by_epochs_files(copied)
    assert scored(quick, copied, f"{problem}\n        {GOOD}", "--workers", "1")[0] == 0
    assert by_epochs_files(copied) == before, "computed once"


def by_epochs_files(results: Path) -> dict[str, int]:
    """When each was written."""
    return {str(file): file.stat().st_mtime_ns for file in results.glob("scores/*/by_epochs/*.json")}


@pytest.mark.long
@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("if record.epochs < 6: os._exit(0)", "its worker process ended (exit code 0) while it was scored"),
        ("if record.epochs < 6: ctypes.string_at(0)", "was ended by signal 11 (SIGSEGV) while it was scored"),
        ("while record.epochs < 6: pass", "it took longer than 10 s to score (--score-limit)"),
    ],
)
def test_a_detector_that_ends_its_process_after_some_epochs_has_no_auroc_by_epochs_and_is_named(
    quick: Quick, copied: Path, problem: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its scores of whole runs are judged all the same, and so are all others."""
    before = read_table(ResultsFolder(copied), "auc_by_epochs")
    body = f"{problem}\n        {GOOD}"
    code, rows = scored(quick, copied, body, "--workers", "1", "--score-limit", LIMIT)
    assert code == 1
    assert (rows["status"] == "ok").all()
    points = read_table(ResultsFolder(copied), "auc_by_epochs")
    assert set(points["detector"]) == {"other", *before["detector"]}
    assert points.query("detector != 'other'").to_csv(index=False) == before.to_csv(index=False)
    said = " ".join(capsys.readouterr().out.split())
    assert "failed: mine by epochs on " in said
    assert reason in said
    assert not list((copied / "running").iterdir())


@pytest.mark.long
def test_a_detector_that_ends_the_process_which_measures_it_is_named(
    quick: Quick, fails: Callable[..., str], tmp_path: Path
) -> None:
    (file := tmp_path / "own.py").write_text(FILE.replace("BODY", "os._exit(0)").replace("OTHER", GOOD))
    command = ("profile", *quick[1 : quick.index("--seed")], "--path", "fast", "--samples", "32", "--epochs", "2")
    own = ("--detector", f"{file}:Other", "--detector", f"{file}:Mine")
    assert "ended while mine was scored" in fails(*command, *own, "--results", tmp_path / "results")


HEAD = """
import sys
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from benchmark.record import TRAIN_LOGITS, Signal
from detectors.base import Detector
"""
MINE = """
@dataclass(frozen=True)
class Mine(Detector):
    name: ClassVar[str] = "mine"
    {needs}
    {score}
"""
LABEL = "label = property(lambda self: {})"
USED = "def epochs_used(self, epochs): return {}"
NEEDS, SCORE = "needs = (TRAIN_LOGITS,)", "def score(self, record): return np.zeros(len(record.given_labels))"
PROPERTY = "@property\n    def needs(self): {}"


def mine(needs: str = NEEDS, score: str = SCORE, more: str = "pass") -> str:
    return HEAD + MINE.format(needs=needs, score=f"{score}\n    {more}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (mine(needs="needs = 'train_logits'"), "`needs` is 'train_logits'; expected a tuple of signals, such as"),
        (mine(needs="needs = [TRAIN_LOGITS]"), "expected a tuple of signals"),
        (mine(needs="needs = ('train_logits',)"), "expected a tuple of signals"),
        (mine(needs="needs = (Signal,)"), "expected a tuple of signals"),
        (mine(needs="needs = None"), "expected a tuple of signals"),
        (mine(needs="def needs(self): return (TRAIN_LOGITS,)"), "expected a tuple of signals"),
        (mine(needs=PROPERTY.format("raise KeyError('x')")), "KeyError: 'x'"),
        (mine(needs=PROPERTY.format("sys.exit(0)")), "SystemExit: 0"),
        (mine(needs="pass"), "lacks needs"),
        (mine(score="pass"), "lacks score"),
        (mine(score="score = 3"), "`score` is 3; expected a method that takes a record"),
        (mine(score=f"{SCORE}\n    training = 'standard'"), "`training` is 'standard'; expected a recipe"),
        (mine(score=f"{SCORE}\n    def __post_init__(self): raise ValueError('no')"), "ValueError: no"),
        (mine(score=f"{SCORE}\n    def __post_init__(self): sys.exit(0)"), "SystemExit: 0"),
        (mine(score=f"{SCORE}\n    def __eq__(self, other): return 1 / 0"), "ZeroDivisionError"),
        (mine(more=LABEL.format("None")), "`label` is None; expected text"),
        (mine(more=LABEL.format("1 / 0")), "ZeroDivisionError"),
        (mine(more=LABEL.format("''")), "'' cannot be the name of a detector"),
        (mine(more=LABEL.format("'a|b'")), "'a|b' cannot be the name of a detector"),
        (mine(more=USED.format("'x'")), "`epochs_used_in` is 'x' of 70 epochs; expected a whole number from 0 to 70"),
        (mine(more=USED.format("2.5")), "expected a whole number"),
        (mine(more=USED.format("True")), "expected a whole number"),
        (mine(more=USED.format("epochs + 1")), "`epochs_used_in` is 71 of 70 epochs"),
        (mine(more=USED.format("-1")), "expected a whole number"),
        (mine(more=USED.format("0 // (epochs - 30)")), "ZeroDivisionError"),
        (mine(more="epochs_used = 3"), "'int' object is not callable"),
        (mine(more="def epochs_used_in(self, training): sys.exit(0)"), "SystemExit: 0"),
        (f"{mine()}\ndef (:", "own.py cannot be imported (SyntaxError"),
        (f"import torch.nosuch\n{mine()}", "own.py cannot be imported (ModuleNotFoundError"),
        (f"{mine()}\nsys.exit(0)", "own.py cannot be imported (SystemExit: 0)"),
        (f"{mine()}\nclass Odd(BaseException): pass\nraise Odd('x')", "own.py cannot be imported (Odd: x)"),
        (mine(needs=PROPERTY.format("raise GeneratorExit('x')")), "cannot be used: GeneratorExit: x"),
        (f"{mine()}\nimport sys; sys.exit('bye')", "own.py cannot be imported (SystemExit: bye)"),
        ("\0", "own.py cannot be imported (SyntaxError"),
        ("\ud800".encode("utf-8", "surrogatepass"), "own.py cannot be imported (SyntaxError"),
    ],
)
@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_file_whose_detector_cannot_be_used_is_told_in_a_sentence_before_anything_is_trained(
    text: str | bytes, says: str, command: str, fails: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    assert says in fails(command, "--detector", f"{file}:Mine", "--results", tmp_path / "results")
    assert not (tmp_path / "results").exists()
