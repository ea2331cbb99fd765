"""From records, scores and answer keys to the small committed CSV files."""

import numpy as np

from benchmark.disk import STUDY_TABLES
from benchmark.evaluation.backbone_checks import check_columns, keep_checks
from benchmark.evaluation.detection import detection_rows
from benchmark.evaluation.duplicate_rows import write_duplicates
from benchmark.evaluation.merging import merge_plan
from benchmark.evaluation.noise_rows import NoiseRows
from benchmark.evaluation.run_rows import Rows, judged_run, run_rows
from benchmark.runs import Outcome, Plan, Unit


def evaluate(plan: Plan, outcomes: list[Outcome]) -> None:
    """Writes this plan's rows into the results folder's tables, in the place of older rows of the same runs."""
    outcome_of = {outcome.run_id: outcome for outcome in outcomes}
    rows: Rows = {table.name: [] for table in STUDY_TABLES}
    is_mislabelled: dict[Unit, np.ndarray] = {}
    done = [unit for unit in plan.units if outcome_of[unit.run_id].error is None]
    noise = NoiseRows(plan)
    keep_checks(done, plan.sources)
    for unit in done:
        run = judged_run(unit, plan.sources)  # one at a time, since a process may open only so many files
        is_mislabelled[unit] = run.is_mislabelled
        for table, new in run_rows(plan, unit, run).items():
            rows[table] += new
        rows["runs"][-1] |= check_columns(unit, plan.sources)
        noise.add(unit, run)
    rows |= detection_rows(plan, outcome_of, is_mislabelled)  # of other tables
    order = {unit.run_id: number for number, unit in enumerate(plan.units)}
    rows["metrics"].sort(key=lambda row: order[row["run"]])
    merge_plan(plan, rows)
    noise.write()
    for unit in {unit.info: unit for unit in is_mislabelled}.values():
        write_duplicates(unit, plan.sources)
