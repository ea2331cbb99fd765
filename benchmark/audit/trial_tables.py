"""Tables of the trials of audits: how many of the first labels are wrong, and how good the estimates are."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from benchmark.display.tables import Group, mean_and_spread
from benchmark.wording import dataset_title, network_title, varying_columns

PRECISIONS, COUNTS = "audit_precision", "audit_counts"  # tables of the results folder
AUDIT, RANDOM = "audit", "random"
CLEANLAB, CLEANLAB_HELD_OUT = "cleanlab", "cleanlab, with held-out"
SETTING = ["backbone", "image_size", "trainings"]
CELL = ["method", "rate", "first"]  # of a table of precision
PRECISION_NOTE = (
    "Labels were flipped to another class, uniformly at random, before the audit saw them. Audit: the combined rank. "
    "cleanlab: from the lowest label quality, with out-of-sample probabilities of logistic regression on the same "
    "embeddings; with those of *held-out* its ranking would be that of held-out."
)
SPREAD_NOTE = (
    "± is the standard deviation over trials, each with its own flips and training seeds; in brackets, for five or "
    "more trials, the 95 % interval of the mean."
)
COUNT_NOTE = (
    "Estimates: mean over trials (minimum to maximum). Claims noise: the lower end of the interval exceeds 1 %. Wrong "
    "are the labels that were flipped; errors that the data had before are unknown, and count against the estimate. "
    "At 0 %, trials have the same images and labels and differ only in folds and training seeds. The method's "
    "constants were chosen on half of the training images of the MedMNIST data sets, with other flips; digits were "
    "not used."
)


def trial_groups(read: Callable[[str], pd.DataFrame]) -> dict[str, Group]:
    """Tables of all trials; `read` returns the rows of a CSV table by name."""
    counts, precisions = (_with_own_names(read(name)) for name in (COUNTS, PRECISIONS))
    if counts.empty:
        return {}
    counted = Group("How many labels are wrong?", [("Estimates", count_table(counts))], [COUNT_NOTE])
    if precisions.empty:
        return {"counts": counted}
    summary, by_dataset = [], []
    for (backbone, size, trainings), rows in precisions.groupby(SETTING):
        trained = f", {trainings} trainings" if trainings != 1 else ""
        setting = f"{network_title(str(backbone))} at {size} px{trained}"
        datasets = {dataset_title(str(name)): part for name, part in rows.groupby("dataset")}
        title = f"Precision: mean (minimum to maximum) of {', '.join(datasets)}; {setting}"
        means = rows.groupby(["dataset", *CELL], sort=False)["precision"].mean().reset_index()
        summary.append((title, _precision_table(means, partial(_mean_and_range, form=".2f"))))
        for name, part in datasets.items():
            table = _precision_table(part, partial(mean_and_spread, digits=2))
            by_dataset.append((f"Precision: {name}, {setting}", table))
    return {
        "summary": Group("Wrong labels among the first of an audit's list", summary, [PRECISION_NOTE]),
        "counts": counted,
        "precision": Group("Wrong labels among the first, by data set", by_dataset, [SPREAD_NOTE]),
    }


def _with_own_names(rows: pd.DataFrame) -> pd.DataFrame:
    """Data sets that have the same name and are not the same get their identity into the name."""
    is_shared = rows.groupby("dataset")["data"].transform("nunique") > 1
    return rows.assign(dataset=rows["dataset"].where(~is_shared, rows["dataset"] + ", " + rows["data"]))


def _precision_table(rows: pd.DataFrame, cell: Callable[[pd.Series], str]) -> pd.DataFrame:
    """Methods in their order × rate and share of the list."""
    cells = rows.groupby(CELL)["precision"].agg(cell).unstack(["rate", "first"]).sort_index(axis=1)
    cells.columns = cells.columns.map(lambda cell: f"{100 * cell[0]:g}% wrong, first {100 * cell[1]:g}%")
    return cells.loc[rows["method"].unique()].reset_index()


def count_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How many labels are wrong, and the estimates, for every data set and rate."""
    settings, table = varying_columns(rows, SETTING), []
    for _, trials in rows.groupby(["dataset", "data", "rate", *SETTING]):
        first, known = trials.iloc[0], trials[trials["is_known"]]
        covered = (known["low"] <= known["share"]) & (known["share"] <= known["high"])
        table.append(
            {
                "data set": dataset_title(first["dataset"]),
                "samples": first["samples"],
                **first[settings],
                "wrong": f"{trials['share'].mean():.1%}",
                "estimate": _mean_and_range(known["estimate"], ".1%"),
                "95 % interval (mean)": f"{known['low'].mean():.1%} to {known['high'].mean():.1%}".replace("nan%", "–"),
                "interval covers": f"{covered.sum()} of {len(known)}",
                "claims noise": f"{trials['is_evidence'].sum()} of {len(trials)}",
                CLEANLAB: _mean_and_range(trials[CLEANLAB], ".1%"),
                CLEANLAB_HELD_OUT: _mean_and_range(trials[CLEANLAB_HELD_OUT], ".1%"),
            }
        )
    return pd.DataFrame(table)


def _mean_and_range(values: pd.Series, form: str) -> str:
    if values.empty:
        return "–"
    mean, low, high = (format(value, form) for value in (values.mean(), values.min(), values.max()))
    return f"{mean} ({low} to {high})" if len(values) > 1 else mean
