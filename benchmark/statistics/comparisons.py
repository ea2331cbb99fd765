"""Detectors compared with each other and with the reference, over the rows of the metrics table."""

import pandas as pd


def mean_ranks(measured: pd.DataFrame) -> pd.Series:
    """Over settings, by the mean AUROC over seeds, of detectors that were measured in all of them; the best first."""
    means = measured.groupby(["detector", "setting"])["auroc"].mean().unstack().dropna()
    return means.rank(ascending=False).mean(axis=1).sort_values(kind="stable")


def against_reference(rows: pd.DataFrame) -> str:
    """A detector's mean AUROC minus the reference's in the same runs, and whether that is clear."""
    difference = rows["minus_linc"].mean()
    return "–" if pd.isna(difference) else f"{difference:+.4f}, {better_or_worse(rows)}"


def better_or_worse(rows: pd.DataFrame) -> str:
    """Better or worse than the reference only if the paired interval says so in every run that has one."""
    compared = rows.dropna(subset=["minus_linc"])
    if (compared["minus_linc_low"] > 0).all():
        return "better"
    return "worse" if (compared["minus_linc_high"] < 0).all() else "unclear"
