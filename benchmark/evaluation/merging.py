"""How a plan's rows join those that are there: what was not run keeps its rows, and so does what failed this time.

New rows replace those of the same study and run, and where a table has detectors, of the same line-up, detector and
number of trainings. A row that no plan makes any more stays until a person removes it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import partial

import pandas as pd

from benchmark.disk import locked
from benchmark.disk.tables import merge_rows, read_as_text, read_table
from benchmark.evaluation.detection import TRAINING
from benchmark.evaluation.run_rows import Rows
from benchmark.identity import Json, label_of
from benchmark.runs import Plan

Entry = tuple[str, str, str, int]  # run, line-up, detector, and over how many trainings scores are averaged
Known = dict[Entry, Json]  # rows of the table of metrics
DIFFERENCES = ("minus_linc", "minus_linc_low", "minus_linc_high")


def merge_plan(plan: Plan, rows: Rows) -> None:
    """Writes the rows of a plan into the tables of its results folder, while no other command does the same."""
    with locked(plan.sources.results.locks, "evaluation"):
        _merge(plan, rows)


def _merge(plan: Plan, rows: Rows) -> None:
    before, after = _metrics_before(plan), {_entry(row): row for row in rows["metrics"]}
    for entry in after.keys() & before.keys():
        _keep_differences(before[entry], after[entry])
    replaced, scored, kept = set[Entry](), set[Entry](), set[Entry]()
    for entry in _planned(plan):
        now, then = (entry in known and known[entry]["status"] != "failed" for known in (after, before))
        for chosen in (replaced, scored) if now else (kept,) if then and entry in after else (replaced,):
            chosen.add(entry)
    stale = _stale_runs(plan, {row["run"] for row in rows["runs"]})
    for table, new in rows.items():
        if new and "detector" in new[0]:
            new = [row for row in new if _entry(row) not in kept]
        entries = replaced if table == "metrics" else scored
        if table == "agreement":
            new, entries = _with_older_pairs(plan, new)
        is_replaced = partial(_is_replaced, plan.study.name, stale, entries, {row["run"] for row in new})
        merge_rows(plan.sources.results, table, new, is_replaced)


def _is_replaced(
    study: str, stale: set[str], entries: Collection[Entry], runs: set[str], old: pd.DataFrame
) -> pd.Series:
    """By entry in a table with detectors, otherwise by run. A table without studies has the rows of all of them."""
    if "detector" in old:
        replaced = pd.Series([_entry(row) in entries for row in old.to_dict("records")], index=old.index, dtype=bool)
    else:
        replaced = old["run"].isin(runs)
    return ((old["study"] == study) & replaced if "study" in old else replaced) | old["run"].isin(stale)


def _stale_runs(plan: Plan, made: set[str]) -> set[str]:
    """Runs of this study that another version of the code made with the setting, seeds and recipe of a new run."""
    runs = read_table(plan.sources.results, "runs")
    columns = ["setting", "noise_seed", "training_seed", "recipe"]
    planned = {
        (unit.run.setting_id, *unit.run.seeds, label_of(unit.run.recipe)) for unit in plan.units if unit.run_id in made
    }
    own = runs[runs["study"] == plan.study.name]
    same = [row in planned for row in own[columns].itertuples(index=False, name=None)]
    return set(own.loc[same, "run"]) - made


def _entry(row: Json) -> Entry:
    """Tables other than that of metrics have rows of one training only."""
    return row["run"], row["line_up"], row["detector"], int(float(row.get("runs_averaged", 1)))


def _metrics_before(plan: Plan) -> Known:
    """And of every run that was trained, as an entry that did not fail."""
    metrics, runs = (read_as_text(plan.sources.results, name) for name in ("metrics", "runs"))
    own = metrics[metrics["study"] == plan.study.name].to_dict("records")
    trained = runs.loc[runs["study"] == plan.study.name, ["run", "recipe"]].itertuples(index=False)
    done = {(run, TRAINING, recipe, 0): {"status": "ok"} for run, recipe in trained}
    return {_entry(row): row for row in own} | done


def _keep_differences(before: Json, after: Json) -> None:
    """A detector with the same AUROC keeps its difference to the reference, if that was not scored this time."""
    is_comparable = before["status"] == after["status"] == "ok" and "minus_linc" not in after
    if is_comparable and float(before["auroc"] or "nan") == after["auroc"]:
        after |= {column: before[column] for column in DIFFERENCES}


def _planned(plan: Plan) -> Iterator[Entry]:
    """Every entry that the plan may make a row of."""
    for unit in plan.units:
        yield unit.run_id, TRAINING, label_of(unit.run.recipe), 0
        for line_up in plan.study.line_ups:
            for detector in (detector for detector in line_up.detectors if detector in unit.detectors):
                for units in plan.judged_together(unit, detector):
                    yield unit.run_id, line_up.name, detector.label, len(units)


def _with_older_pairs(plan: Plan, new: list[Json]) -> tuple[list[Json], set[Entry]]:
    """With pairs of detectors that were compared before and not now, in their order; and the entries of older pairs.

    One of the runs with the same setting and seeds has the pairs of them all.
    """
    compared: dict[object, object] = {unit.run_id: (unit.run.setting_id, *unit.run.seeds) for unit in plan.units}
    groups: dict[object, dict[tuple[str, str], Json]] = defaultdict(dict)
    for row in new:
        groups[compared[row["run"]], row["line_up"]][row["detector"], row["other"]] = row
    replaced, old = set[Entry](), read_table(plan.sources.results, "agreement")
    old = old[(old["study"] == plan.study.name) & old["run"].isin(compared)]
    for (run, line_up), part in old.groupby(["run", "line_up"], sort=False):
        if pairs := groups.get((compared[run], line_up)):
            before = {(row["detector"], row["other"]): row for row in part.to_dict("records")}
            replaced |= set(map(_entry, before.values()))
            if before.keys() - pairs.keys():
                groups[compared[run], line_up] = {pair: row | {"run": run} for pair, row in (before | pairs).items()}
    return [row for pairs in groups.values() for row in pairs.values()], replaced
