"""Names as people give them: none leaves its folder, none is read as something else, none is mixed up with another."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.audit import run_audit
from benchmark.cli.command_line import main
from benchmark.disk import ResultsFolder, slug
from benchmark.errors import LincBenchError
from benchmark.names import LONGEST
from benchmark.runs import LineUp, Study
from tests.conftest import medmnist_arrays
from tests.made_up_study import made_up_study, write_study

Fails = Callable[..., str]
PATHS = (
    "..",
    ".",
    "../../precious",
    "a/b",
    "/tmp/x",
    "a\\b",
    ".hidden",
    "-x",
    "",
    " ",
    "a b",
    "a\n",
    "x" * (LONGEST + 1),
)


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def precious(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files of the user, which nothing of ours may change."""
    for name in ("README.md", "pyproject.toml", "precious/thesis.md", "precious/figure.svg", "figures/own.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in PATHS if name.strip()])
def test_a_name_is_no_path(name: str, quick: tuple[str, ...], precious: Path, fails: Fails) -> None:
    before = everything(precious)
    said = fails(*quick, f"--name={name}", "--results", precious / "r" / "results")
    assert "cannot be the name of a study" in said
    assert "letters" in said
    assert everything(precious) == before


@pytest.mark.parametrize("name", [*PATHS, None, 7])
def test_studies_and_line_ups_made_in_python_have_names_too(name: str) -> None:
    with pytest.raises(LincBenchError, match="cannot be the name of a study"):
        Study(name, "", ())
    with pytest.raises(LincBenchError, match="cannot be the name of a line-up"):
        LineUp(name, ())


@pytest.mark.parametrize("name", ["audit", "overhead", "paper"])
def test_a_study_is_not_called_like_another_part_of_the_report(name: str, quick: tuple[str, ...], fails: Fails) -> None:
    assert "Choose another name" in fails(*quick, "--name", name, "--dry-run")


@pytest.fixture
def results(precious: Path) -> Path:
    study = made_up_study({"digits": 300}, (0.2,), {"LiNC": ("linc", 0.97), "AUM": ("standard", 0.95)})
    study |= {
        name: study[name][:0] for name in ("agreement", "auc_by_epochs", "data_maps", "trust_histograms", "curves")
    }
    write_study(ResultsFolder(precious / "results"), study)
    return precious / "results"


@pytest.mark.parametrize("cell", ["../../x", "..", "", "/tmp/x", ".x"])
@pytest.mark.parametrize("column", ["study", "line_up"])
def test_a_name_in_a_table_is_no_path_either(cell: str, column: str, results: Path, fails: Fails) -> None:
    if (cell, column) == ("", "line_up"):
        pytest.skip("a row of no line-up names no file")
    rows = pd.read_csv(results / "metrics.csv", dtype=str, keep_default_na=False)
    rows.loc[1, column] = cell
    rows.to_csv(results / "metrics.csv", index=False)
    before = everything(results.parent)
    said = fails("report", "--results", results)
    assert "metrics.csv" in said
    assert "line 3," in said
    assert everything(results.parent) == before


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("output", "file"),
    [
        ("figures/..", "figure.svg"),
        ("figures/../x", "x.svg"),
        ("figures/../../precious/figure", "figure.svg"),
        ("figures//", "figure.svg"),
        ("figures/", "figure.svg"),
        ("figures/made-up/figure", "../../../precious/figure.svg"),
        ("tables/../../precious", "thesis.md"),
        ("tables/..", "README.md"),
        ("tables/.", "README.md"),
        ("page", "../README.md"),
        ("page", "metrics.csv"),
        ("other", "metrics.csv"),
        ("tables/made-up", "../../metrics.csv"),
    ],
)
def test_a_manifest_lists_nothing_but_files_of_the_report(output: str, file: str, results: Path) -> None:
    """Digests are right, so that only the place protects a file."""
    (results / "README.md").write_text("mine")
    kept = [path for path in results.parent.rglob("*") if path.is_file()]
    listed = {file: next(digest(path) for path in kept if path.name == Path(file).name or file == "x.svg")}
    (results / "report.json").write_text(json.dumps({output: {"made_from": "", "files": listed}}))
    assert main(["report", "--results", str(results)]) == 0
    assert [path for path in kept if not path.exists()] == []
    assert (results.parent / "README.md").read_text() == "mine"


@pytest.mark.parametrize("entry", [None, [], {"files": []}, {"files": {}}, {"files": {"a.svg": 7}}, "text"])
def test_a_manifest_of_other_values_is_ignored(entry: object, results: Path) -> None:
    (results / "report.json").write_text(json.dumps({"page": entry, "figures/made-up/x": entry, "tables/x": entry}))
    assert main(["report", "--results", str(results)]) == 0


@pytest.mark.parametrize("name", [".partial-..", ".partial-.", ".partial-", "own", ".partial-.git"])
def test_cleaning_features_removes_features_only(name: str, precious: Path) -> None:
    (kept := precious / "results" / "features" / name / "notes.txt").parent.mkdir(parents=True)
    kept.write_text("mine")
    before = everything(precious)
    assert main(["features", "clean", "--all", "--results", str(precious / "results")]) == 0
    assert everything(precious) == before


@pytest.mark.parametrize("name", ["..", "...", "-", "../..", ". .", "é", ".git", "a" * 300])
def test_a_slug_is_no_path(name: str) -> None:
    assert not slug(name).startswith((".", "-"))
    assert "/" not in slug(name)


def write_data(path: Path, number: int = 0) -> Path:
    generator = np.random.default_rng(number)
    images = generator.integers(0, 256, (60, 8, 8), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez(file, **medmnist_arrays(np.arange(60) % 2, images, 40, 10))
    return path


@pytest.mark.parametrize("name", ["...npz", "....npz", "-.npz", ". .npz"])
def test_an_audit_stays_in_its_folder(name: str, precious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    monkeypatch.setattr(run_audit, "check_folder", lambda folder, data: folders.append(folder) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_audit.audit(write_data(precious / "data" / name))
    assert folders == [Path("audits/data")]


@pytest.mark.parametrize("command", [("run", "--dry-run", "--batch-size", "8", "--dataset"), ("audit",)])
@pytest.mark.parametrize("name", ["x" * (LONGEST + 1), "a|b", "a\nb", "a\x1b[31mb"])
def test_a_data_set_whose_name_no_file_can_have_is_refused(
    command: tuple[str, ...], name: str, precious: Path, fails: Fails
) -> None:
    data = write_data(precious / "data" / f"{name}.npz")
    before = everything(precious)
    assert "cannot be the name of a data set" in fails(*command, data)
    assert everything(precious) == before


def test_the_folder_one_is_in_has_a_name(precious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    from benchmark.data.datasets import load_dataset

    for kind in "ab":
        (precious / "moles" / kind).mkdir(parents=True)
        for number in range(10):
            Image.fromarray(np.full((4, 4), number, np.uint8)).save(precious / "moles" / kind / f"{number}.png")
    monkeypatch.chdir(precious / "moles")
    (precious / "link").symlink_to(precious / "moles")
    for path, name in ((".", "moles"), ("a/..", "moles"), (str(precious / "link"), "link")):
        assert load_dataset(path).info.name == name


OWN = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from detectors import Detector

@dataclass(frozen=True)
class Mine(Detector):
    name: ClassVar[str] = {name!r}
    needs = ()
    def score(self, record):
        return np.linspace(0, 1, len(record.given_labels))
"""


@pytest.mark.parametrize("name", ["", "a|b", "x" * (LONGEST + 1), "a\nb"])
def test_a_detector_whose_name_no_table_can_have_is_refused(name: str, tmp_path: Path, fails: Fails) -> None:
    (file := tmp_path / "own.py").write_text(OWN.format(name=name))
    assert "cannot be the name of a detector" in fails("run", "--dry-run", "--detector", f"{file}:Mine")


def few_digits(path: Path, quick: tuple[str, ...], first: int = 0) -> Path:
    """The data of a quick run, or as many others."""
    path.parent.mkdir(parents=True)
    with np.load(quick[2]) as arrays:
        changed = {key: array ^ np.uint8(first) if key.endswith("images") else array for key, array in arrays.items()}
    np.savez(path, **changed)
    return path


def test_two_data_sets_of_one_name_are_not_mixed_up_in_a_plan(
    quick: tuple[str, ...], tmp_path: Path, fails: Fails
) -> None:
    paths = [few_digits(tmp_path / folder / "digits.npz", quick, number) for number, folder in enumerate("abc")]
    shutil.copy(paths[0], paths[2])
    for other in (paths[1], "digits"):
        said = fails("run", "--dry-run", "--dataset", paths[0], "--dataset", other, "--results", tmp_path / "r")
        assert "both are called 'digits'" in said
        assert "Rename one" in said
    same = [word for path in (paths[0], paths[2]) for word in ("--dataset", str(path))]
    assert main(["run", "--dry-run", "--epochs", "1", *same, "--results", str(tmp_path / "r")]) == 0


@pytest.mark.parametrize("changed", [(), ("--rate", "0.4"), ("--name", "other"), ("--seed", "1"), ("--dry-run",)])
def test_two_data_sets_of_one_name_are_not_mixed_up_in_a_results_folder(
    changed: tuple[str, ...], quick: tuple[str, ...], copied: Path, tmp_path: Path, fails: Fails
) -> None:
    other = few_digits(tmp_path / "elsewhere" / "few_digits.npz", quick, 1)
    before = everything(copied)
    said = fails("run", "--dataset", other, *quick[3:], *changed, "--results", copied)
    assert "another data set called 'few_digits'" in said
    assert everything(copied) == before
    assert main([*quick, *changed, "--dry-run", "--results", str(copied)]) == 0, "the same data set is welcome"


def test_a_data_set_of_another_size_is_another_whatever_the_training(
    quick: tuple[str, ...], copied: Path, tmp_path: Path, fails: Fails
) -> None:
    other = write_data(tmp_path / "elsewhere" / "few_digits.npz")
    assert "another data set called" in fails("run", "--batch-size", "8", "--dataset", other, "--results", copied)


def test_trials_of_two_data_sets_of_one_name_are_not_averaged() -> None:
    from benchmark.disk import TABLES
    from benchmark.trials.tables import COUNTS, PRECISIONS, REVIEWS, trial_groups

    def rows(table: str) -> pd.DataFrame:
        values = {str: "x", int: 1, float: 0.5, bool: True}
        row = {column: values[kind] for column, kind in TABLES[table].columns.items()}
        return pd.DataFrame([row | {"data": "aaa", "precision": 0.25}, row | {"data": "bbb", "precision": 0.75}])

    groups = trial_groups({table: rows(table) for table in (COUNTS, PRECISIONS, REVIEWS)}.__getitem__)
    assert [title.split(",")[:2] for title, _ in groups["precision"].tables] == [
        ["Precision: x", " aaa"],
        ["Precision: x", " bbb"],
    ]
    assert [table.iloc[0, 1] for _, table in groups["precision"].tables] == ["0.25", "0.75"]


PLAIN = ("[/bold]", "[red]", ":bug:", "[link=x]y[/link]", "a:bug:[/x]")  # what rich would read as something else


@pytest.mark.parametrize("name", PLAIN)
def test_markup_in_a_path_is_printed_as_it_is(name: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inner := results / name).mkdir(parents=True)
    for table in results.glob("*.csv"):
        shutil.copy(table, inner)
    for command in (("report",), ("features", "list")):
        assert main([*command, "--results", str(inner)]) == 0
        assert str(inner) in capsys.readouterr().out
    assert main(["status", "--results", str(inner)]) == 0


@pytest.mark.parametrize("name", PLAIN)
def test_markup_in_titles_cells_and_bars_is_printed_as_it_is(name: str) -> None:
    from io import StringIO

    from rich.console import Console

    from benchmark.display.tables import for_terminal
    from benchmark.execution.progress import Progress

    for is_terminal in (True, False):
        said = StringIO()
        console = Console(file=said, width=80, force_terminal=is_terminal, color_system=None)
        console.print(for_terminal(f"title {name}", pd.DataFrame({f"column {name}": [f"a wide cell with {name}"]})))
        progress = Progress(console)
        progress.say(f"sentence {name}")
        with progress.counting(f"images of {name}") as report:
            report(1, 1)
        for text in ("title", "column", "a wide cell with", "sentence", "images of"):
            assert f"{text} {name}" in said.getvalue()


@pytest.mark.parametrize("name", PLAIN)
def test_markup_in_names_of_detectors_is_printed_as_it_is(
    name: str, results: Path, capsys: pytest.CaptureFixture[str], fails: Fails
) -> None:
    rows = pd.read_csv(results / "metrics.csv", dtype=str, keep_default_na=False)
    rows.replace({"detector": {"AUM": name}}).to_csv(results / "metrics.csv", index=False)
    assert main(["report", "--results", str(results)]) == 0
    assert f" {name} " in capsys.readouterr().out
    assert f"called '{name}'" in fails("report", name, "--results", results)


ODD = ("nan", "NA", "None", "null", "007", "7", "True", "1e5", "inf", "<NA>", "-0", "0x10", "2020-01-01")


def test_no_name_in_a_table_is_read_as_something_else(tmp_path: Path) -> None:
    """Of studies, data sets and detectors, from the rows of a run to the tables of a report."""
    from benchmark.report.make_report import JOINED, Rows, read_rows
    from benchmark.report.parts import StudyPart

    results = ResultsFolder(tmp_path)
    detectors = {"LiNC": ("linc", 0.97)} | dict.fromkeys(ODD, ("standard", 0.9))
    for study in ("NA", "007"):
        tables = made_up_study(dict.fromkeys(ODD, 300), (0.2,), detectors)
        write_study(results, {name: rows.assign(study=study) for name, rows in tables.items()})
    rows = Rows(lambda name: read_rows(results, name))
    for name in JOINED:
        assert set(rows[name]["study"]) == {"NA", "007"}, name
        assert set(rows[name]["dataset"]) == set(ODD), name
    groups = StudyPart(rows.of_study("NA"), "NA").groups
    ((_, summary),) = groups["summary"].tables
    assert set(summary["detector"]) == set(detectors)
    assert set(summary.columns) == {"detector", "mean rank", *ODD}
    assert not summary.isin(["–"]).any(axis=None)
    assert [set(table["detector"]) for _, table in groups["auc"].tables] == [set(detectors)] * len(ODD)
    assert set(groups["accuracy-summary"].tables[0][1]["data set"]) == set(ODD)


def test_a_data_set_may_be_called_as_a_column_is() -> None:
    from benchmark.report.study_tables import detection_summary

    datasets = {"detector": 300, "mean rank": 300}
    study = made_up_study(datasets, (0.2,), {"LiNC": ("linc", 0.97), "AUM": ("standard", 0.95)})
    table = detection_summary(study["metrics"], study["auroc_draws"][:0])
    assert list(table.columns) == ["detector", "detector", "mean rank", "mean rank"]
    assert table.iloc[:, 0].tolist() == ["LiNC", "AUM"]
    assert table.iloc[:, 3].tolist() == ["1.0", "2.0"]
    assert table.iloc[0, 1].startswith("0.9")


def test_no_name_in_an_audit_is_read_as_something_else(tmp_path: Path) -> None:
    """Ids, classes and groups, from the list of an audit to the labels after its review."""
    from benchmark.audit.apply_review import apply_review, audit_digest
    from benchmark.audit.run_audit import flag_rates
    from benchmark.counting.error_count import ErrorCount
    from benchmark.disk import as_csv

    count = len(ODD)
    others = [*ODD[1:], ODD[0]]
    samples = pd.DataFrame({"id": ODD, "given": ODD, "suggested": others, "group": ODD}).assign(
        rank=range(1, count + 1), component="noisy"
    )
    rates = flag_rates(samples, ErrorCount(count, 0.5, 0.4))
    for of in ("class", "group"):
        assert set(rates.loc[rates["of"] == of, "which"]) == set(ODD)
    (tmp_path / "audit.csv").write_text(as_csv(samples))
    decisions = samples[["id", "given"]].assign(audit=audit_digest(samples), decision="relabel", label=others)
    (tmp_path / "decisions.csv").write_text(as_csv(decisions))
    applied = apply_review(tmp_path / "audit.csv", [tmp_path / "decisions.csv"], tmp_path / "labels.csv")
    assert applied.labels["label"].tolist() == others
    assert set(applied.counts.loc[applied.counts["of"] == "group", "which"]) == set(ODD)
    assert (tmp_path / "labels.csv").read_text().splitlines()[1] == "nan,NA,nan,relabel,nan"


@pytest.mark.long
def test_no_name_on_the_command_line_is_read_as_something_else(
    tmp_path: Path, quick: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of files, detectors and a study: run, report, status and doctor keep them as they are."""
    from benchmark.disk.tables import read_table

    own, names = "", ("nan", "NA", "None", "007", "True")
    for number, name in enumerate(names):
        own += OWN.format(name=name).replace("Mine", f"Mine{number}")
    (file := tmp_path / "007.py").write_text(own)
    datasets = [write_data(tmp_path / f"{name}.npz", number) for number, name in enumerate(("null", "007", "1e5"))]
    options = [word for path in datasets for word in ("--dataset", str(path))]
    options += [word for number in range(len(names)) for word in ("--detector", f"{file}:Mine{number}")]
    options += ["--detector", "LiNC", "--detector", "AUM", "--epochs", "2", "--batch-size", "8", "--image-size", "32"]
    folder = ["--results", str(tmp_path / "results")]
    assert main(["run", *options, "--seed", "0", "--name", "NA", "--workers", "1", *folder]) == 0
    rows = read_table(ResultsFolder(tmp_path / "results"), "metrics").query("line_up == 'original'")
    expected = {(path.stem, name) for path in datasets for name in (*names, "LiNC", "AUM")}
    assert set(zip(rows["dataset"], rows["detector"], strict=True)) == expected
    assert set(rows["status"]) == {"ok"}
    capsys.readouterr()
    assert main(["report", "NA", "--verbose", *folder]) == 0
    said = capsys.readouterr().out
    assert all(f"\u2502 {name} " in said for name in names)
    assert main(["status", *folder]) == 0
    assert "6 done, 0 running, 0 failed" in capsys.readouterr().out
    assert main(["doctor", *folder]) == 0
