"""Kinds of noise compared: does a ranking of detectors survive from one to another?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark import reference
from benchmark.statistics.bootstrap import interval
from benchmark.statistics.comparisons import Compared, compared


@dataclass(frozen=True)
class KindRow:
    """Detectors under one kind of noise, and how far their ranks are those under the usual kind."""

    noise: str
    datasets: tuple[str, ...]
    means: pd.Series  # AUROC over data sets, by detector
    correlation: tuple[float, float, float] | None = None  # Spearman's, with its 95 % interval; of another kind


def in_order(noises: pd.Series) -> list[str]:
    """The usual kind first, labels of people last."""
    return sorted(set(noises), key=lambda noise: (noise != reference.NOISE, noise.startswith("given"), noise))


def compare_kinds(metrics: pd.DataFrame, draws: pd.DataFrame, scale: float) -> list[KindRow]:
    """A row per kind, over the data sets that it was measured on, of the detectors that were measured under all.

    Where data sets are the same, pairs of seeds and samples are redrawn together; labels of people are on others.
    """
    ok = metrics[(metrics["status"] == "ok") & (metrics["runs_averaged"] == 1)]
    common = _measured_under_all(ok)
    found = {noise: compared(draws[draws["noise"] == noise], scale=scale) for noise in in_order(ok["noise"])}
    usual, rows = found.get(reference.NOISE), []
    for noise, drawn in found.items():
        own = ok[(ok["noise"] == noise) & ok["detector"].isin(common)]
        means: pd.Series = own.pivot_table("auroc", "dataset", "detector").mean()
        correlation = None
        if noise != reference.NOISE and usual is not None and drawn is not None:
            correlation = rank_correlation(usual, drawn, common)
        rows.append(KindRow(noise, tuple(sorted(own["dataset"].unique())), means, correlation))
    return rows


def _measured_under_all(ok: pd.DataFrame) -> list[str]:
    kinds = ok.groupby("detector")["noise"].nunique()
    return [str(name) for name in kinds.index[kinds == ok["noise"].nunique()]]


def rank_correlation(one: Compared, other: Compared, names: list[str]) -> tuple[float, float, float] | None:
    """Of the detectors' mean AUROCs: the median over draws and the middle 95 %."""
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
