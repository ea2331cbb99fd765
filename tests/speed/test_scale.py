"""Thousands of runs: what an executor takes for itself, and planning, `status` and `report` on 5,000 records."""

import json
import os
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from benchmark.cli.command_line import main
from benchmark.disk.files import write_checksums
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import STUDY_TABLES
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.executors import make_executor
from benchmark.report.make_report import make_report
from benchmark.runs.plan import Plan, Sources, plan_study
from benchmark.runs.studies import Study, study_named
from benchmark.runs.units import Outcome, Unit
from benchmark.upkeep.status import DONE, read_status
from tests.speed.conftest import Note

SEEDS, UNITS = 2500, 500
EXECUTORS = {"in this process": (1, None), "two processes": (2, None), "Dask, two processes": (2, "local")}


def study_of(dataset: str, seeds: range) -> Study:
    """The quick demo with as many seeds."""
    demo = study_named("demo")
    (grid,) = demo.grids
    two = [
        replace(line_up, detectors=tuple(one for one in line_up.detectors if one.name in ("LiNC", "AUM")))
        for line_up in grid.line_ups
    ]
    grid = replace(
        grid,
        datasets=(dataset,),
        seeds=tuple((0, seed) for seed in seeds),
        backbone=replace(grid.backbone, image_size=32),
        training=replace(grid.training, epochs=12, batch_size=32),
        line_ups=tuple(two),
    )
    return replace(demo, name="many", grids=(grid,))


@pytest.fixture(scope="module")
def many(quick: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Sources]:
    """A results folder with 5,000 records, of which two were trained and the others say that they were."""
    dataset = quick[quick.index("--dataset") + 1]
    root = tmp_path_factory.mktemp("many")
    assert main([*quick, "--detector", "LiNC", "--detector", "AUM", "--workers", "1", "--results", str(root)]) == 0
    sources = Sources(ResultsFolder(root))
    trained = {unit.run.recipe.name: unit for unit in plan_study(study_of(dataset, range(1)), sources).units}
    study = study_of(dataset, range(SEEDS))
    for unit in plan_study(study, sources).to_train:
        _pretend(unit, trained[unit.run.recipe.name], sources)
    for table in (table.name for table in STUDY_TABLES):
        _repeat_rows(sources.results.table_data(table), SEEDS)
    return study, sources


def _pretend(unit: Unit, trained: Unit, sources: Sources) -> None:
    """The record of a trained run under another seed; signals are the same files."""
    folder = sources.record(unit)
    folder.mkdir()
    for file in sources.record(trained).iterdir():
        if file.suffix == ".npy":
            os.link(file, folder / file.name)
        else:
            shutil.copy(file, folder)
    about = json.loads((folder / "record.json").read_text())
    about["settings"]["training"]["seed"] = unit.run.training.seed
    (folder / "record.json").write_text(json.dumps(about))
    write_checksums(folder)
    shutil.copytree(sources.results.all_scores(trained.run_id), sources.results.all_scores(unit.run_id))


def _repeat_rows(path: Path, seeds: int) -> None:
    """As if the same had come out for every seed."""
    rows = pd.read_csv(path)
    copies = []
    for seed in range(seeds):
        changed = {"run": rows["run"].str.replace("-t0-", f"-t{seed}-"), "study": "many", "training_seed": seed}
        copies.append(rows.assign(**{column: value for column, value in changed.items() if column in rows}))
    pd.concat(copies).to_csv(path, index=False)


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def test_planning(many: tuple[Study, Sources], compare: Note) -> None:
    plans: list[Plan] = []
    taken = seconds(lambda: plans.append(plan_study(*many)))
    assert len(plans[0].units) == 2 * SEEDS
    assert not plans[0].to_train
    compare("planning a study whose runs are all there", "5,000 records", taken)


def test_status(many: tuple[Study, Sources], compare: Note) -> None:
    results = many[1].results
    taken = seconds(lambda: read_status(results))
    assert [run.state for run in read_status(results)] == [DONE] * 2 * SEEDS
    compare("status", "5,000 records", taken)


def test_report(many: tuple[Study, Sources], compare: Note) -> None:
    taken = seconds(lambda: make_report(many[1].results, "many", Console(quiet=True)))
    compare("report", "5,000 records", taken)


def some_of(many: tuple[Study, Sources]) -> Plan:
    """500 of the units."""
    grids = (replace(many[0].grids[0], seeds=tuple((0, seed) for seed in range(UNITS // 2))),)
    plan = plan_study(replace(many[0], grids=grids), many[1])
    assert len(plan.units) == UNITS
    return plan


def test_evaluation_of_more_records_than_files_may_be_open(many: tuple[Study, Sources], compare: Note) -> None:
    plan = some_of(many)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        taken = seconds(lambda: evaluate(plan, [Outcome(unit.run.run_id) for unit in plan.units]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    compare("evaluation", "500 records", taken)


def nothing(unit: Unit) -> Outcome:
    return Outcome(unit.run.run_id)


@pytest.mark.parametrize("name", EXECUTORS)
def test_what_an_executor_takes_per_unit(name: str, many: tuple[Study, Sources], compare: Note) -> None:
    """Of units that have nothing to do: sending them there and their outcome back."""
    workers, dask = EXECUTORS[name]
    units = some_of(many).units
    with make_executor(workers, dask=dask) as executor:
        for future in [executor.submit(time.sleep, 1) for _ in range(2 * workers)]:
            future.result()  # workers begin with their first call
        executor.submit(nothing, units[0]).result()
        taken = seconds(lambda: [future.result() for future in [executor.submit(nothing, unit) for unit in units]])
    compare("an executor's own cost per unit", name, taken / UNITS)
