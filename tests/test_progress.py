"""How far units are is read from what they say of themselves, and never goes back while they are being scored."""

import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from benchmark.disk.files import locked, write_json
from benchmark.disk.results_folder import ResultsFolder
from benchmark.execution import progress
from benchmark.execution.progress import Progress
from benchmark.runs.plan import Sources, plan_study
from benchmark.runs.studies import study_named
from benchmark.upkeep.status import RUNNING, read_status
from tests.test_interruptions import wait_for


def test_a_run_that_is_trained_and_being_scored_counts_as_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    demo, results = study_named("demo"), ResultsFolder(tmp_path)
    grid = replace(demo.grids[0], seeds=((0, 0),), line_ups=())
    plan = plan_study(replace(demo, grids=(grid,)), Sources(results))
    epochs, said = grid.training.epochs, StringIO()
    trained, begun = (results.running(unit.run.run_id) for unit in plan.units)
    with Progress(Console(file=said)).training(results, {unit.run_id: epochs for unit in plan.units}):
        write_json(begun, {"epoch": 3, "epochs": epochs, "since": time.time()})
        write_json(trained, {"epoch": epochs, "epochs": epochs, "since": time.time()})
        wait_for(lambda: f"{epochs + 3} of {2 * epochs}" in said.getvalue(), "a look at both")
        trained.unlink()
        said.truncate(0)
    assert f"{epochs + 3} of {2 * epochs}" in said.getvalue()


def test_epochs_of_a_process_that_was_killed_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    results, said = ResultsFolder(tmp_path), StringIO()
    write_json(results.running("a-run"), {"epoch": 8, "epochs": 10, "since": time.time() - 1000})
    with Progress(Console(file=said)).training(results, {"a-run": 10}):
        wait_for(lambda: "0 of 10" in said.getvalue(), "a look at the old note")
        write_json(results.running("a-run"), {"epoch": 1, "epochs": 10, "since": time.time()})
        wait_for(lambda: "1 of 10" in said.getvalue(), "a look at the new one")
    assert "8 of 10" not in said.getvalue()
    assert "left" in said.getvalue()
    assert "-" not in said.getvalue(), "no negative time"


def test_a_slow_detector_is_named_with_its_time_also_if_nothing_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.4)
    results, said = ResultsFolder(tmp_path), StringIO()
    telling = Progress(Console(file=said, width=200))
    for run_id, since in (("a-run", time.time()), ("old", time.time() - 1000), ("unknown", time.time())):
        note = {"epoch": 3, "epochs": 3, "process": 1, "machine": "m", "scoring": "mine", "since": since}
        write_json(results.running(run_id), note)
    with telling.training(results, {"a-run": 0, "old": 0}):
        wait_for(lambda: said.getvalue().count("mine has been scoring a-run for") >= 2, "two lines")
    assert said.getvalue().count("\n") <= 3, "each after twice the time"
    assert "training" not in said.getvalue()
    with locked(results.locks, "a-run"):
        (state,) = (run for run in read_status(results) if run.state == RUNNING)
    assert state.details.startswith("scoring mine for ")
