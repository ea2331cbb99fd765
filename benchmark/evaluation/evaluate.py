"""From records and scores to the small committed CSV files; the only reader of the answer keys."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from benchmark.disk import STUDY_TABLES
from benchmark.disk.tables import merge_rows, read_table
from benchmark.evaluation.detection import detection_rows
from benchmark.evaluation.run_rows import Rows, judged_run, run_rows
from benchmark.identity import Json, label_of
from benchmark.runs import Outcome, Plan, Unit


def evaluate(plan: Plan, outcomes: list[Outcome]) -> None:
    """Writes this plan's rows into the results folder's tables, in place of older rows of the same runs."""
    outcome_of = {outcome.run_id: outcome for outcome in outcomes}
    rows: Rows = {table.name: [] for table in STUDY_TABLES}
    is_mislabelled: dict[Unit, np.ndarray] = {}
    for unit in (unit for unit in plan.units if outcome_of[unit.run_id].error is None):
        run = judged_run(unit, plan.sources)  # one at a time, since a process may open only so many files
        is_mislabelled[unit] = run.is_mislabelled
        for table, new in run_rows(plan, unit, run).items():
            rows[table] += new
    rows |= detection_rows(plan, outcome_of, is_mislabelled)  # of other tables
    order = {unit.run_id: number for number, unit in enumerate(plan.units)}
    rows["metrics"].sort(key=lambda row: order[row["run"]])
    stale = _stale_runs(plan)
    for table, new in rows.items():
        merge_rows(plan.sources.results, table, new, partial(_is_replaced, plan, stale, new))


def _stale_runs(plan: Plan) -> set[str]:
    """Runs of this study with the setting, seeds and recipe of a planned run, made by another version of the code."""
    runs = read_table(plan.sources.results, "runs")
    columns = ["setting", "noise_seed", "training_seed", "recipe"]
    planned = {(unit.run.setting_id, *unit.run.seeds, label_of(unit.run.recipe)) for unit in plan.units}
    own = runs[runs["study"] == plan.study.name]
    same = [tuple(row) in planned for row in own[columns].itertuples(index=False)]
    return set(own.loc[same, "run"]) - {unit.run_id for unit in plan.units}


def _is_replaced(plan: Plan, stale: set[str], new: Sequence[Json], old: pd.DataFrame) -> pd.Series:
    """All rows of a study that was run as it is; of a modified one, those of its runs and detectors.

    Rows of a table without studies may belong to other studies too: only those of runs with new rows are replaced.
    """
    is_stale = old["run"].isin(stale)
    if "study" not in old:
        return is_stale | old["run"].isin({row["run"] for row in new})
    replaced = old["study"] == plan.study.name
    if plan.study.is_modified:
        replaced &= old["run"].isin([unit.run_id for unit in plan.units])
        if "detector" in old:
            replaced &= old["detector"].isin([detector.label for detector in plan.study.detectors])
    return replaced | is_stale
