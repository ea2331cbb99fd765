"""Kinds of noise compared: does a ranking of detectors survive from one to another?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark import reference
from benchmark.statistics.bootstrap import interval
from benchmark.statistics.comparisons import Compared, compared
from benchmark.wording import IN_TITLES


@dataclass(frozen=True)
class KindRow:
    """Detectors under one kind of noise, and under the usual kind on the same data sets."""

    noise: str
    rate: float
    datasets: tuple[str, ...]
    means: pd.Series  # AUROC over data sets, by detector
    usual: pd.Series | None = None  # the same under the usual kind, if all of these data sets have it
    correlation: tuple[float, float, float] | None = None  # Spearman's, of the ranks under both, with its interval


def in_order(noises: pd.Series) -> list[str]:
    """The usual kind first, labels of people last."""
    return sorted(set(noises), key=lambda noise: (noise != reference.NOISE, noise.startswith("given"), noise))


def settings_to_compare(rows: pd.DataFrame) -> set[str]:
    """One for each kind of noise and data set: trained as most runs were, with the rate nearest to the usual one."""
    if rows.empty:
        return set()
    training = [column for column in IN_TITLES if column not in ("dataset", "rate", "noise")]
    counts = rows.groupby(training, as_index=False).size()
    usual = counts.iloc[[int(counts["size"].argmax())]][training]
    alike = rows.merge(usual, on=training)
    nearest = alike.assign(distance=(alike["rate"] - reference.RATE).abs()).sort_values(["distance", "setting"])
    return set(nearest.drop_duplicates(["noise", "dataset"])["setting"])


def compare_kinds(metrics: pd.DataFrame, draws: pd.DataFrame, scale: float) -> list[KindRow]:
    """A row per kind, over the data sets that it was measured on, of the detectors that were measured under all.

    It is compared with the usual kind on the same data sets, pairs of seeds and samples; labels of people, on data of
    their own, with the usual kind on all of its data sets.
    """
    ok = metrics[(metrics["status"] == "ok") & (metrics["runs_averaged"] == 1)]
    ok = ok[ok["setting"].isin(settings_to_compare(ok))]
    draws = draws[draws["setting"].isin(ok["setting"])]
    common, rows = _measured_under_all(ok), []
    usual = ok[ok["noise"] == reference.NOISE]
    for noise in in_order(ok["noise"]):
        own = ok[(ok["noise"] == noise) & ok["detector"].isin(common)]
        datasets = set(own["dataset"])
        same = usual[usual["dataset"].isin(datasets)] if datasets <= set(usual["dataset"]) else None
        correlation = None
        if noise != reference.NOISE and len(usual):
            beside = usual if same is None else same
            found = (compared(draws[draws["setting"].isin(part["setting"])], scale=scale) for part in (beside, own))
            correlation = rank_correlation(common, *found)
        before = None if same is None or noise == reference.NOISE else _means(same)
        rate = float(own["rate"].mean())
        rows.append(KindRow(noise, rate, tuple(sorted(datasets)), _means(own), before, correlation))
    return rows


def _means(rows: pd.DataFrame) -> pd.Series:
    """AUROC over pairs of seeds, then data sets, by detector."""
    return rows.pivot_table("auroc", "dataset", "detector").mean()


def _measured_under_all(ok: pd.DataFrame) -> list[str]:
    kinds = ok.groupby("detector")["noise"].nunique()
    return [str(name) for name in kinds.index[kinds == ok["noise"].nunique()]]


def rank_correlation(
    names: list[str], one: Compared | None, other: Compared | None
) -> tuple[float, float, float] | None:
    """Of the detectors' mean AUROCs: the median over draws and the middle 95 %."""
    if one is None or other is None:
        return None
    shared = [name for name in names if name in one.names and name in other.names]
    if len(shared) < 3:
        return None
    ranks = [_ranks(found.aurocs[[found.names.index(name) for name in shared]]) for found in (one, other)]
    centred = [rank - rank.mean(axis=0) for rank in ranks]
    lengths = [np.sqrt((rank**2).sum(axis=0)) for rank in centred]
    correlation = (centred[0] * centred[1]).sum(axis=0) / np.maximum(lengths[0] * lengths[1], 1e-12)
    return float(np.median(correlation)), *interval(correlation)


def _ranks(aurocs_DT: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return rankdata(aurocs_DT, axis=0)
