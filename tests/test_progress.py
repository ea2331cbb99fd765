"""How far units are is read from what they say of themselves, and never goes back while they are being scored."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from benchmark.disk.files import write_json
from benchmark.disk.results_folder import ResultsFolder
from benchmark.execution import progress
from benchmark.execution.progress import Progress
from benchmark.runs.plan import Sources, plan_study
from benchmark.runs.studies import study_named
from tests.test_interruptions import wait_for


def test_a_run_that_is_trained_and_being_scored_counts_as_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    demo, results = study_named("demo"), ResultsFolder(tmp_path)
    grid = replace(demo.grids[0], training_seeds=(0,), line_ups=())
    plan = plan_study(replace(demo, grids=(grid,)), Sources(results))
    epochs, said = grid.training.epochs, StringIO()
    trained, begun = (results.running(unit.run.run_id) for unit in plan.units)
    with Progress(Console(file=said)).training(results, {unit.run_id: epochs for unit in plan.units}):
        write_json(begun, {"epoch": 3, "epochs": epochs})
        write_json(trained, {"epoch": epochs, "epochs": epochs})
        wait_for(lambda: f"{epochs + 3} of {2 * epochs}" in said.getvalue(), "a look at both")
        trained.unlink()
        said.truncate(0)
    assert f"{epochs + 3} of {2 * epochs}" in said.getvalue()
