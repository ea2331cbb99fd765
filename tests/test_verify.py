"""Committed rows, picked at random, can be reproduced from nothing."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from benchmark.cli.command_line import main
from benchmark.disk.results_folder import ResultsFolder
from benchmark.networks import Backbone
from benchmark.runs.plan import Sources
from benchmark.runs.studies import STUDIES, Grid, LineUp, Study
from benchmark.training import TrainingSettings
from benchmark.upkeep.verify import DIFFERS, MISSING, SAME, WITHIN, choose, judge, plans_of
from detectors import detector_named
from detectors.el2n import EL2N
from detectors.grand import GraNd


@pytest.fixture(scope="module", autouse=True)
def small(odd_or_even: Path, quick_run: Path) -> Iterator[Study]:
    """A study of the suite, as far as the command line knows: two seeds, and for one detector a second training.

    The folder that all tests share is made before reports are left out, since others read its report.
    """
    line_up = LineUp("original", (detector_named("LiNC"), detector_named("AUM"), EL2N()))
    training, backbone = TrainingSettings(epochs=3, batch_size=64), Backbone(image_size=32)
    grid = Grid((str(odd_or_even),), (0.2,), seeds=((0, 0), (0, 1)), training=training, backbone=backbone)
    twice = replace(grid, seeds=((0, 0),), line_ups=(LineUp("original", (GraNd(epoch=1),)),), trainings=2)
    small = Study("small", "two seeds of very little", (replace(grid, line_ups=(line_up,)), twice))
    studies = {study.name: study for study in (*STUDIES, small)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.cli.upkeep.STUDIES", tuple(studies.values()))
        patch.setattr("benchmark.cli.upkeep.study_named", studies.__getitem__)
        patch.setattr("benchmark.cli.studies.study_named", studies.__getitem__)
        patch.setattr("benchmark.cli.studies.make_report", lambda *_: None)
        yield small


@pytest.fixture(scope="module")
def made(small: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("made") / "results"
    assert main(["run", "small", "--workers", "1", "--results", str(results)]) == 0
    for folder in ("runs", "scores", "features", "labels", "answers"):
        shutil.rmtree(results / folder)  # a clone has the small files only
    return results


@pytest.fixture
def committed(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "results"))


def test_rows_are_made_again_to_the_last_digit(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in committed.glob("*.csv")}
    assert main(["verify", "--sample", "100", "--workers", "1", "--results", str(committed)]) == 0
    said = capsys.readouterr().out
    # Three detectors on two seeds, GraNd on one of them and averaged over two trainings, accuracy of four runs.
    rows = 3 * 2 + 2 + 4
    assert f"{rows} of {rows} rows" in said
    assert f"of {rows} rows recomputed" in " ".join(said.split())
    assert "within tolerance" not in said
    assert "differs" not in said
    assert {path.name: path.read_bytes() for path in committed.glob("*.csv")} == before, "nothing is written"
    assert not (committed / "runs").exists()


def test_numbers_that_were_typed_in_are_found(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = committed / "accuracy.csv"
    columns = ["last_test", "best_batch_mean", "true_rate", "samples"]
    rows = pd.read_csv(path)[:1]
    rows[columns] += 1
    rows["best_test_without_twins"] = None  # as in a row from before there was this column
    rows.to_csv(path, index=False)
    (committed / "metrics.csv").unlink()
    assert main(["verify", "--sample", "1", "--workers", "1", "--results", str(committed)]) == 1
    said = capsys.readouterr().out
    assert "4 differs" in said
    assert all(column in said for column in columns)


def test_a_row_of_a_run_that_no_study_has_is_counted(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = committed / "accuracy.csv"
    rows = pd.read_csv(path)
    rows.loc[0, "run"] = "made-up"
    rows.to_csv(path, index=False)
    (committed / "metrics.csv").unlink()
    assert main(["verify", "--sample", "1", "--workers", "1", "--results", str(committed)]) == 0
    assert "1 of 3 rows that can be recomputed here (1 cannot" in capsys.readouterr().out


def test_the_same_seed_picks_the_same_rows(made: Path, small: Study) -> None:
    results = ResultsFolder(made)
    plans = plans_of([small], Sources(results), [])
    first, second, other = ([choice.name for choice in choose(results, plans, 5, seed)[0]] for seed in (7, 7, 8))
    assert first == second != other


def test_rows_that_nobody_can_make_here_are_said_to_be_so(fails: Callable[..., str], quick_run: Path) -> None:
    assert (quick_run / "report.html").exists(), "whichever file of tests is the first to ask for it"
    said = fails("verify", "paper-auc", "--results", quick_run)
    assert "can be made again with these options" in said
    assert "--dataset NAME=PATH" in said
    assert "expected NAME=PATH" in fails("verify", "demo", "--dataset", "digits", "--results", quick_run)
    assert "breastmnist" in fails("verify", "detection", "--dataset", "breastmnits=a.npz", "--results", quick_run)
    assert "--seed is -1" in fails("verify", "--seed", "-1", "--results", quick_run)


def test_judgements() -> None:
    assert judge(0.5, 0.5, 0.01) == SAME
    assert judge(0.5, 0.505, 0.01) == WITHIN
    assert judge(0.5, 0.52, 0.01) == DIFFERS
    assert judge("linc", "standard", 0.01) == DIFFERS
    assert judge(float("nan"), float("nan"), 0.0) == SAME
    assert judge(0.5, None, 0.01) == MISSING


@pytest.fixture
def beside(quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed folder beside the default one, in which everything is done."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(quick_run, "output")
    Path("results").mkdir()
    for table in ("metrics.csv", "accuracy.csv"):
        shutil.copy(quick_run / table, "results")
    return Path("results")


@pytest.mark.parametrize(
    ("moved", "says"),
    [
        (0.0, "and all are the same."),
        (
            4e-7,
            "11 are the same. Differences: 1, at most 4e-07, which another processor may cause; none in the first 4",
        ),
        (0.003, "Differences: 1, at most 0.003, which another processor may cause; 1 in the first 4 digits."),
        (0.3, "Differences: 1, at most 0.3, more than another processor causes; 1 in the first 4 digits."),
    ],
)
def test_run_ends_by_saying_whether_its_numbers_are_those_committed(
    quick: tuple[str, ...], beside: Path, moved: float, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pd.read_csv(beside / "metrics.csv")
    at = rows.index[rows["detector"] == "AUM"][0]
    rows.loc[at, "auroc"] -= moved
    rows["study"] = "of-another-name"  # the runs are the same
    rows.to_csv(beside / "metrics.csv", index=False)
    assert main([*quick, "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "12 of these numbers are committed too (8 AUROCs, 4 accuracies)" in said
    assert says in said
    assert ("AUM (original): auroc " in said) is bool(moved)


def test_committed_rows_that_cannot_be_read_fail_no_run(
    quick: tuple[str, ...], beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (beside / "metrics.csv").write_text("by another program")
    assert main([*quick, "--workers", "1"]) == 0
    assert "not compared with those committed" in capsys.readouterr().out


def test_other_runs_and_the_committed_folder_itself_are_not_compared(
    quick: tuple[str, ...], beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in beside.glob("*.csv"):
        table.write_text(table.read_text().splitlines(keepends=True)[0])
    assert main([*quick, "--workers", "1"]) == 0
    shutil.rmtree("results")
    Path("output").rename("results")
    assert main([*quick, "--workers", "1", "--results", "results"]) == 0
    assert "committed" not in capsys.readouterr().out
