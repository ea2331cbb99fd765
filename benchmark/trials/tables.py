"""Tables of the trials of audits: wrong labels among the first, the lower bound, and what simulated reviews prove."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from benchmark.display.tables import Group, mean_and_spread
from benchmark.wording import dataset_title, network_title, varying_columns

PRECISIONS, COUNTS, REVIEWS = "audit_precision", "audit_counts", "audit_reviews"  # tables of the results folder
AUDIT, RANDOM = "audit", "random"
CLEANLAB, CLEANLAB_HELD_OUT = "cleanlab", "cleanlab, with held-out"
SETTING = ["backbone", "image_size", "trainings"]
CELL = ["method", "rate", "first"]  # of a table of precision
PRECISION_NOTE = (
    "Labels were made wrong before the audit saw them. Audit: its list. cleanlab: from the lowest label quality, with "
    "out-of-sample probabilities of logistic regression on the same embeddings; with those of *held-out* its ranking "
    "would be that of held-out."
)
SPREAD_NOTE = (
    "± is the standard deviation over trials, each with its own wrong labels and training seeds; in brackets, for five "
    "or more trials, the 95 % interval of the mean."
)
COUNT_NOTE = (
    "At least: the audit's lower bound with 95 % confidence, mean over trials; it holds if as many labels are wrong, "
    "or more. If even: the estimate for errors that are spread evenly over easy and hard images, mean over trials "
    "(minimum to maximum). Claims noise: the lower bound exceeds 1 %. Wrong are the labels made wrong here; errors "
    "that the data had before are unknown, and count against the bound. At 0 %, trials have the same images and labels "
    "and differ only in folds and training seeds. The method's constants were chosen on half of the training images of "
    "MedMNIST data sets, with other flips; digits were not used."
)
REVIEW_NOTE = (
    "A simulated reviewer decides on the first so many images of the random sample. Holds: the certificate's interval "
    "has the number of wrong labels, and all its bounds for the first k of the list are true, for every k at once; "
    "95 % of trials are promised for a reviewer without mistakes. Width: of the interval, as a share of the labels. "
    "Found from the top: wrong labels among as many images at the head of the list, for each found in random order."
)


def trial_groups(read: Callable[[str], pd.DataFrame]) -> dict[str, Group]:
    """Tables of all trials; `read` returns the rows of a CSV table by name."""
    counts, precisions, reviews = (_with_own_names(read(name)) for name in (COUNTS, PRECISIONS, REVIEWS))
    if counts.empty:
        return {}
    counted = Group("How many labels are wrong?", [("Without a review", count_table(counts))], [COUNT_NOTE])
    if len(reviews):
        counted.tables.append(("After a review of the random sample", review_table(reviews)))
        counted.notes.append(REVIEW_NOTE)
    if precisions.empty:
        return {"counts": counted}
    summary, by_dataset = [], []
    for (backbone, size, trainings, noise), rows in precisions.groupby([*SETTING, "noise"]):
        trained = f", {trainings} trainings" if trainings != 1 else ""
        setting = f"{noise} noise; {network_title(str(backbone))} at {size} px{trained}"
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
    """How many labels are wrong, and what the audit says, for every data set, kind of noise and rate."""
    settings, table = varying_columns(rows, SETTING), []
    for _, trials in rows.groupby(["dataset", "data", "noise", "rate", *SETTING]):
        first, known = trials.iloc[0], trials[trials["is_known"]]
        table.append(
            {
                "data set": dataset_title(first["dataset"]),
                "samples": first["samples"],
                "noise": first["noise"],
                **first[settings],
                "wrong": f"{trials['share'].mean():.1%}",
                "at least": f"{trials['low'].mean():.1%}",
                "holds": f"{(trials['low'] <= trials['share']).sum()} of {len(trials)}",
                "if even": _mean_and_range(known["estimate"], ".1%"),
                "claims noise": f"{trials['is_evidence'].sum()} of {len(trials)}",
                CLEANLAB: _mean_and_range(trials[CLEANLAB], ".1%"),
                CLEANLAB_HELD_OUT: _mean_and_range(trials[CLEANLAB_HELD_OUT], ".1%"),
            }
        )
    return pd.DataFrame(table)


def review_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What simulated reviews prove, over data sets and rates, by kind of noise, reviewer and number of decisions."""
    table = []
    for (noise, mistakes, decisions), trials in rows.groupby(["noise", "mistakes", "decisions"]):
        chance = trials["by_chance"].sum()
        table.append(
            {
                "noise": noise,
                "reviewer's mistakes": f"{mistakes:.0%}",
                "decisions": decisions,
                "holds": f"{trials['covers'].sum()} of {len(trials)}",
                "width": _mean_and_range(trials["high"] - trials["low"], ".1%"),
                "found from the top": f"{trials['found'].sum() / chance:.1f} ×" if chance else "–",
            }
        )
    return pd.DataFrame(table)


def _mean_and_range(values: pd.Series, form: str) -> str:
    if values.empty:
        return "–"
    mean, low, high = (format(value, form) for value in (values.mean(), values.min(), values.max()))
    return f"{mean} ({low} to {high})" if len(values) > 1 else mean
