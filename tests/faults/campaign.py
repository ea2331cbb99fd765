"""A campaign of faults, each at a moment drawn at random, and what must hold after every one of them."""

import io
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest

from benchmark.cli.command_line import main
from benchmark.disk import files as storage
from benchmark.disk.manifest import Manifest
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import STUDY_TABLES, TABLES
from benchmark.display.canvas import Drawing
from tests.conftest import score_bytes
from tests.faults.processes import Forked
from tests.snapshot import snapshot
from tests.test_interruptions import Quick, start

ANOTHER = "another"  # a study whose rows are in the tables from the beginning, and stay there
REPORTS = 0.2  # share of the faults whose commands make the report too, which takes as long as a run
REAL_COMMANDS = 0.2  # share of processes that are started as a user does, imports included
PRECIOUS = ("thesis.md", "data.csv", "report.html", "report.json", "roc_curves.svg", "roc_curves.pdf", "a/b.png")


@dataclass
class Campaign:
    """A results folder that faults happen to, among files that are nobody's business; `quick_run` had no faults."""

    quick: Quick
    quick_run: Path
    home: Path
    chance: random.Random
    injected: dict[str, int] = field(default_factory=dict)
    makes_report: bool = False

    def inject(self, kind: str, fault: "Fault") -> None:
        """One fault, then the same command, then everything is compared. A fault that came too late comes again."""
        self.makes_report = self.chance.random() < REPORTS
        struck = False
        while not struck:
            self.begin()
            struck = fault(self)
        self.injected[kind] = self.injected.get(kind, 0) + 1
        finished, outside = self.finished_runs(), self.outside()
        assert self.command() == 0, f"after {kind}"
        self.compare(kind)
        assert finished.items() <= self.finished_runs().items(), f"after {kind} a whole record was trained again"
        assert self.outside() == outside, f"after {kind} files outside changed"

    @property
    def results(self) -> Path:
        return self.home / "work" / "results"

    @cached_property
    def whole(self) -> Path:
        """The same study without any fault, in a folder that has rows of another study and of other data."""
        whole = Path(shutil.copytree(self.quick_run, self.home / "whole"))
        for table in whole.glob("*.csv"):
            rows = read_text(table)
            key = named_by(rows)
            also = rows.assign(**{key: "a-" + rows[key]})
            if "study" in rows:
                also["study"] = ANOTHER
            merged = pd.concat([also, rows]).sort_values(
                [name for name in TABLES[table.stem].order if name in rows], kind="stable"
            )
            merged.to_csv(table, index=False)
        return whole

    def begin(self) -> None:
        """A results folder with the other study's rows and nothing else, beside files that no command may touch."""
        for folder in (self.home / "work", self.home / "precious", self.home / "elsewhere"):
            if folder.is_symlink():
                folder.unlink()
            shutil.rmtree(folder, ignore_errors=True)
            for name in PRECIOUS:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(f"{name} of {folder.name}")
        self.results.mkdir()
        for table in self.whole.glob("*.csv"):
            rows = read_text(table)
            is_other = rows["study"] == ANOTHER if "study" in rows else rows[named_by(rows)].str.startswith("a-")
            rows[is_other].to_csv(self.results / table.name, index=False)

    def command(self) -> int:
        return self.run([*self.quick, "--workers", "1", "--results", str(self.results)])[0]

    def run(self, arguments: list[str]) -> tuple[int, str]:
        """A command line in this process, from a folder of its own: its exit code, and what it said, in a sentence."""
        code, said = self.run_any(arguments)
        assert code == 0 or "error: " in said or "failed: " in said, said
        return code, said

    def run_any(self, arguments: list[str]) -> tuple[int, str]:
        """The same for a command that may say in a table what is wrong."""
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, chdir(self.home / "elsewhere"):
            if not self.makes_report:
                patch.setattr("benchmark.cli.studies.make_report", lambda *_: None)
                patch.setattr("benchmark.display.canvas.Drawing.render", _plain_figure)
            with redirect_stdout(said), redirect_stderr(said):
                code = main(arguments)
        assert "Traceback" not in said.getvalue()
        return code, said.getvalue()

    def start(self, workers: str) -> "subprocess.Popen[str] | Forked":
        """The same command in a process of its own."""
        if self.chance.random() < REAL_COMMANDS:
            return start(self.quick, self.results, "--workers", workers)
        arguments = [*self.quick, "--workers", workers, "--results", str(self.results)]
        return Forked(arguments, self.makes_report, self.home / f"said-{self.chance.random()}.txt")

    def outside(self) -> dict[str, object]:
        """Of everything that is not the campaign's own or in the results folder."""
        kept = [self.results, self.whole, *self.home.glob("said-*.txt")]
        return dict(snapshot(self.home, without=kept))

    def compare(self, kind: str) -> None:
        """Zero lost, zero wrong: scores, records and tables have the bytes that they have without faults."""
        assert score_bytes(self.results) == score_bytes(self.whole), f"scores after {kind}"
        assert record_bytes(self.results) == record_bytes(self.whole), f"records after {kind}"
        for table in (table.name for table in STUDY_TABLES):
            assert table_text(self.results, table) == table_text(self.whole, table), f"{table}.csv after {kind}"
        leftovers = [path for part in ("runs", "features") for path in (self.results / part).glob(".*")]
        assert not leftovers, f"left behind after {kind}: {leftovers}"
        if self.makes_report:
            listed = json.loads((self.results / "report.json").read_text())
            manifest = Manifest(ResultsFolder(self.results))
            whole = all(manifest.current(name, output["made_from"]) for name, output in listed.items())
            assert whole, f"report after {kind}"

    def finished_runs(self) -> dict[str, bytes]:
        """Runs whose record is whole; training one again would change the seconds in it."""
        folders = [path for path in (self.results / "runs").glob("*-t0-*") if not path.name.startswith(".")]
        whole = [path for path in folders if (path / storage.CHECKSUMS).exists() and storage.find_damage(path) is None]
        return {path.name: (path / "record.json").read_bytes() for path in whole}

    def copy_of_whole(self) -> None:
        shutil.copytree(self.whole, self.results, dirs_exist_ok=True)

    def any_file(self) -> Path:
        """Of all that is read again: records, features, scores, labels, answers and duplicates."""
        parts = ("runs", "features", "scores", "labels", "answers", "duplicates")
        files = [path for part in parts for path in sorted((self.results / part).rglob("*.*")) if path.is_file()]
        return self.chance.choice(files)


Fault = Callable[[Campaign], bool]  # it says whether it struck


def _plain_figure(drawing: Drawing, *_: object) -> dict[str, bytes]:
    return {f"{drawing.name}.svg": b"<svg/>"}


def named_by(rows: pd.DataFrame) -> str:
    """The column that says which run or which data a row is of."""
    return "run" if "run" in rows else "data"


def read_text(table: Path) -> pd.DataFrame:
    return pd.read_csv(table, dtype=str, keep_default_na=False)


def record_bytes(results: Path) -> dict[str, bytes]:
    """Of everything in records but what the clock says."""
    files = [
        file for file in sorted((results / "runs").glob("*/*")) if file.name not in ("record.json", storage.CHECKSUMS)
    ]
    return {str(file.relative_to(results)): file.read_bytes() for file in files}


def table_text(results: Path, name: str) -> str:
    return pd.read_csv(results / f"{name}.csv").drop(columns="seconds", errors="ignore").to_csv()
