"""The report: from the CSV tables alone, only what changed is made again, and only its own files are deleted."""

import json
import re
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from benchmark.cli.command_line import main
from benchmark.disk import TABLES
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import merge_rows
from benchmark.display.canvas import Drawing
from benchmark.display.tables import are_numbers, as_latex, as_markdown, escape_latex, in_cells, mean_and_spread
from benchmark.report import readme
from benchmark.report.make_report import make_report, read_rows
from benchmark.report.readme import speed_table
from benchmark.report.study_tables import epochs_table
from tests.made_up_study import made_up_study, write_study


def files(folder: Path) -> dict[str, bytes]:
    """Everything that the report wrote."""
    made = [path for part in ("tables", "figures") for path in (folder / part).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in [*made, *folder.glob("report.*"), *folder.glob("*.html")]
    }


def report(folder: Path, study: str | None = None) -> None:
    make_report(ResultsFolder(folder), study, Console(quiet=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder of two small studies with few figures, and its report."""
    folder = tmp_path_factory.mktemp("made") / "results"
    study = made_up_study({"digits": 300}, (0.2,), {"LiNC": ("linc", 0.97), "AUM": ("standard", 0.95)})
    study |= {name: study[name][:0] for name in ("agreement", "auc_by_epochs", "data_maps", "trust_histograms")}
    other = {name: rows.assign(study="other", run=rows["run"] + "-other") for name, rows in study.items()}
    for tables in (study, other):
        write_study(ResultsFolder(folder), tables)
    report(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "results"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of figures that are drawn."""
    names: list[str] = []
    render = Drawing.render
    monkeypatch.setattr(Drawing, "render", lambda self, pixels: names.append(self.name) or render(self, pixels))
    return names


def change_one_row(folder: Path) -> None:
    rows = pd.read_csv(folder / "metrics.csv", dtype=str, keep_default_na=False)
    rows.loc[rows["study"] == "made-up", "auroc"] = "0.8125"
    rows.to_csv(folder / "metrics.csv", index=False)


def test_nothing_is_made_again_if_nothing_changed(folder: Path, drawn: list[str]) -> None:
    first, times = files(folder), {path: path.stat().st_mtime_ns for path in folder.rglob("*.svg")}
    report(folder)
    assert drawn == []
    assert files(folder) == first
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.svg")} == times


def test_a_changed_row_makes_again_what_shows_it_with_the_bytes_of_a_full_report(
    folder: Path, drawn: list[str], tmp_path: Path
) -> None:
    change_one_row(folder)
    report(folder)
    readers = {"auc_by_detector", "every_two", "auc_averaged", "auc_by_rate", "by_noise_kind", "variants"}
    assert set(drawn) == readers
    clean = tmp_path / "clean"
    clean.mkdir()
    for table in folder.glob("*.csv"):
        shutil.copy(table, clean)
    report(clean)
    assert files(clean) == files(folder)


def test_a_study_shows_the_duplicates_of_its_own_data_sets(folder: Path) -> None:
    rows = [dict.fromkeys(TABLES["duplicates"].columns, 1) | {"dataset": name} for name in ("digits", "others")]
    merge_rows(ResultsFolder(folder), "duplicates", rows, lambda old: old["dataset"] == "digits")
    report(folder)
    text = (folder / "tables" / "made-up" / "duplicates.md").read_text()
    assert "| digits | 1 |" in text
    assert "others" not in text
    assert "Images that a data set has twice" in (folder / "details.html").read_text()


def test_a_file_that_was_edited_or_deleted_is_made_again(folder: Path, drawn: list[str]) -> None:
    first = files(folder)
    (folder / "figures" / "other" / "roc_curves.svg").unlink()
    (folder / "tables" / "other" / "auc.md").write_text("edited")
    (folder / "report.html").write_text("edited")
    report(folder)
    assert drawn == ["roc_curves"]
    assert files(folder) == first


def test_only_files_that_the_report_wrote_are_deleted(folder: Path) -> None:
    figures = folder / "figures" / "made-up"
    kept = [figures / "own.svg", figures / ".roc_curves.svg.123", folder / "tables" / "made-up" / "notes.md"]
    for path in kept:
        path.write_text("mine")
    rows = pd.read_csv(folder / "roc.csv", dtype=str, keep_default_na=False)
    rows[rows["study"] != "made-up"].to_csv(folder / "roc.csv", index=False)
    report(folder)
    assert all(path.read_text() == "mine" for path in kept)
    assert not (figures / "roc_curves.svg").exists()
    assert "figures/made-up/roc_curves" not in json.loads((folder / "report.json").read_text())


def test_a_manifest_never_leads_outside_the_folder(folder: Path) -> None:
    """Somebody else may have written it."""
    outside = folder.parent / "outside.svg"
    outside.write_text("mine")
    manifest = json.loads((folder / "report.json").read_text())
    manifest["figures/made-up/old"] = {"made_from": "", "files": {"../../../outside.svg": ""}, "note": None}
    manifest["page/old"] = {"made_from": "", "files": {"metrics.csv": ""}, "note": None}
    manifest["figures/made-up/older"] = {"made_from": "", "files": {str(outside): ""}, "note": None}
    (folder / "report.json").write_text(json.dumps(manifest))
    change_one_row(folder)
    report(folder)
    assert outside.read_text() == "mine"
    assert (folder / "metrics.csv").exists(), "a file that is not as the report wrote it is not deleted"


def test_a_damaged_manifest_makes_everything_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Drawing, "render", lambda self, pixels: {f"{self.name}.svg": b"<svg/>"})
    (folder / "report.json").write_text("{")
    report(folder)
    assert {path.read_bytes() for path in folder.rglob("*.svg")} == {b"<svg/>"}


def test_a_report_of_one_study_shows_its_tables_and_makes_everything(folder: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(folder, tmp_path / "whole"))
    for copy, study in ((folder, "other"), (whole, None)):
        change_one_row(copy)
        report(copy, study)
    assert files(folder) == files(whole)
    said = StringIO()
    make_report(ResultsFolder(folder), "other", Console(file=said, width=200), is_verbose=True)
    assert said.getvalue().count("Detection, detectors as their authors define them") == 1
    assert "Test accuracy" in said.getvalue()
    assert "LiNC has the highest AUROC of 2" in said.getvalue()


def test_the_terminal_shows_one_table_and_at_most_five_lines(folder: Path) -> None:
    for study, other in (("other", ""), (None, "Other studies: other (name one to see its table)")):
        said = StringIO()
        make_report(ResultsFolder(folder), study, Console(file=said, width=80))
        assert "Test accuracy" not in said.getvalue()
        *_, last_row, after = said.getvalue().partition("─\n")[2].rpartition("\n AUM ")
        assert last_row
        numbers, *lines = after.splitlines()
        assert re.fullmatch(r" *0\.\d{4}(?: ± 0\.\d{4})? +2 ?", numbers)
        assert re.fullmatch(r"LiNC has the highest AUROC of 2 \(0\.\d{4}\)\.", lines[0])
        assert len(lines) <= 5
        assert other in said.getvalue()


def test_without_detection_the_terminal_shows_accuracy(folder: Path) -> None:
    metrics = pd.read_csv(folder / "metrics.csv")
    metrics[:0].to_csv(folder / "metrics.csv", index=False)
    said = StringIO()
    make_report(ResultsFolder(folder), "other", Console(file=said, width=120))
    assert said.getvalue().startswith("Test accuracy: digits")
    assert re.search(r"LiNC minus standard training at the last epoch: [+-]\d+\.\d points\.", said.getvalue())


def test_after_a_run_the_terminal_shows_its_own_runs_and_the_page_all(folder: Path) -> None:
    first, said = files(folder), StringIO()
    run = pd.read_csv(folder / "runs.csv").query("study == 'other' and recipe == 'linc'")["run"].iloc[0]
    make_report(ResultsFolder(folder), "other", Console(file=said, width=200), {run})
    assert "LiNC" in said.getvalue()
    assert "AUM" not in said.getvalue()
    assert files(folder) == first


def test_the_pages_show_every_table_kind_of_figure_and_run(made: Path) -> None:
    details, page = ((made / f"{name}.html").read_text() for name in ("details", "report"))
    for expected in ("LiNC as a corrector", "Test accuracy", "Runs and their settings"):
        assert expected in details
    kinds = {path.stem for path in (made / "figures").rglob("*.svg")}
    assert {"roc_curves", "accuracy_curves"} <= kinds
    assert page.count("<figure>") >= len(kinds)
    assert all(title in page for title in ("ROC curves", "Accuracy", "Leaderboard"))


def test_a_real_run_has_a_report(copied: Path) -> None:
    assert {"tables/demo-modified/paper.md", "tables/demo-modified/auc.tex", "report.html"} <= set(files(copied))


def test_readme_blocks_are_rewritten_between_their_markers(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, "results")
    shutil.move("results/figures", "figures")
    begin, end = "<!-- results of made-up: written by `linc-bench report` -->\n", "<!-- end of made-up -->"
    text = f"Before\n{begin}old\n{end}\n![figure](figures/made-up/roc_curves.png)\n"
    Path("README.md").write_text(text)
    report(Path("results"))
    filled = Path("README.md").read_text()
    assert filled.startswith(
        f"Before\n{begin}**Detection, detectors as their authors define them: digits, 20%, symmetric noise"
    )
    assert filled.endswith(text.partition("old\n")[2])
    assert [path.name for path in Path("figures").rglob("*.png")] == ["roc_curves.png"]
    Path("README.md").write_text(text)
    report(Path("results"))
    assert Path("README.md").read_text() == filled, "an edited block is made again"
    assert [name for name, _ in readme.blocks()] == ["made-up"]


def test_tables_that_were_not_written_by_this_version_are_an_error(folder: Path, fails: Callable[..., str]) -> None:
    rows = pd.read_csv(folder / "runs.csv", dtype=str).drop(columns="protocol")
    rows.to_csv(folder / "runs.csv", index=False)
    assert "lacks the columns protocol" in fails("report", "--results", folder)


def test_rows_of_runs_that_no_table_describes_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = (folder / "runs.csv").read_text().splitlines(keepends=True)
    (folder / "runs.csv").write_text("".join(runs[:-1]))
    run = runs[-1].split(",")[1]
    assert main(["report", "--results", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"curves.csv has rows of 1 runs that runs.csv does not describe, as of {run}. They are left out." in told
    assert main(["doctor", "--results", str(folder)]) == 0
    assert "curves.csv" in capsys.readouterr().out


def test_scores_averaged_over_trainings_are_never_ranked_with_those_of_one(folder: Path) -> None:
    """Nor are the curves that an older version drew from averaged scores."""
    metrics = pd.read_csv(folder / "metrics.csv")
    of_linc = (metrics["detector"] == "LiNC") & (metrics["study"] == "made-up")
    metrics[~of_linc | (metrics["runs_averaged"] == 3)].to_csv(folder / "metrics.csv", index=False)
    rows = {name: read_rows(ResultsFolder(folder), name).query("study == 'made-up'") for name in ("metrics", "roc")}
    averaged = read_rows(ResultsFolder(folder), "averaged").query("study == 'made-up'")
    assert [set(part["detector"]) for part in rows.values()] == [{"AUM"}, {"AUM"}]
    assert set(rows["metrics"]["runs_averaged"]) == {1}
    assert set(averaged["detector"]) == {"AUM", "LiNC"}
    report(folder)
    tables = {path.stem: path.read_text() for path in (folder / "tables" / "made-up").glob("*.md")}
    assert "| LiNC |" in tables["averaged"]
    assert "| LiNC |" not in tables["auc"]
    assert (folder / "figures" / "made-up" / "auc_averaged.svg").exists()


def test_a_study_may_have_any_name(folder: Path) -> None:
    """Also one that with a dash is the beginning of another's."""
    for path in (folder / f"{name}.csv" for name in ("runs", "metrics", "accuracy", "roc")):
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        names = {"made-up": "My_Run.v2", "other": "My_Run.v2-accuracy"}
        rows.assign(study=rows["study"].replace(names)).to_csv(path, index=False)
    report(folder)
    page = (folder / "details.html").read_text()
    anchors = re.findall(r'\bid="([^"]*)"', page)
    assert len(anchors) == len(set(anchors))
    assert "My_Run.v2/auc" in anchors
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(anchors)


def test_unknown_and_missing_studies_are_errors(made: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    assert "other" in fails("report", "othr", "--results", made)
    assert "linc-bench run demo" in fails("report", "demo", "--results", made)
    assert "has no results of any study yet" in fails("report", "--results", tmp_path)


def test_epochs_and_speed_tables() -> None:
    rows = pd.DataFrame({"detector": "AUM", "epochs_read": [1, 2, 3, 4], "auroc": [0.5, 0.9, 0.8, 0.7]})
    assert epochs_table(rows).iloc[0].to_dict() == {
        "detector": "AUM", "1": "0.5000", "2": "0.9000", "3": "0.8000", "4": "0.7000", "best": "0.9000 after 2",
    }  # fmt: skip
    speed = pd.DataFrame(
        {"what": ["step"], "model": ["ViT"], "milliseconds": [0.5], "ratio": [400.0], "against": ["plain"]}
    )
    assert speed_table(speed).iloc[0]["ViT"] == "0.5 ms (400 × plain)"


def test_columns_of_numbers_are_found_by_their_content() -> None:
    table = pd.DataFrame({"recipe": ["a", "b"], "AUROC": ["0.9 ± 0.1", "–"], "n": [1, 2], "note": ["0.9 after 2", "–"]})
    assert are_numbers(in_cells(table)) == [False, True, True, False]
    assert as_markdown("T", table).splitlines()[3] == "| --- | ---: | ---: | --- |"


def test_a_bar_or_a_line_break_in_a_name_stays_in_its_markdown_cell() -> None:
    table = pd.DataFrame({"a|b": ["x|y", "x\ny"], "n": [1, 2]})
    assert as_markdown("t", table).splitlines()[2:] == [
        r"| a\|b | n |",
        "| --- | ---: |",
        r"| x\|y | 1 |",
        "| x y | 2 |",
    ]


def test_latex_escapes_names() -> None:
    assert (
        escape_latex("50 % ± a_b {x} \\ <i>") == r"50 \% $\pm$ a\_b \{x\} \textbackslash{} \textless{}i\textgreater{}"
    )
    text = as_latex("A & B", pd.DataFrame({"detector": ["a_b"], "AUROC": ["0.9 ± 0.1"]}), "x")
    assert r"\toprule" in text
    assert r"a\_b & 0.9 $\pm$ 0.1 \\" in text
    assert r"\caption{A \& B}" in text


def test_an_interval_over_seeds_needs_five_of_them() -> None:
    assert mean_and_spread(pd.Series([1.0, 2.0, 3.0, 4.0]), 1) == "2.5 ± 1.3"
    assert mean_and_spread(pd.Series([1.0, 2.0, 3.0, 4.0, 5.0]), 2) == "3.00 ± 1.58 [1.04, 4.96]"
