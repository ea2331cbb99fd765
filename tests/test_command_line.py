"""The command line answers at once, and every command leads somewhere."""

import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmark.cli.command_line import command_line, main
from benchmark.training import TrainingSettings
from detectors.own_files import load_detector
from detectors.testing import CHECKS

HEAVY = {"torch", "timm", "medmnist", "pandas", "sklearn", "scipy.stats", "scipy.optimize", "matplotlib", "cleanlab"}


def commands() -> Iterator[tuple[str, str]]:
    (subparsers,) = command_line()._subparsers._group_actions  # type: ignore[union-attr]
    for name, parser in subparsers.choices.items():  # type: ignore[union-attr]
        yield name, parser.get_default("command")


@pytest.mark.parametrize(("name", "function"), list(commands()))
def test_every_command_has_its_function(name: str, function: str) -> None:
    assert callable(pkgutil.resolve_name(f"benchmark.cli.{function}"))


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["list"]])
def test_help_and_list_import_nothing_heavy(arguments: list[str]) -> None:
    script = f"""
import sys
from benchmark.cli import main
try:
    code = main({arguments})
except SystemExit as stop:
    code = stop.code
print("imported:", sorted({HEAVY} & set(sys.modules)))
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("imported: []\n"), done.stdout[-200:]


def streams(encoding: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, io.BytesIO]:
    written = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, buffer in written.items():
        monkeypatch.setattr(sys, name, io.TextIOWrapper(buffer, encoding=encoding, write_through=True))
    return written


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_without_a_character_gets_a_plain_one(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = streams(encoding, monkeypatch)
    assert main(["list"]) == 0
    assert b"studies" in written["stdout"].getvalue()
    (tmp_path / "failed").mkdir()
    reason = "Größe – 3 × “4” … → ≤ 5 \N{SNOWMAN} \udcff"
    (tmp_path / "failed" / "x.json").write_text(json.dumps({"reason": reason, "attempts": 1}))
    assert main(["status", "--results", str(tmp_path)]) == 0
    assert main(["run", "nö–\udcff"]) == 1
    said = {name: buffer.getvalue().decode(encoding) for name, buffer in written.items()}
    shown = {
        "ascii": ('Grosse - 3 x "4" ... -> <= 5 ? ?', "no-?"),
        "latin-1": ('Größe - 3 × "4" ... -> <= 5 ? ?', "nö-?"),
        "utf-8": ("Größe – 3 × “4” … → ≤ 5 \N{SNOWMAN} ?", "nö–?"),
    }
    assert shown[encoding][0] in said["stdout"]
    assert f"There is no study called '{shown[encoding][1]}'" in said["stderr"]


@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["status", "--results", "nowhere"]])
@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_terminals_that_are_not_utf_8(arguments: list[str], variables: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmark", *arguments]
    where = {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | where | variables, capture_output=True)
    assert b"Traceback" not in done.stderr
    assert done.stdout.isascii()
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("command", ["list | true", "list | head -1", "--help | true", "nothing 2>&1 >&- | true"])
def test_output_that_nobody_reads_ends_quietly(command: str) -> None:
    command = f"{sys.executable} -m benchmark {command}"
    done = subprocess.run(["bash", "-c", command], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.stderr == ""


def test_output_that_is_closed_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["list"]) == 0
    assert main(["run", "nothing"]) == 1
    assert main(["features", "list", "--results", str(tmp_path)]) == 0


def test_windows_is_told_what_to_use() -> None:
    """Simulated by the module that it does not have."""
    script = "import sys; sys.modules['resource'] = None; import benchmark.cli"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: LiNC-Bench runs on Linux and macOS; on Windows, use it in WSL.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        *(("run", "--dry-run", option) for option in ("--name", "--backbone", "--noise", "--dask")),
        *((command, "--backbone") for command in ("profile", "try-audit")),
        ("audit", "images", "--backbone"),
    ],
)
def test_names_that_are_empty(arguments: tuple[str, ...], fails: Callable[..., str], tmp_path: Path) -> None:
    """They would be ignored."""
    place = "--out" if "audit" in arguments else "--results"
    for empty in ("", " "):
        assert f"{arguments[-1]} is empty" in fails(*arguments, empty, place, tmp_path / "results")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["run", "profile", "report", "verify"])
def test_an_empty_study_is_not_the_default(command: str, fails: Callable[..., str], tmp_path: Path) -> None:
    """Also where there is nothing but costs to report."""
    shutil.copy(Path(__file__).parents[1] / "results" / "overhead.csv", tmp_path)
    assert "There is no study called ''" in fails(command, "", "--results", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["overhead.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["run", option, "PATH"] for option in ("--dataset", "--weights", "--data-root", "--results")),
        ["run", "--dataset", "digits=PATH"],
        ["run", "--detector", "PATH.py:Mine"],
        ["audit", "PATH"],
        ["audit", "images", "--out", "PATH"],
        ["apply-review", "PATH", "decisions.csv"],
        ["apply-review", "audit.csv", "PATH"],
        ["try-audit", "PATH"],
        ["report", "--results", "PATH"],
    ],
    ids=" ".join,
)
def test_paths_that_are_empty_or_of_an_unknown_user(
    arguments: list[str], fails: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, says in (("~nosuchuser/x", "a user that this machine does not know"), ("", "A path is empty"), (" ", "")):
        if path.strip() or "PATH.py:Mine" not in arguments:
            assert says in fails(*(argument.replace("PATH", path) for argument in arguments))
    assert not list(tmp_path.iterdir())


def test_a_home_folder_is_known_in_every_path(
    fails: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"{tmp_path / 'none'} does not exist" in fails("audit", "~/none")
    assert f"There is no results folder {tmp_path / 'none'}" in fails("doctor", "--results", "~/none")


def test_a_detector_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]) -> None:
    assert main(["check", "AUM"]) == 0
    assert capsys.readouterr().out == f"AUM passes all {len(CHECKS)} checks.\n"
    own = tmp_path / "own.py"
    text = (
        "from dataclasses import dataclass\nfrom benchmark.record import TRAIN_LOGITS\nfrom detectors import Detector\n"
    )
    text += "@dataclass(frozen=True)\nclass Own(Detector):\n    name, needs = 'own', (TRAIN_LOGITS,)\n"
    own.write_text(text + "    def score(self, record):\n        return record.given_labels\n")
    assert "Own fails" in fails("check", f"{own}:Own")
    assert "did you mean" in fails("check", "AUMM").lower()


LATE = """
from dataclasses import dataclass
from benchmark.record import TRAIN_SUMMARY
from detectors import Detector

@dataclass(frozen=True)
class Late(Detector):
    name, needs = "{name}", (TRAIN_SUMMARY,)
    first_epoch: int = 1

    def score(self, record):
        return record.map_samples(lambda labels, summary: summary["loss"][self.first_epoch - 1:].mean(0), TRAIN_SUMMARY)
"""


def test_fields_of_an_own_detector_are_set_in_brackets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]
) -> None:
    own, known = tmp_path / "own.py", tmp_path / "known.py"
    own.write_text(LATE.format(name="late"))
    known.write_text(LATE.format(name="AUM"))
    assert main(["check", f"{own}:Late"]) == 0
    assert capsys.readouterr().out == f"late passes all {len(CHECKS)} checks.\n"
    assert load_detector(f"{own}:Late(first_epoch=3)", TrainingSettings()).label == "late (first_epoch=3)"
    said = fails("check", f"{own}:Late(first_epoch=30)")
    assert "on a record of 6 epochs" in said
    assert "cope with short runs" in said
    (copy := tmp_path / "own (1).py").write_text(own.read_text())
    assert load_detector(f"{copy}:Late", TrainingSettings()).label == "late"
    assert "unexpected keyword argument 'last'" in fails("check", f"{own}:Late(last=3)")
    for wrong in ("Late(3)", "Late(first_epoch=exit())", "Late(first_epoch=", "Late(first_epoch=1))"):
        assert "expected path/to/file.py:Class(field=value, …)" in fails("check", f"{own}:{wrong}")
    assert "The suite has a detector called 'AUM'; give yours another `name`" in fails("check", f"{known}:Late")
