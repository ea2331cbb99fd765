"""Every command with values, names, tables and files that nobody meant: only sentences, and nothing outside changes.

Commands stop where they would train or draw, so that thousands take minutes.
"""

import argparse
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from benchmark.audit.apply_review import audit_digest
from benchmark.cli.command_line import command_line, main
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import TABLES
from benchmark.disk.tables import merge_rows, read_as_text, read_table
from benchmark.errors import LincBenchError
from tests.conftest import forget_own_detectors, medmnist_arrays
from tests.fuzzing import CASES, COMMANDS, NUMBERS, ODD, any_value, fuzz, odd_text, spoiled, told
from tests.snapshot import differences, snapshot

REPOSITORY = Path(__file__).parents[1]
STOPPED = "stopped by a test before training"


@dataclass
class Box:
    """A home folder, a working folder and a precious folder that no command may change; `given` may be."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("home/.medmnist", "cwd", "precious", "given"):  # medmnist makes its folder when it is imported
            (self.root / name).mkdir(parents=True)
        for folder in ("home", "cwd", "precious"):
            for name in ("thesis.md", "report.json", "figure.svg", "README.md", "audit.csv", "reviewed_labels.csv"):
                (self.root / folder / name).write_text(f"{name} of {folder}")
        self._before = snapshot(self.root, without=[self.root / "given"])

    @property
    def given(self) -> Path:
        return self.root / "given"

    def run(self, what: str, arguments: list[str], may_write: str | None = None) -> tuple[int, str]:
        """The exit code and what was said. `may_write` is a path that the user chose for what is written."""
        CASES[what] += 1
        said = io.StringIO()
        with chdir(self.root / "cwd"), redirect_stdout(said), redirect_stderr(said):
            try:
                code = main(arguments)
            except SystemExit as error:  # argparse
                code = error.code if isinstance(error.code, int) else 1
                assert "usage: " in said.getvalue(), f"it ended without a word: {arguments}"
        text = said.getvalue()
        assert "Traceback" not in text, text
        assert code == 0 or text.strip(), f"it failed without a word: {arguments}"
        self.check(arguments, may_write)
        return code, text

    def check(self, what: object, may_write: str | None = None) -> None:
        chosen = [self.given]
        if may_write is not None and "\0" not in may_write:
            path = Path(os.path.normpath(self.root / "cwd" / may_write))
            chosen += [path] if path.is_relative_to(self.root) and not self._was_there(path) else []
        changed = differences(self._before, snapshot(self.root, without=chosen))
        for text in differences(self._before, snapshot(self.root, without=[self.given])):
            if text.startswith("added: "):
                self._remove(self.root / text.removeprefix("added: "))
        assert not [text for text in changed if not self._is_way_to(text, chosen)], f"{what}: {changed}"

    def _was_there(self, path: Path) -> bool:
        return path == self.root or str(path.relative_to(self.root)) in self._before

    def _is_way_to(self, text: str, chosen: list[Path]) -> bool:
        """A folder above one that the user chose."""
        path = self.root / text.removeprefix("added: ")
        return text.startswith("added: ") and any(path in other.parents for other in chosen)

    def _remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def box(quick_run: Path, tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Box:
    """After a run that is made without patches. Commands that stop before they train, download or draw."""
    box = Box(tmp_path_factory.mktemp("box"))

    def stop(*_: object, **__: object) -> Any:
        raise LincBenchError(STOPPED)

    patch.setenv("HOME", str(box.root / "home"))
    patch.setattr("benchmark.cli.dry_run.estimate", lambda plan, workers: (1.0, 1))
    for place in (
        "benchmark.cli.dry_run.quick_check",
        "benchmark.cli.studies.run_study",
        "benchmark.cli.profile.profile",
        "benchmark.cli.profile.measure_growth",
        "benchmark.audit.run_audit.rank_labels",
        "benchmark.trials.run_trials.rank_labels",
        "benchmark.upkeep.verify.run_study",
        "benchmark.networks.loading._pretrained",
    ):
        patch.setattr(place, stop)
    patch.setattr("benchmark.display.canvas.Drawing.render", lambda self, *_: {f"{self.name}.svg": b"<svg/>"})
    return box


@pytest.fixture(scope="module")
def few_images(box: Box) -> Path:
    """As an .npz, a CSV and a folder of images."""
    pixels = np.random.default_rng(0).integers(0, 256, (60, 5, 5), dtype=np.uint8)
    folder = box.root / "precious" / "data"
    folder.mkdir()
    np.savez(folder / "few.npz", **medmnist_arrays(np.arange(60) % 2, pixels, 40, 10))
    for number, image in enumerate(pixels):
        (place := folder / "images" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number}.png")
    rows = [f"images/{'ab'[number % 2]}/{number}.png,{'ab'[number % 2]},{number % 3}" for number in range(60)]
    (folder / "few.csv").write_text("\n".join(["path,label,site", *rows]))
    box.__dict__["_before"] = snapshot(box.root, without=[box.given])
    return folder


def actions(command: str) -> list[argparse.Action]:
    """Of a command's parser, in its order."""
    parsers = next(action for action in command_line()._actions if isinstance(action, argparse._SubParsersAction))
    return [action for action in parsers.choices[command]._actions if action.dest != "help"]


FIRM: dict[str, list[str]] = {  # what every case of a command has; the last of two values counts
    "run": ["--dry-run", "--batch-size", "8", "--dataset", "FEW.npz", "--results", "GIVEN/results"],
    "profile": ["--batch-size", "8", "--dataset", "FEW.npz", "--results", "GIVEN/results"],
    "verify": ["--results", "GIVEN/results", "--data-root", "GIVEN"],
    "audit": ["--out", "GIVEN/audit"],
    "apply-review": ["--out", "GIVEN/reviewed.csv"],
    "try-audit": ["--results", "GIVEN/results"],
    "report": ["--results", "GIVEN/results"],
    "features": ["--results", "GIVEN/results"],
    "status": ["--results", "GIVEN/results"],
    "doctor": ["--results", "GIVEN/results"],
    "list": [],
    "reproduce": ["--dry-run", "--results", "GIVEN/results", "--data-root", "GIVEN"],
}
USUAL = [
    "FEW.npz",
    "FEW.csv",
    "FEWDIR",
    "PRECIOUS",
    "PRECIOUS/thesis.md",
    "GIVEN/new",
    "demo",
    "detection",
    "digits",
]
USUAL += [
    "pathmnist",
    "LiNC",
    "AUM",
    "original",
    "symmetric",
    "resnet18",
    "list",
    "clean",
    "local",
    "auto",
    "cpu",
    "site",
]
values = st.one_of(st.sampled_from(USUAL), odd_text)
WRITES = ("--results", "--out")


@st.composite
def command_lines(draw: st.DrawFn, commands: tuple[str, ...]) -> list[str]:
    """A command with odd values for some of its options, and for some of its arguments."""
    command = draw(st.sampled_from(commands))
    known = actions(command)
    options = [action for action in known if action.option_strings]
    words = [command, *FIRM[command]]
    for action in (action for action in known if not action.option_strings):
        wanted = action.nargs not in ("?", "*") or draw(st.booleans())
        words += [draw(values) for _ in range(wanted + (action.nargs in ("*", "+") and draw(st.booleans())))]
    for action in draw(st.lists(st.sampled_from(options), max_size=4)) if options else ():
        words.append(action.option_strings[0])
        if action.nargs != 0:
            number = st.sampled_from(NUMBERS) if action.type is not None and action.type is not Path else values
            words.append(draw(st.one_of(number, values)))
    if draw(st.integers(0, 9)) == 0:
        words.append(draw(odd_text))
    return words


def run_words(box: Box, few_images: Path, words: list[str], what: str = "") -> tuple[int, str]:
    """With paths in the place of their names; what the last --results or --out names may be written."""
    places = {"FEWDIR": few_images / "images", "FEW": few_images / "few", "PRECIOUS": box.root / "precious"}
    for name, place in (places | {"GIVEN": box.given}).items():
        words = [word.replace(name, str(place)) if word.startswith(name) else word for word in words]
    if words[0] == "run" and "--dry-run" not in words:
        words.append("--dry-run")
    chosen = [value for option, value in pairwise(words) if option in WRITES]
    code, said = box.run(what or f"values of {words[0]}", words, chosen[-1] if chosen else "audits")
    shutil.rmtree(box.given)
    box.given.mkdir()
    return code, said


def test_without_odd_values_commands_reach_where_they_would_train(box: Box, few_images: Path) -> None:
    """Otherwise odd ones would be refused for another reason, and pass."""
    code, said = run_words(box, few_images, ["run", *FIRM["run"]])
    assert code == 0, said
    assert STOPPED in run_words(box, few_images, ["profile", *FIRM["profile"]])[1]
    assert STOPPED in run_words(box, few_images, ["audit", "FEW.csv", *FIRM["audit"]])[1]
    assert STOPPED in run_words(box, few_images, ["try-audit", "FEW.csv", *FIRM["try-audit"]])[1]


@fuzz
@given(words=command_lines(("run", "profile")))
def test_values_of_commands_that_train(box: Box, few_images: Path, words: list[str]) -> None:
    run_words(box, few_images, words)


@fuzz
@given(words=command_lines(("audit", "apply-review", "try-audit")))
def test_values_of_commands_that_audit(box: Box, few_images: Path, words: list[str]) -> None:
    run_words(box, few_images, words)


@fuzz
@given(words=command_lines(("verify", "report", "features", "status", "doctor", "list", "reproduce")))
def test_values_of_other_commands(box: Box, few_images: Path, words: list[str]) -> None:
    run_words(box, few_images, words)


@pytest.fixture(scope="module")
def few_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed tables, cut to the runs of one study and some rows of the others."""
    results = tmp_path_factory.mktemp("rows")
    runs = pd.read_csv(REPOSITORY / "results" / "runs.csv", dtype=str, keep_default_na=False)
    is_main = (runs["study"] == "demo") & runs["recipe"].isin(["standard", "linc"])  # other recipes have few tables
    kept = runs[is_main]["run"].tolist()[:4]
    for name in TABLES:
        if (path := REPOSITORY / "results" / f"{name}.csv").exists():
            rows = pd.read_csv(path, dtype=str, keep_default_na=False)
            some = rows[rows["run"].isin(kept)] if "run" in rows else rows.head(12)
            some.to_csv(results / path.name, index=False)
    return results


CELLS = (*ODD, *NUMBERS, "0,5", "1;2", "0.5|0.6", "|", "True", "WAHR", "2026-11-18", "1/2", "#REF!", "1 000")


@st.composite
def damaged_tables(draw: st.DrawFn) -> tuple[str, Callable[[Path], bytes]]:
    """A table's name, and its content as made from the whole file."""
    name, kind = draw(st.sampled_from(list(TABLES))), draw(st.sampled_from(["bytes", "cell", "column", "form", "row"]))
    cell, row = draw(st.one_of(st.sampled_from(CELLS), st.text(max_size=8))), draw(st.integers(0, 10**6))
    column = draw(st.sampled_from(list(TABLES[name].columns)))
    separator, encoding = draw(st.sampled_from([";", "\t", ",", "|"])), draw(st.sampled_from(["utf-8-sig", "utf-16"]))
    data = draw(st.data())

    def damage(path: Path) -> bytes:
        if kind == "bytes":
            return data.draw(st.one_of(spoiled(path.read_bytes()), st.binary(max_size=100)))
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        if kind == "cell" and len(rows):
            rows.iloc[row % len(rows), rows.columns.get_loc(column)] = cell
        elif kind == "column":
            rows = rows.drop(columns=column) if row % 2 else rows.rename(columns={column: cell})
        elif kind == "row" and len(rows):
            rows = pd.concat([rows, rows.sample(1, random_state=row)] * (row % 3)) if row % 3 else rows.head(0)
        if kind == "form":
            return rows.to_csv(index=False, sep=separator).encode(encoding)
        return rows.to_csv(index=False).encode(errors="surrogatepass")

    return name, damage


@fuzz
@given(table=damaged_tables())
def test_damaged_tables_are_read_or_refused_and_nothing_is_lost(
    box: Box, few_rows: Path, table: tuple[str, Callable[[Path], bytes]]
) -> None:
    name, damage = table
    CASES["tables"] += 1
    shutil.copytree(few_rows, box.given, dirs_exist_ok=True)
    if not (path := box.given / f"{name}.csv").exists():
        return
    path.write_bytes(content := damage(few_rows / f"{name}.csv"))
    results, refused = ResultsFolder(box.given), ""
    try:
        read_table(results, name)
        before = read_as_text(results, name)
        merge_rows(results, name, [], lambda old: pd.Series(False, index=old.index))
        assert sorted(map(tuple, before.to_numpy())) == sorted(map(tuple, read_as_text(results, name).to_numpy()))
    except LincBenchError as error:
        refused = str(error)
    if refused:
        assert path.name in refused
        assert content in [file.read_bytes() for file in box.given.glob("*") if file.is_file()], "it is kept"
    box.check(name)
    shutil.rmtree(box.given)
    box.given.mkdir()


@fuzz
@given(table=damaged_tables())
def test_reports_of_damaged_tables(box: Box, few_rows: Path, table: tuple[str, Callable[[Path], bytes]]) -> None:
    name, damage = table
    shutil.copytree(few_rows, box.given, dirs_exist_ok=True)
    if (path := box.given / f"{name}.csv").exists():
        path.write_bytes(content := damage(few_rows / f"{name}.csv"))
        code, _ = box.run("reports", ["report", "--results", str(box.given)])
        assert code in (0, 1)
        assert path.read_bytes() == content, "a report changes no table"
    shutil.rmtree(box.given)
    box.given.mkdir()


@pytest.mark.long
def test_json_files_of_ours(box: Box, quick_run: Path) -> None:
    results = box.given / "results"
    shutil.copytree(quick_run, results)
    for place in ("running", "failed"):
        (results / place).mkdir(exist_ok=True)
        (results / place / "few.json").write_text(json.dumps({"process": 1, "machine": "m", "epoch": 1, "epochs": 2}))
    files = sorted(path for path in results.rglob("*.json") if path.stat().st_size < 10**6)
    commands = (["status"], ["doctor"], ["features", "list"], ["features", "clean", "--unfinished"], ["report"])

    @fuzz
    @given(st.data(), st.sampled_from(files), st.one_of(any_value, st.none()), st.sampled_from(commands))
    def damaged(data: st.DataObject, file: Path, value: Any, command: list[str]) -> None:
        whole = file.read_bytes()
        kept = {path: path.read_bytes() for path in (results / "report.json",)}
        changed = json.loads(whole)
        if value is None:
            file.write_bytes(data.draw(spoiled(whole)))
        elif isinstance(changed, dict) and changed and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(changed)))
            file.write_text(json.dumps({**changed, key: value}))
        else:
            file.write_text(json.dumps(value))
        box.run("our JSON files", [*command, "--results", str(results)])
        file.write_bytes(whole)
        for path, content in kept.items():
            path.write_bytes(content)

    damaged()
    shutil.rmtree(results)


@pytest.mark.long
def test_reviews(box: Box) -> None:
    samples = pd.DataFrame({"id": [f"a/{n}.png" for n in range(8)], "given": list("ababcabc"), "rank": range(1, 9)})
    audit, decisions = box.given / "audit.csv", box.given / "decisions.csv"
    decided = samples[["id", "given"]].assign(audit=audit_digest(samples), decision="keep", label="")
    decided.loc[1, ["decision", "label"]] = "relabel", "c"
    cells = st.one_of(st.sampled_from(("keep", "relabel", "a", "b", *CELLS)), st.text(max_size=8))

    @fuzz
    @given(st.data(), st.booleans(), st.booleans(), cells, st.integers(0, 7), st.integers(0, 4))
    def damaged(data: st.DataObject, is_audit: bool, is_cell: bool, cell: str, row: int, column: int) -> None:
        box.given.mkdir(exist_ok=True)
        for path, rows in ((audit, samples), (decisions, decided)):
            rows, is_damaged = rows.astype(str), (path == audit) is is_audit
            if is_damaged and is_cell:
                rows.iloc[row, column % rows.shape[1]] = cell
            content = rows.to_csv(index=False).encode(errors="surrogatepass")
            path.write_bytes(data.draw(spoiled(content)) if is_damaged and not is_cell else content)
        before = {path: path.read_bytes() for path in (audit, decisions)}
        out = box.given / "labels.csv"
        code, _ = box.run("reviews", ["apply-review", str(audit), str(decisions), "--out", str(out)])
        assert out.exists() is (code == 0)
        assert before == {path: path.read_bytes() for path in before}
        out.unlink(missing_ok=True)

    damaged()
    shutil.rmtree(box.given)
    box.given.mkdir()


HEADER = """import sys
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from benchmark.record import TRAIN_LOGITS
from detectors import Detector
"""
OWN = """@dataclass(frozen=True)
class Own(Detector):
    name: ClassVar[str] = {name}
    {needs}
    {score}
    {more}
{end}
"""
PIECES: dict[str, tuple[str, ...]] = {
    "name": (
        "'own'", "''", "'../../precious'", "None", "3", "'[/bold]'", "'NA'", "'a\\nb'", "'x' * 5000", "'AUM'",
        "'\\ud800'",
    ),
    "needs": (
        "needs = ()", "needs = (TRAIN_LOGITS,)", "needs = 'train_logits'", "needs = None", "needs = 3",
        "needs = ('train_logits',)", "needs = property(lambda self: 1 / 0)", "needs = [TRAIN_LOGITS]",
        "needs = property(lambda self: sys.exit(0))", "pass", "needs = iter(())",
    ),
    "score": (
        "def score(self, record): return np.zeros(3)", "score = None", "score = 3", "pass", "def score(self): pass",
    ),
    "more": (
        "pass", "training = None", "training = property(lambda self: 1 / 0)", "field: int = 'x'", "field: list = ()",
        "version: ClassVar[int] = 'one'", "def __init__(self, x): pass", "def __post_init__(self): sys.exit(0)",
        "def __post_init__(self): raise KeyboardInterrupt", "summary: ClassVar[str] = None", "version = 1 / 0",
        "def __hash__(self): return 1 / 0", "field: object = object()", "def epochs_used(self, epochs): return 'x'",
        "def __new__(cls): return 3", "label = property(lambda self: None)", "def __eq__(self, other): 1 / 0",
        "def epochs_used(self, epochs): return 2.5", "def epochs_used_in(self, training): 1 / 0", "label = '|'",
        "label = property(lambda self: 1 / 0)",
    ),
    "end": (
        "", "sys.exit(0)", "raise KeyboardInterrupt", "1 / 0", "import nothing", "def", "\0",
        "é", "Own = 3",
    ),
}  # fmt: skip


USABLE = {name: known[0] for name, known in PIECES.items()}


@st.composite
def detector_files(draw: st.DrawFn) -> tuple[bytes, str]:
    """A file's content and the detector that is named. At most two pieces are odd, since one may hide the others."""
    odd = draw(st.lists(st.sampled_from(list(PIECES)), max_size=2, unique=True))
    pieces = USABLE | {name: draw(st.sampled_from(PIECES[name])) for name in odd}
    kind = draw(st.integers(0, 9))
    content = draw(st.binary(max_size=60)) if kind == 0 else written(pieces)
    return content, draw(odd_text) if kind == 1 else "Own"


def written(pieces: dict[str, str]) -> bytes:
    return f"{HEADER}{OWN.format_map(pieces)}".encode(errors="surrogatepass")


@fuzz
@given(file=detector_files())
@example(file=(written(USABLE), "Own"))
def test_files_of_detectors(box: Box, few_images: Path, file: tuple[bytes, str]) -> None:
    content, named = file
    (path := box.given / "own.py").write_bytes(content)
    words = ["run", *FIRM["run"], "--detector", f"{path}:{named}"]
    code, said = run_words(box, few_images, words, "detector files")
    forget_own_detectors()
    assert code == 0 or file != (written(USABLE), "Own"), said
    assert code == 0 or "error: " in said or b"KeyboardInterrupt" in content, said


@pytest.mark.long
def test_the_number_of_cases_is_told(record_property: Callable[[str, object], None]) -> None:
    """The last of this file, which one process runs in order."""
    record_property("told", f"{told(COMMANDS)} of commands: only sentences, nothing outside")
