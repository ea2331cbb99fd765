"""The groups of tables that compare our rows with the paper: those of one study, and of all studies together."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pandas as pd

from benchmark.display.front_page import Board
from benchmark.display.tables import MISSING, Group, Tables, mean_and_spread, titled
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.answer import MOST, leaderboard, short_answers
from benchmark.paper.headlines import HOW, headlines
from benchmark.paper.hypotheses import NOTES, hypothesis_table
from benchmark.paper.verdicts import RULES, count_table, in_a_sentence, verdict_table
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.statistics.comparisons import mean_aurocs
from benchmark.wording import (
    by_setting,
    dataset_title,
    describe_setting,
    in_common,
    line_up_title,
    varying_columns,
)

LEAD = f"{DETECTOR} minus the best other"
BESIDE = (
    "± is the standard deviation over pairs of noise and training seeds; in square brackets, from five pairs on, the "
    f"95 % interval of the mean. {LEAD}: of those that were measured in every run."
)
TITLES = {BASELINE_RECIPE: f"No {DETECTOR}", RECIPE: DETECTOR}  # as in the paper
Cells = dict[Any, pd.DataFrame]  # runs by data set, rate and recipe


def paper_groups(tables: select.Tables, board: Board | None) -> dict[str, Group]:
    """What we found, what was tried to explain it, and a verdict on every number; from the rows of all studies."""
    tables = select.of_the_paper(tables)
    usual = {name: select.as_in_the_paper(rows) for name, rows in tables.items()}
    judged = verdict_table(usual["metrics"], usual["accuracy"])
    if judged.empty:
        return {}
    tried = hypothesis_table(tables)
    groups = {
        "answer": Group("The answer", [], short_answers(board, usual, judged)),
        "headlines": Group("What we found", [], [*headlines(usual), in_a_sentence(judged), HOW]),
        "hypotheses": Group("What was tried to explain it", titled("One thing changed at a time", tried), [*NOTES]),
        "counts": Group("Verdicts on the paper's numbers", titled("Verdicts, counted", count_table(judged)), [*RULES]),
        "verdicts": Group("The paper, number by number", titled("Every number", judged), [*RULES]),
        "runs": Group("What was run", titled("Runs and their duration", effort_table(tables["runs"]))),
    }
    if board is not None:
        ranked = titled("; ".join(board.first_titles[:5]), leaderboard(board))
        rows = board.views[board.first]
        shown = (
            f"The {MOST} best detectors, and those that the paper compares; {sum(bool(row.ranked) for row in rows)} of "
            f"{len(rows)} detectors and variants were measured in every run."
        )
        groups["leaderboard"] = Group("The best detectors", ranked, [f"{shown} {board.note}"])
    return {name: group for name, group in groups.items() if group.tables or name in ("answer", "headlines")}


def effort_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What was run and how long it took, a row per study and data set."""
    return pd.DataFrame(
        {
            "study": study,
            "data set": dataset_title(str(dataset)),
            "training samples": f"{rows['samples'].iloc[0]:,}",
            "noise rates": ", ".join(f"{rate:.0%}" for rate in sorted(rows["rate"].unique())),
            "runs": len(rows),
            "hours": f"{rows['seconds'].sum() / 3600:.2f}",
        }
        for (study, dataset), rows in runs.groupby(["study", "dataset"], sort=True)
    )


def study_paper_groups(tables: select.Tables) -> dict[str, Group]:
    """The paper's three tables in its own layout, with the measurements of one study beside it."""
    beside = [
        *((f"Table 1 of the paper: AUC; {title}", table) for title, table in detection_tables(tables["metrics"])),
        *titled("Table 2 of the paper: accuracy without noise", clean_table(tables["accuracy"])),
        *titled("Table 3 of the paper: accuracy under symmetric noise", noisy_table(tables["accuracy"])),
    ]
    return {"paper": Group("The paper's tables, ours beside", beside, [BESIDE], for_print=True)} if beside else {}


def detection_tables(metrics: pd.DataFrame) -> Tables:
    """Table 1 with a row per detector, and what LiNC is ahead by: for each line-up the paper's column, then ours."""
    ours = select.at_the_papers_rate(metrics[metrics["status"] == "ok"])
    is_compared = ours["detector_name"].isin(paper.OTHERS).groupby(ours["line_up"]).transform("any").astype(bool)
    return [
        (f"{line_up_title(str(line_up))}: {in_common(rows)}", _detection_table(rows))
        for line_up, rows in ours[is_compared].groupby("line_up", sort=False)
    ]


def _detection_table(metrics: pd.DataFrame) -> pd.DataFrame:
    columns = {
        f"paper, {dataset_title(paper.DETECTION_DATASET)}": {n: f"{auc:.4f}" for n, auc in paper.DETECTION.items()}
    }
    columns[next(iter(columns))][LEAD] = f"{paper.AUC_LEAD:+.4f}"
    for setting, runs in by_setting(metrics):
        # The default options come first: they are an empty string.
        first = runs.groupby("detector_name")["detector_options"].transform("min")
        runs = runs[(runs["detector_options"] == first) & runs["detector_name"].isin(paper.DETECTION)]
        aurocs = runs.groupby("detector_name")["auroc"]
        cells = {str(name): mean_and_spread(values, with_interval=False) for name, values in aurocs}
        means = mean_aurocs(runs.assign(detector=runs["detector_name"]))
        if DETECTOR in means and len(means) > 1:
            cells[LEAD] = f"{means[DETECTOR] - means.drop(DETECTOR).max():+.4f}"
        columns[f"ours, {setting}"] = cells
    return pd.DataFrame(columns).reindex([*paper.DETECTION, LEAD]).fillna(MISSING).rename_axis("detector").reset_index()


def clean_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 2: the paper's columns, and ours where a data set was run without noise."""
    rows = []
    for name, cells in _protocols(accuracy[accuracy["rate"] == 0]):
        for dataset, claimed in paper.clean_accuracy().iterrows():
            runs = cells.get((str(dataset), 0.0, BASELINE_RECIPE))
            if runs is not None:
                ours = {"ours, best epoch": mean_and_spread(runs["best_test"], 3)}
                ours |= {"ours, mean of batches": mean_and_spread(runs["best_batch_mean"], 3), "ours, setting": name}
                rows.append({"data set": dataset} | claimed.map("{:.3f}".format).to_dict() | ours)
    return pd.DataFrame(rows)


def noisy_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 3: a column per rate, recipe and epoch as in the paper; below its row ours, also as means of batches."""
    claimed: Cells = dict(iter(paper.noisy_accuracy().groupby(["dataset", "rate", "recipe"], sort=False)))
    rows, no_runs = [], accuracy[:0]
    for name, cells in _protocols(accuracy):
        measured = {(dataset, rate) for dataset, rate, _ in cells}
        rates = [rate for rate in paper.RATES if rate in {rate for _, rate in measured}]
        sources = {"paper": (claimed, ""), f"ours, {name}": (cells, "_test")}
        sources |= {"ours, means of batches": (cells, "_batch_mean")}
        datasets = dict.fromkeys(dataset for dataset, rate, _ in claimed if (dataset, rate) in measured)
        for dataset, (source, (of, measure)) in product(datasets, sources.items()):
            row = {"data set": dataset, "source": source}
            for rate, recipe, epoch in product(rates, TITLES, ("best", "last")):
                values = of.get((dataset, rate, recipe), no_runs)[f"{epoch}{measure}"]
                row[f"{rate:.0%} {TITLES[recipe]} {epoch}"] = mean_and_spread(values)
            rows.append(row)
    return pd.DataFrame(rows).fillna(MISSING)


def _protocols(accuracy: pd.DataFrame) -> Iterator[tuple[str, Cells]]:
    """Each protocol's name and runs; a rebuilt file stands for its data set."""
    accuracy = select.with_default_recipe(select.with_paper_dataset(accuracy), *TITLES)
    varying = varying_columns(accuracy, ("batch_size", "learning_rate", "weight_decay"))
    for _, runs in accuracy.groupby("protocol"):
        name = describe_setting(runs.iloc[0], ("backbone", "image_size", "epochs", "noise", *varying))
        yield name, dict(iter(runs.groupby(["stands_for", "rate", "recipe_name"])))
