"""Tables of the trials of audits: how many of the first labels are wrong, and how good the estimates are."""

from collections.abc import Callable

import pandas as pd

from benchmark.display.tables import Group, mean_and_spread
from benchmark.identity import Json
from benchmark.wording import dataset_title, network_title, varying_columns

PRECISIONS, COUNTS = "audit_precision", "audit_counts"  # tables of the results folder
AUDIT, RANDOM = "audit", "random"
CLEANLAB, CLEANLAB_HELD_OUT = "cleanlab", "cleanlab, with held-out"
SETTING = ["backbone", "image_size", "trainings"]
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
    """Tables of all trials that were made."""
    counts, precisions = read(COUNTS), read(PRECISIONS)
    if counts.empty:
        return {}
    counted = Group("How many labels are wrong?", [("Estimates", count_table(counts))], [COUNT_NOTE])
    if precisions.empty:
        return {"counts": counted}
    settings = [(_in_words(rows), rows) for _, rows in precisions.groupby(SETTING)]
    by_dataset = [
        (f"Precision: {dataset_title(str(name))}, {words}", precision_table(rows, _over_trials))
        for words, of_setting in settings
        for name, rows in of_setting.groupby("dataset")
    ]
    summary = [
        (f"Precision: mean (least to most) of {_datasets(rows)}; {words}", precision_table(rows, _over_datasets))
        for words, rows in settings
    ]
    return {
        "summary": Group("Wrong labels among the first of an audit's list", summary, [PRECISION_NOTE]),
        "counts": counted,
        "precision": Group("Wrong labels among the first, data set by data set", by_dataset, [SPREAD_NOTE]),
    }


def _in_words(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    network = f"{network_title(row['backbone'])} at {row['image_size']} px"
    return network if row["trainings"] == 1 else f"{network}, {row['trainings']} trainings"


def _datasets(rows: pd.DataFrame) -> str:
    return ", ".join(dataset_title(str(name)) for name in sorted(rows["dataset"].unique()))


def precision_table(rows: pd.DataFrame, cell: Callable[[pd.DataFrame], str]) -> pd.DataFrame:
    """Methods × rate and share of the list."""
    cells = {
        method: {_share_of_list(trials): cell(trials) for _, trials in some.groupby(["rate", "first"])}
        for method, some in rows.groupby("method", sort=False)
    }
    return pd.DataFrame(cells).T.rename_axis("method").reset_index()


def _share_of_list(trials: pd.DataFrame) -> str:
    return f"{100 * trials['rate'].iloc[0]:g}% wrong, first {100 * trials['first'].iloc[0]:g}%"


def _over_trials(trials: pd.DataFrame) -> str:
    return mean_and_spread(trials["precision"], 2)


def _over_datasets(trials: pd.DataFrame) -> str:
    means = trials.groupby("dataset")["precision"].mean()
    return f"{means.mean():.2f}" + (f" ({means.min():.2f} to {means.max():.2f})" if len(means) > 1 else "")


def count_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How many labels are wrong, and what was said, for every data set and rate."""

    def row(trials: pd.DataFrame) -> Json:
        known = trials[trials["is_known"]]
        covered = (known["low"] <= known["share"]) & (known["share"] <= known["high"])
        counted = {name: _percents(trials[name]) for name in (CLEANLAB, CLEANLAB_HELD_OUT)}
        return {
            "wrong": f"{trials['share'].mean():.1%}",
            "estimate": _percents(known["estimate"]),
            "95 % interval (mean)": f"{known['low'].mean():.1%} to {known['high'].mean():.1%}" if len(known) else "–",
            "interval covers": f"{covered.sum()} of {len(known)}",
            "claims noise": f"{trials['is_evidence'].sum()} of {len(trials)}",
            **counted,
        }

    differing = varying_columns(rows, SETTING)
    return pd.DataFrame(
        {
            "data set": dataset_title(str(trials["dataset"].iloc[0])),
            "samples": trials["samples"].iloc[0],
            **{column: trials[column].iloc[0] for column in differing},
            **row(trials),
        }
        for _, trials in rows.groupby(["dataset", "data", "rate", *SETTING])
    )


def _percents(shares: pd.Series) -> str:
    if shares.empty:
        return "–"
    return f"{shares.mean():.1%}" + (f" ({shares.min():.1%} to {shares.max():.1%})" if len(shares) > 1 else "")
