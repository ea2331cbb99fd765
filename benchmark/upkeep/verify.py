"""`linc-bench verify`: picks committed rows at random, reproduces them from nothing, and compares.

`run` compares what it made in another folder with the committed rows of the same runs.

On the machine that made them, rows are the same to the last digit. Another processor rounds differently, which training
for many epochs amplifies: differences up to TOLERANCE are accepted. (The demo on three processors: AUROCs differed by
up to 0.020, precision and recall by 0.040, accuracies by 0.025.)
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmark.data.datasets import missing_file
from benchmark.disk import COMMITTED, ResultsFolder
from benchmark.disk.schema import BY_CLASS
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError, unknown_name
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.progress import Progress
from benchmark.runs import Plan, Sources, Study, Unit, joined, plan_study, signals_for
from benchmark.runs.run_study import run_study
from detectors import Detector

WITHOUT_TWINS = ("best_test_without_twins", "last_test_without_twins")
LATER = (*WITHOUT_TWINS, *BY_CLASS)  # older rows have none of them
# How much a number may differ on another processor; text and other columns must be the same.
TOLERANCE = {
    **dict.fromkeys(("auroc", "auroc_low", "auroc_high"), 0.03),
    **dict.fromkeys(("auprc", "precision_at_rate", "recall_1", "recall_5", "recall_10", "recall_20", "ties"), 0.05),
    **dict.fromkeys(("best_test", "last_test", "best_batch_mean", "last_batch_mean"), 0.03),
    **dict.fromkeys(("test_by_noisy_validation", "test_by_clean_validation", *WITHOUT_TWINS), 0.03),
    **dict.fromkeys(BY_CLASS, 0.1),  # a class may have few test images
}
# Seconds differ every time; the differences to LiNC need LiNC's run too, and follow from its row and this one.
NOT_COMPARED = ("study", "run", "seconds", "minus_linc", "minus_linc_low", "minus_linc_high", "status", "reason")
SAME, WITHIN, DIFFERS, MISSING = "the same", "within tolerance", "differs", "missing"
OF_RUN = {"auroc": "AUROCs", "best_test": "accuracies", "last_test": "accuracies"}  # a run's numbers for short
SHOWN = 5  # numbers that differ
DIGITS = 4  # of a number in the tables
KEYS = {"metrics": ["run", "line_up", "detector", "runs_averaged"], "accuracy": ["run"]}


@dataclass(frozen=True)
class Row:
    """A committed row."""

    table: str
    row: pd.Series

    @property
    def name(self) -> str:
        if self.table == "accuracy":
            return f"{self.row['study']}: {self.row['run']}, accuracy"
        averaged = f", {self.row['runs_averaged']} trainings" if self.row["runs_averaged"] > 1 else ""
        return f"{self.row['study']}: {self.row['run']}, {self.row['detector']} ({self.row['line_up']}{averaged})"


@dataclass(frozen=True)
class Choice(Row):
    """With the units of a plan that reproduce it."""

    plan: Plan
    units: tuple[Unit, ...]


def plans_of(studies: Sequence[Study], sources: Sources, files: Sequence[str]) -> list[Plan]:
    """Of each study, with the given files (NAME=PATH) for data sets, once with the weights file and once without."""
    known = [name for study in studies for name in study.datasets]
    named = {}
    for text in files:
        name, equals, path = text.partition("=")
        if not equals:
            raise LincBenchError(f"--dataset is {text!r}; expected NAME=PATH, the file that was used for a data set.")
        if name not in known:
            raise unknown_name("data set of a study", name, dict.fromkeys(known))
        named[name] = path
    plans = []
    for study, weights in product(studies, dict.fromkeys([sources.weights_file, None])):
        grids = [replace(grid, datasets=tuple(named.get(name, name) for name in grid.datasets)) for grid in study.grids]
        plans.append(plan_study(replace(study, grids=tuple(grids)), replace(sources, weights_file=weights)))
    return plans


def choose(results: ResultsFolder, plans: Iterable[Plan], count: int, seed: int) -> tuple[list[Choice], int, int]:
    """Rows drawn at random, the number of rows that can be reproduced here, and the number of those that cannot."""
    planned = {
        (plan.study.name, unit.run_id): (plan, unit)
        for plan in plans
        for unit in plan.units
        if missing_file(plan.sources.dataset(unit), plan.sources.data_root) is None
    }
    candidates, others = [], 0
    for table in KEYS:
        rows = read_table(results, table)
        for _, row in (rows[rows["status"] == "ok"] if "status" in rows else rows).iterrows():
            planned_unit = planned.get((row["study"], row["run"]))
            if planned_unit and (choice := _choice(table, row, *planned_unit)):
                candidates.append(choice)
            else:
                others += 1
    if not candidates:
        raise LincBenchError(
            f"None of the {others} rows in {results.root} can be made again with these options. Say where their data "
            "sets and weights are, with --data-root, --dataset NAME=PATH and --weights, as in the command that made "
            "them."
        )
    picked = np.random.default_rng(seed).permutation(len(candidates))[:count]
    return [candidates[index] for index in picked], len(candidates), others


def _choice(table: str, row: pd.Series, plan: Plan, unit: Unit) -> Choice | None:
    """None if no detector of the suite has the row's label, or its scores are not averaged over as many trainings."""
    if table == "accuracy":
        return Choice(table, row, plan, (_reduced(unit, ()),))
    detector = next((detector for detector in unit.detectors if detector.label == row["detector"]), None)
    if detector is None:
        return None
    for units in plan.judged_together(unit, detector):
        if len(units) == row["runs_averaged"]:
            return Choice(table, row, plan, tuple(_reduced(other, (detector,)) for other in units))
    return None


def _reduced(unit: Unit, detectors: tuple[Detector, ...]) -> Unit:
    """The same run, recording only what these detectors need; training is the same. By epochs nothing is compared."""
    return replace(unit, detectors=detectors, signals=signals_for(unit.run.recipe, detectors), by_epochs=False)


def make_again(choices: Sequence[Choice], executor: Executor, progress: Progress) -> dict[str, pd.DataFrame]:
    """The tables of a temporary results folder in which only the chosen rows of one plan are made."""
    original = choices[0].plan
    with TemporaryDirectory() as folder:
        sources = replace(original.sources, results=ResultsFolder(Path(folder)))
        units = joined(unit for choice in choices for unit in choice.units)
        plan = Plan(original.study, units, dict.fromkeys(units, "from nothing"), sources, original.noise)
        outcomes = run_study(plan, executor, progress)
        for outcome in (outcome for outcome in outcomes if outcome.reasons):
            progress.say(f"failed: {outcome.run_id}: {'; '.join(outcome.reasons)}")
        evaluate(plan, outcomes)
        return {table: read_table(sources.results, table) for table in KEYS}


def compare(choices: Iterable[Row], again: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row per number: as committed, as reproduced, and whether they agree."""
    compared = []
    for choice in choices:
        rows = again[choice.table]
        for column in KEYS[choice.table]:
            rows = rows[rows[column] == choice.row[column]]
        for column in (column for column in choice.row.index if column not in NOT_COMPARED):
            committed, new = choice.row[column], rows[column].iloc[0] if len(rows) else None
            if column in LATER and pd.isna(committed):
                continue
            verdict = judge(committed, new, TOLERANCE.get(column, 0.0))
            compared.append((choice.name, column, committed, new, verdict))
    return pd.DataFrame(compared, columns=["row", "number", "committed", "again", "verdict"])


def against_committed(results: ResultsFolder, study: str, runs: Collection[str]) -> str:
    """In words, whether a study's rows of these runs are the committed ones; empty if none is committed."""
    try:
        return _in_words(_beside_committed(results, study, runs))
    except (LincBenchError, OSError) as error:  # somebody's other file is no reason to fail
        return f"note: the numbers are not compared with those committed: {error}"


def _beside_committed(results: ResultsFolder, study: str, runs: Collection[str]) -> pd.DataFrame:
    committed: list[Row] = []
    again: dict[str, pd.DataFrame] = {}
    for table, keys in KEYS.items():
        ours, theirs = read_table(results, table), read_table(ResultsFolder(COMMITTED), table)
        again[table] = ours[(ours["study"] == study) & ours["run"].isin(runs)]
        theirs = theirs[theirs["run"].isin(runs)].drop_duplicates(keys)  # a run may be in several studies
        is_here = pd.MultiIndex.from_frame(theirs[keys]).isin(pd.MultiIndex.from_frame(again[table][keys]))
        committed += [Row(table, row) for _, row in theirs[is_here].iterrows()]
    numbers = compare(committed, again)
    return numbers[numbers["number"].isin(OF_RUN)].dropna()


def _in_words(numbers: pd.DataFrame) -> str:
    if numbers.empty:
        return ""
    kinds = numbers["number"].map(OF_RUN).value_counts()
    count = (
        f"{len(numbers)} of these numbers are committed too ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"
    )
    others = numbers[numbers["verdict"] != SAME]
    if others.empty:
        return f"{count}, and all are the same."
    committed, again = others["committed"].astype(float), others["again"].astype(float)
    sizes = (committed - again).abs()
    is_usual = (others["verdict"] == WITHIN).all()
    why = "which another processor may cause" if is_usual else "more than another processor causes"
    changed = (committed.round(DIGITS) != again.round(DIGITS)).sum()
    lines = [
        f"{count}, and {len(numbers) - len(others)} are the same. Differences: {len(others)}, at most "
        f"{sizes.max():.2g}, {why}; {changed or 'none'} in the first {DIGITS} digits."
    ]
    for at in sizes.sort_values(ascending=False, kind="stable").index[:SHOWN]:
        row, number = others.loc[at, ["row", "number"]]
        lines.append(f"  {row}: {number} {again[at]:.6f}, committed {committed[at]:.6f}")
    return "\n".join(lines)


def judge(committed: Any, again: Any, tolerance: float) -> str:
    if again is None:
        return MISSING
    if committed == again or (pd.isna(committed) and pd.isna(again)):
        return SAME
    if isinstance(committed, float | int) and isinstance(again, float | int) and abs(committed - again) <= tolerance:
        return WITHIN
    return DIFFERS


def verify(choices: Sequence[Choice], executor: Executor, progress: Progress) -> pd.DataFrame:
    """Plan by plan, since each study has its own line-ups."""
    groups: dict[tuple[str, Path | None], list[Choice]] = defaultdict(list)
    for choice in choices:
        groups[choice.plan.study.name, choice.plan.sources.weights_file].append(choice)
    return pd.concat([compare(group, make_again(group, executor, progress)) for group in groups.values()])
