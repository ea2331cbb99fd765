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
    "Labels were flipped to another class drawn evenly, before the audit saw them; ± is the standard deviation over "
    "trials, each with its own flips and training seed. Audit: the combined rank. cleanlab: what it calls issues "
    "first, then the others, from the lowest quality; with scikit-learn's logistic regression on the same embeddings, "
    "and with the held-out probabilities of the audit."
)
COUNT_NOTE = (
    "Estimates: mean over trials (least to most). Claims noise: the lower end of the interval exceeds 1 %. Wrong are "
    "the labels that were flipped; those that the data had wrong before are not known, and count against the estimate."
)


def trial_groups(read: Callable[[str], pd.DataFrame]) -> dict[str, Group]:
    """Tables of all trials that were made."""
    counts, precisions = read(COUNTS), read(PRECISIONS)
    if counts.empty:
        return {}
    by_dataset = precisions.groupby("dataset") if len(precisions) else ()
    return {
        "precision": Group(
            "Wrong labels among the first of an audit's list",
            [(f"Precision: {dataset_title(str(dataset))}", precision_table(rows)) for dataset, rows in by_dataset],
            [PRECISION_NOTE],
        ),
        "counts": Group("How many labels are wrong?", [("Estimates", count_table(counts))], [COUNT_NOTE]),
    }


def precision_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Of one data set: methods × rate and share of the list; means over seeds."""
    cells = {
        method: {
            f"{rate:.0%} wrong, first {first:.0%}": mean_and_spread(trials["precision"], 2)
            for (rate, first), trials in some.groupby(["rate", "first"])
        }
        for method, some in rows.groupby("method", sort=False)
    }
    return pd.DataFrame(cells).T.rename_axis("method").reset_index()


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
