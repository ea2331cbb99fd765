"""Which rows of the CSV tables a run replaces: its own, and never good ones by a failure."""

import shutil
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pytest

from benchmark.cli.command_line import command_line, main
from benchmark.cli.overrides import Overrides, overridden
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import CHECKS
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError
from benchmark.evaluation import merging
from benchmark.evaluation.evaluate import evaluate
from benchmark.runs import Outcome, Sources, plan_study, run_unit, study_named
from benchmark.runs.units import Unit
from tests.conftest import QUICK_DETECTORS
from tests.test_interruptions import Quick
from tests.test_upkeep import failing, one

pytestmark = pytest.mark.usefixtures("without_report")


@pytest.fixture
def unmodified(quick: Quick, copied: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of a study of the suite, as far as the command line knows, with everything done."""
    arguments = command_line().parse_args([*quick])
    study = overridden(study_named("demo"), Overrides.from_options(arguments))
    mine = replace(study, name="mine", is_modified=False)
    monkeypatch.setattr("benchmark.cli.studies.study_named", lambda name: mine)
    command = ["run", "mine", "--workers", "1", "--results", str(copied)]
    assert main(command) == 0
    return command


def rows_of(results: Path) -> dict[str, list[str]]:
    """Lines of every table, without what differs from time to time."""
    tables = {path.stem: pd.read_csv(path, dtype=str, keep_default_na=False) for path in results.glob("*.csv")}
    return {
        name: sorted(map(str, rows.drop(columns="seconds", errors="ignore").to_numpy().tolist()))
        for name, rows in tables.items()
    }


@pytest.mark.parametrize("recipe", ["linc", "standard"])
def test_what_failed_this_time_keeps_the_rows_it_had(
    recipe: str, unmodified: list[str], copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone, where a download fails: no accuracy, curve, ROC curve or AUROC is lost, and no comparison."""
    before, real = rows_of(copied), run_unit.run_unit

    def fail(unit: Unit, *others: object) -> object:
        if unit.run.recipe.name == recipe:
            raise LincBenchError("no download")
        return real(unit, *others)

    monkeypatch.setattr(run_unit, "run_unit", fail)
    shutil.rmtree(one(copied, f"runs/*-{recipe}-*"))
    assert main(unmodified) == 1
    assert rows_of(copied) == before
    assert main([*unmodified, "--detector", "LiNC", "--detector", "AUM", "--name", "mine"]) == 1
    assert rows_of(copied) == before, "nor if the study is modified"


def test_a_failed_row_is_added_only_where_there_is_none_and_goes_when_it_is_done(
    unmodified: list[str], copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, metrics = rows_of(copied), copied / "metrics.csv"
    rows = pd.read_csv(metrics, dtype=str, keep_default_na=False)
    rows[(rows["study"] != "mine") | (rows["detector"] != "LiNC")].to_csv(metrics, index=False)
    monkeypatch.setattr(run_unit, "run_unit", failing([LincBenchError("no download")]))
    assert main(unmodified) == 1
    rows = pd.read_csv(metrics).query("study == 'mine' and detector == 'LiNC'")
    assert set(rows["status"]) == {"failed"}
    assert main(unmodified) == 0
    assert rows_of(copied) == before


def test_rows_that_no_plan_makes_stay(unmodified: list[str], copied: Path) -> None:
    """Of a detector, of a run and of a data set that the study no longer has."""
    for path in copied.glob("*.csv"):
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        old = dict.fromkeys({"setting", "protocol"} & {*rows}, "old")
        key = "run" if "run" in rows else "data"
        added = [rows.assign(**{key: rows[key] + "0"}, **old)]
        added += [rows[rows["detector"] == "AUM"].assign(detector="a detector")] if "detector" in rows else []
        pd.concat([rows, *added]).to_csv(path, index=False)
    before = rows_of(copied)
    assert main(unmodified) == 0
    assert rows_of(copied) == before


def test_detectors_that_are_scored_one_after_the_other_are_compared_in_one_place(
    unmodified: list[str], copied: Path
) -> None:
    """The run that has the agreement of all detectors is that of the first; nothing is there twice."""
    before = rows_of(copied)["agreement"]
    for detector in ("LiNC", "AUM"):
        assert main([*unmodified, "--detector", detector, "--name", "mine"]) == 0
        pairs = read_table(ResultsFolder(copied), "agreement").query("study == 'mine' and line_up == 'original'")
        assert not pairs.duplicated(["detector", "other"]).any()
        assert len(pairs) == len(QUICK_DETECTORS) ** 2
    assert main(unmodified) == 0
    assert rows_of(copied)["agreement"] == before


def test_rows_are_merged_with_those_that_another_program_saved(unmodified: list[str], copied: Path) -> None:
    """A whole number as 1.0, and no AUROC, which tables may have."""
    metrics, before = copied / "metrics.csv", rows_of(copied)
    rows = pd.read_csv(metrics, dtype=str, keep_default_na=False)
    rows.loc[rows["detector"] == "AUM", "auroc"] = ""
    rows.assign(runs_averaged=rows["runs_averaged"] + ".0").to_csv(metrics, index=False)
    assert main([*unmodified, "--detector", "AUM", "--name", "mine"]) == 0
    assert main(unmodified) == 0
    own = [line for line in rows_of(copied)["metrics"] if line.startswith("['mine'")]
    assert own == [line for line in before["metrics"] if line.startswith("['mine'")]


def test_rows_of_an_earlier_version_are_read_and_merged(unmodified: list[str], copied: Path) -> None:
    """It had fewer columns; what is run again has them all."""
    path, columns = copied / "runs.csv", list(CHECKS)
    before = pd.read_csv(path, dtype=str, keep_default_na=False)
    before.drop(columns=columns).to_csv(path, index=False)
    assert read_table(ResultsFolder(copied), "runs")[columns].isna().all(axis=None)
    assert main(unmodified) == 0
    after = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert set(after["study"]) > {"mine"}
    before.loc[before["study"] != "mine", columns] = ""
    pd.testing.assert_frame_equal(after, before)


def test_two_commands_that_end_at_the_same_time_write_each_pair_once(
    quick: Quick, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one writes its rows after the first has read what is there, or waits."""
    shutil.copytree(quick_run, tmp_path / "results")
    (tmp_path / "results" / "agreement.csv").unlink()
    study = overridden(study_named("demo"), Overrides.from_options(command_line().parse_args([*quick])))
    plan = plan_study(study, Sources(ResultsFolder(tmp_path / "results")))
    outcomes = [Outcome(unit.run_id) for unit in plan.units]
    second, real = Thread(target=evaluate, args=(plan, outcomes)), merging._with_older_pairs

    def slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(merging, "_with_older_pairs", real)
        read = real(*arguments)
        second.start()
        second.join(timeout=2)
        return read

    monkeypatch.setattr(merging, "_with_older_pairs", slowly)
    evaluate(plan, outcomes)
    second.join()
    agreement = read_table(plan.sources.results, "agreement")
    assert len(agreement)
    assert not agreement.duplicated(["run", "line_up", "detector", "other"]).any()
