"""How well audits did on labels that were made wrong (`audit_trials.py`), as tables."""

from collections.abc import Callable

import pandas as pd

from benchmark.identity import Json
from benchmark.names import dataset_title
from benchmark.tables import Group, mean_and_spread

PRECISIONS, COUNTS = "audit_precision", "audit_counts"  # tables of the results folder
AUDIT, RANDOM = "audit", "random"
CLEANLAB, CLEANLAB_HELD_OUT = "cleanlab (logistic regression)", "cleanlab (held-out)"
PRECISION_NOTE = (
    "Labels were flipped to another class drawn evenly, before the audit saw them. Audit: the combined rank. cleanlab: "
    "what it calls issues first, then the others, from the lowest quality; with scikit-learn's logistic regression on "
    "the same embeddings, and with the held-out probabilities of the audit."
)
SPREAD_NOTE = "± is the standard deviation over trials, each with its own flips and training seed."
COUNT_NOTE = (
    "Estimates: mean over trials (least to most). Claims noise: the lower end of the interval exceeds 1 %. Wrong are "
    "the labels that were flipped; those that the data had wrong before are not known, and count against the estimate."
)


def trial_groups(read: Callable[[str], pd.DataFrame]) -> dict[str, Group]:
    """Tables of all trials that were made."""
    counts, precisions = read(COUNTS), read(PRECISIONS)
    if counts.empty:
        return {}
    by_dataset = list(precisions.groupby("dataset")) if len(precisions) else []
    names = ", ".join(dataset_title(str(name)) for name, _ in by_dataset)
    groups = {
        "summary": Group(
            "Wrong labels among the first of an audit's list",
            [(f"Precision: mean (least to most) of {names}", precision_table(precisions, _over_datasets))],
            [PRECISION_NOTE],
        ),
        "counts": Group("How many labels are wrong?", [("Estimates", count_table(counts))], [COUNT_NOTE]),
        "precision": Group(
            "Wrong labels among the first, data set by data set",
            [
                (f"Precision: {dataset_title(str(name))}", precision_table(rows, _over_trials))
                for name, rows in by_dataset
            ],
            [SPREAD_NOTE],
        ),
    }
    return groups if by_dataset else {"counts": groups["counts"]}


def precision_table(rows: pd.DataFrame, cell: Callable[[pd.DataFrame], str]) -> pd.DataFrame:
    """Methods × rate and share of the list."""
    cells = {
        method: {
            f"{rate:.0%} wrong, first {first:.0%}": cell(trials)
            for (rate, first), trials in some.groupby(["rate", "first"])
        }
        for method, some in rows.groupby("method", sort=False)
    }
    return pd.DataFrame(cells).T.rename_axis("method").reset_index()


def _over_trials(trials: pd.DataFrame) -> str:
    return mean_and_spread(trials["precision"], 2)


def _over_datasets(trials: pd.DataFrame) -> str:
    means = trials.groupby("dataset")["precision"].mean()
    return f"{means.mean():.2f}" + (f" ({means.min():.2f} to {means.max():.2f})" if len(means) > 1 else "")


def count_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How many labels are wrong, and what was said, for every data set and rate."""

    def row(trials: pd.DataFrame) -> Json:
        covered = (trials["low"] <= trials["share"]) & (trials["share"] <= trials["high"])
        return {
            "wrong": f"{trials['share'].mean():.1%}",
            "estimate": _percents(trials["estimate"]),
            "95 % interval (mean)": f"{trials['low'].mean():.1%} to {trials['high'].mean():.1%}",
            "interval covers": f"{covered.sum()} of {len(trials)}",
            "claims noise": f"{trials['is_evidence'].sum()} of {len(trials)}",
            CLEANLAB: _percents(trials[CLEANLAB]),
            CLEANLAB_HELD_OUT: _percents(trials[CLEANLAB_HELD_OUT]),
        }

    return pd.DataFrame(
        {"data set": dataset_title(str(dataset)), "samples": trials["samples"].iloc[0], **row(trials)}
        for (dataset, _rate), trials in rows.groupby(["dataset", "rate"])
    )


def _percents(shares: pd.Series) -> str:
    return f"{shares.mean():.1%}" + (f" ({shares.min():.1%} to {shares.max():.1%})" if len(shares) > 1 else "")
