"""`linc-bench verify`: picks committed rows at random, makes them again from nothing, and compares.

On the machine that made them, rows come out the same to the last digit. Another processor rounds differently, and
training for many epochs turns that into other digits: as far as TOLERANCE they count as the same. (The demo, made on
two processors: AUROCs moved by up to 0.012, accuracies by 0.011.)
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmark.data.datasets import missing_file
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError, unknown_name
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.progress import Progress
from benchmark.runs.pipeline import carry_out
from benchmark.runs.plan import Plan, RunSettings, Sources, Unit, plan_study, signals_for
from benchmark.runs.studies import Study
from detectors import Detector

# How far a number may move on another processor; what is not named, and text, has to be the same.
TOLERANCE = {
    **dict.fromkeys(("auroc", "auroc_low", "auroc_high"), 0.02),
    **dict.fromkeys(("auprc", "precision_at_rate", "recall_1", "recall_5", "recall_10", "recall_20", "ties"), 0.03),
    **dict.fromkeys(("best_test", "last_test", "best_batch_mean", "last_batch_mean"), 0.03),
    **dict.fromkeys(("test_by_noisy_validation", "test_by_clean_validation"), 0.03),
}
# Scoring seconds differ every time; differences to LiNC take LiNC's run as well, and follow from its row and this one.
NOT_COMPARED = ("study", "run", "seconds", "minus_linc", "minus_linc_low", "minus_linc_high", "status", "reason")
SAME, WITHIN, DIFFERS, MISSING = "the same", "within tolerance", "differs", "missing"
KEYS = {"metrics": ["run", "line_up", "detector"], "accuracy": ["run"]}


@dataclass(frozen=True)
class Choice:
    """A committed row, and the units of a plan that it takes to make it again."""

    table: str
    row: pd.Series
    plan: Plan
    units: tuple[Unit, ...]

    @property
    def name(self) -> str:
        what = f"{self.row['detector']} ({self.row['line_up']})" if self.table == "metrics" else "accuracy"
        return f"{self.row['study']}: {self.row['run']}, {what}"


def plans_of(studies: Sequence[Study], sources: Sources, files: Sequence[str]) -> list[Plan]:
    """Of each study, with the files that are named (NAME=PATH), and with the weights file as well as without it."""
    named = dict(_name_and_path(text) for text in files)
    known = [name for study in studies for name in study.datasets]
    for name in named:
        if name not in known:
            raise unknown_name("data set of a study", name, dict.fromkeys(known))
    plans = []
    for study, weights in product(studies, dict.fromkeys([sources.weights_file, None])):
        grids = [replace(grid, datasets=tuple(named.get(name, name) for name in grid.datasets)) for grid in study.grids]
        plans.append(plan_study(replace(study, grids=tuple(grids)), replace(sources, weights_file=weights)))
    return plans


def _name_and_path(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals:
        raise LincBenchError(f"--dataset is {text!r}; expected NAME=PATH, the file that was used for a data set.")
    return name, path


def choose(results: ResultsFolder, plans: Iterable[Plan], count: int, seed: int) -> tuple[list[Choice], int, int]:
    """So many rows that can be made here, how many there are of these, and of those that cannot."""
    units = [(plan, unit) for plan in plans for unit in plan.units if _is_here(unit)]
    planned = {(plan.study.name, unit.run.run_id): (plan, unit) for plan, unit in units}
    known, others = [], 0
    for table in KEYS:
        rows = read_table(results, table)
        for _, row in (rows[rows["status"] == "ok"] if "status" in rows else rows).iterrows():
            of_it = planned.get((row["study"], row["run"]))
            found = _choices(table, row, *of_it) if of_it else []
            known += found
            others += not found
    if not known:
        raise LincBenchError(
            f"None of the {others} rows in {results.root} can be made again with these options. Say where their data "
            "sets and weights are, with --data-root, --dataset NAME=PATH and --weights, as in the command that made "
            "them."
        )
    picked = np.random.default_rng(seed).permutation(len(known))[:count]
    return [known[index] for index in picked], len(known), others


def _is_here(unit: Unit) -> bool:
    return missing_file(unit.dataset_argument, unit.sources.data_root) is None


def _choices(table: str, row: pd.Series, plan: Plan, unit: Unit) -> list[Choice]:
    """One, or none if the row is of a detector that is not the suite's own."""
    if table == "accuracy":
        return [Choice(table, row, plan, (_reduced(unit, ()),))]
    choices = []
    for detector in (detector for detector in unit.detectors if detector.label == row["detector"]):
        readers = [one for one in plan.units if detector in one.detectors]
        runs = [one for one in readers if one.run.all_but_training_seed == unit.run.all_but_training_seed]
        needed = runs if row["runs_averaged"] > 1 else [unit]
        choices.append(Choice(table, row, plan, tuple(_reduced(one, (detector,)) for one in needed)))
    return choices


def _reduced(unit: Unit, detectors: tuple[Detector, ...]) -> Unit:
    """The same run with nothing recorded that is not needed: training does not notice."""
    return replace(unit, detectors=detectors, signals=signals_for(unit.run.recipe, detectors))


def make_again(choices: Sequence[Choice], executor: Executor, progress: Progress) -> dict[str, pd.DataFrame]:
    """The tables of a results folder of its own, in which nothing but the chosen rows of one plan is made."""
    with TemporaryDirectory() as folder:
        sources = replace(choices[0].plan.sources, results=ResultsFolder(Path(folder)))
        units: dict[RunSettings, Unit] = {}
        for unit in (replace(unit, sources=sources) for choice in choices for unit in choice.units):
            other = units.get(unit.run)
            units[unit.run] = unit if other is None else other.joined_with(unit)
        planned = [unit.run for unit in choices[0].plan.units]  # scores that are averaged go by the first run of these
        everything = tuple(units[run] for run in planned if run in units)
        plan = Plan(choices[0].plan.study, everything, dict.fromkeys(everything, "from nothing"), sources)
        outcomes = carry_out(plan, executor, progress)
        for outcome in (outcome for outcome in outcomes if outcome.error or outcome.failures):
            progress.say(f"failed: {outcome.run_id}: {outcome.error or outcome.failures}")
        evaluate(plan, outcomes)
        return {table: read_table(sources.results, table) for table in KEYS}


def compare(choices: Sequence[Choice], again: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row per number: as committed, as made again, and whether they agree."""
    found = []
    for choice in choices:
        rows = again[choice.table]
        for column in KEYS[choice.table]:
            rows = rows[rows[column] == choice.row[column]] if len(rows) else rows
        for column in (column for column in choice.row.index if column not in NOT_COMPARED):
            committed, new = choice.row[column], rows[column].iloc[0] if len(rows) else None
            verdict = judge(committed, new, TOLERANCE.get(column, 0.0))
            found.append(
                {"row": choice.name, "number": column, "committed": committed, "again": new, "verdict": verdict}
            )
    return pd.DataFrame(found)


def judge(committed: Any, again: Any, tolerance: float) -> str:
    if again is None:
        return MISSING
    if committed == again or (pd.isna(committed) and pd.isna(again)):
        return SAME
    if isinstance(committed, float | int) and isinstance(again, float | int) and abs(committed - again) <= tolerance:
        return WITHIN
    return DIFFERS


def verify(choices: Sequence[Choice], executor: Executor, progress: Progress) -> pd.DataFrame:
    """Study by study, since each has line-ups of its own."""

    def plan_of(choice: Choice) -> tuple[str, str]:
        return choice.plan.study.name, str(choice.plan.sources.weights_file)

    groups = [list(group) for _, group in groupby(sorted(choices, key=plan_of), key=plan_of)]
    return pd.concat([compare(group, make_again(group, executor, progress)) for group in groups])
