"""Detectors compared with each other and with the reference, over rows of the tables of metrics and of draws."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from benchmark import reference
from benchmark.statistics.bootstrap import interval
from benchmark.statistics.hierarchical import Difference, difference, hierarchical_draws

SCALE = 10_000  # draws are stored as whole numbers, in units of 0.0001
INDEPENDENT = 10  # data sets that a test over data sets needs
CELL = ["dataset", "setting", "noise_seed", "training_seed"]


@dataclass(frozen=True)
class Compared:
    """Detectors, and their AUROCs as `hierarchical_draws` takes them."""

    names: list[str]
    datasets: list[list[np.ndarray]]

    @cached_property
    def aurocs(self) -> np.ndarray:
        """Means over data sets: detectors × draws."""
        return hierarchical_draws(self.datasets)

    def difference(self, one: str, other: str) -> Difference:
        return difference(*(self.aurocs[self.names.index(name)] for name in (one, other)))

    def auroc_intervals(self) -> dict[str, tuple[float, float]]:
        """The middle 95 % of each detector's mean AUROC over data sets."""
        return dict(zip(self.names, map(interval, self.aurocs), strict=True))

    def rank_intervals(self) -> dict[str, tuple[float, float]]:
        """The middle 95 % of each detector's mean rank over data sets."""
        return dict(zip(self.names, map(interval, hierarchical_draws(self.datasets, by_rank=True)), strict=True))


def main_line_up(rows: pd.DataFrame) -> pd.DataFrame:
    """Of rows with several line-ups, those of the usual one, or else of the first."""
    names = list(rows["line_up"].unique()) if "line_up" in rows else []
    usual = reference.LINE_UP if reference.LINE_UP in names else next(iter(names), None)
    return rows if usual is None else rows[rows["line_up"] == usual]


def measured_together(measured: pd.DataFrame, column: str = "auroc") -> pd.DataFrame:
    """AUROCs by run and detector: the runs that the reference has, or all; the detectors that have all of these.

    The mean of a detector that was measured in fewer runs would be of other wrong labels.
    """
    aurocs = measured.pivot_table(column, CELL, "detector")
    if reference.DETECTOR in aurocs:
        aurocs = aurocs[aurocs[reference.DETECTOR].notna()]
    return aurocs.dropna(axis=1)


def mean_aurocs(measured: pd.DataFrame, column: str = "auroc") -> pd.Series:
    """Over pairs of seeds, then settings, then data sets, of detectors that were measured together; the best first."""
    means = measured_together(measured, column).groupby(["dataset", "setting"]).mean().groupby("dataset").mean().mean()
    return means.sort_values(ascending=False, kind="stable")


def mean_ranks(measured: pd.DataFrame, column: str = "auroc") -> pd.Series:
    """Over settings, by the mean AUROC over seeds, of detectors that were measured together; the best first."""
    means = measured_together(measured, column).groupby("setting").mean()
    return means.rank(axis=1, ascending=False).mean().sort_values(kind="stable")


def compared(draws: pd.DataFrame, column: str = "auroc", scale: float = SCALE) -> Compared | None:
    """The detectors of one line-up that were measured wherever the reference was, or everywhere if it was nowhere.

    Rows may also be those of the table of metrics, with a column of it and the scale 1: then samples are not redrawn.
    """
    number = draws.groupby([*CELL, "detector", "run"], sort=False).cumcount()
    rows = draws.assign(number=number).drop_duplicates([*CELL, "detector", "number"])
    wide = rows.pivot(index=[*CELL, "number"], columns="detector", values=column)
    if reference.DETECTOR in wide:
        wide = wide[wide[reference.DETECTOR].notna()]
    wide = wide.dropna(axis=1) / scale
    if wide.empty:
        return None
    in_all = wide.groupby(CELL).size().min()  # draws
    wide = wide[wide.index.get_level_values("number") < in_all]
    datasets = [
        [
            setting.to_numpy().reshape(-1, in_all, wide.shape[1]).swapaxes(1, 2)
            for _, setting in dataset.groupby("setting")
        ]
        for _, dataset in wide.groupby("dataset")
    ]
    return Compared([str(name) for name in wide.columns], datasets)


def against_reference(draws: pd.DataFrame) -> dict[str, Difference]:
    """How sure it is that each other detector differs from the reference; nothing without draws of the reference."""
    found = compared(draws)
    if found is None or reference.DETECTOR not in found.names:
        return {}
    others = (name for name in found.names if name != reference.DETECTOR)
    return {name: found.difference(name, reference.DETECTOR) for name in others}


def why_no_tests(rows: pd.DataFrame) -> list[str]:
    """One sentence, if there are too few data sets for a test over data sets."""
    count = rows["dataset"].nunique()
    sentence = f"Tests over data sets (Friedman, Nemenyi) need {INDEPENDENT} or more independent ones, so with {count} "
    return [f"{sentence}there is none."] if count < INDEPENDENT else []
