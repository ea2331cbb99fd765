"""The answer in one minute: a table of all detectors with quality, cost and paper, and a few short sentences."""

import pandas as pd

from benchmark.display.tables import MISSING
from benchmark.overhead.tables import added_costs
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.headlines import accuracy_cells, compared_rows, counted_rows
from benchmark.paper.verdicts import GAINS, NOT_TESTED, VERDICTS, WORDS
from benchmark.reference import DETECTOR
from benchmark.runs import ORIGINAL
from benchmark.statistics.comparisons import compared, mean_ranks, measured_together
from benchmark.statistics.hierarchical import BETTER, EQUIVALENT, SAME, UNDECIDED, WORSE
from benchmark.wording import dataset_title

BOARD_TITLE = f"Every detector, {paper.DETECTION_RATE:.0%} symmetric noise; no score is averaged over trainings"
BOARD = (
    "AUROC and rank: means over data sets, 1 being the best rank; in brackets 95 % intervals of a bootstrap over "
    "data sets, then pairs of seeds, then samples (of few data sets, they show how these differ). Trainings: how "
    "many networks it trains; those in folds are shorter. Added cost: what it adds to one standard training on "
    "cached features if it is used alone, on the data that were profiled (results/tables/overhead); with more "
    "images the share of a mixture falls and that of neighbours grows. Not ranked: what was not measured in every "
    "run, since its mean is of other wrong labels."
)


def leaderboard(tables: select.Tables, costs: pd.DataFrame) -> pd.DataFrame:
    """A row per detector as its authors describe it, from one training each; the best first."""
    rows = compared_rows(counted_rows(tables["metrics"]))
    if rows.empty:
        return pd.DataFrame()
    aurocs = rows.pivot_table("auroc", ["dataset", *select.SEEDS], "detector_name")
    drawn = compared(compared_rows(counted_rows(tables["auroc_draws"])))
    means, ranks = (drawn.auroc_intervals(), drawn.rank_intervals()) if drawn else ({}, {})
    overall, rank = _overall(rows).sort_values(ascending=False), mean_ranks(rows)
    order = [*overall.index, *aurocs.columns.difference(overall.index)]
    known = {detector.name: detector for detector in ORIGINAL.detectors}
    cost, epochs = added_costs(costs, rows.iloc[0]), int(rows["epochs"].iloc[0])
    board = []
    for name in map(str, order):
        detector, is_complete = known.get(name), name in rank  # a user's own is not known
        cited, number = detector.paper if detector else ("", "")
        trainings = getattr(detector.training, "folds", 1) if detector and detector.epochs_used(epochs) else 0
        board.append(
            {
                "detector": name,
                "AUROC": _with_interval(overall[name], means.get(name), 3) if is_complete else _in_part(aurocs[name]),
                "rank": _with_interval(rank[name], ranks.get(name), 1) if is_complete else MISSING,
                "trainings": str(trainings) if detector else MISSING,
                "added cost": f"{cost[name]:.1%}" if name in cost else MISSING,
                "paper": ", ".join(filter(None, (cited, number and f"arXiv {number}"))) or MISSING,
            }
        )
    return pd.DataFrame(board)


def _overall(rows: pd.DataFrame) -> pd.Series:
    """Mean AUROC over data sets of the detectors that were measured together."""
    return measured_together(rows).groupby("dataset").mean().mean()


def _in_part(aurocs: pd.Series) -> str:
    return f"{aurocs.groupby('dataset').mean().mean():.3f} in {aurocs.notna().sum()} of {len(aurocs)} runs"


def _with_interval(value: float, ends: tuple[float, float] | None, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]" if ends else "")


def short_answers(tables: select.Tables, judged: pd.DataFrame) -> list[str]:
    """At most 25 words each: who finds most, who is better than the reference, accuracy, and the paper."""
    rows = compared_rows(counted_rows(tables["metrics"]))
    noisy = accuracy_cells(counted_rows(tables["accuracy"]))
    noisy = noisy[noisy["rate"] > 0]
    answers = [_who_finds_most(rows)] if len(rows) else []
    drawn = compared(compared_rows(counted_rows(tables["auroc_draws"])))
    if drawn and DETECTOR in drawn.names:
        others = [drawn.difference(name, DETECTOR).verdict for name in drawn.names if name != DETECTOR]
        counts = ", ".join(f"{others.count(word)} {word}" for word in (BETTER, WORSE, SAME, UNDECIDED))
        answers.append(
            f"Against {DETECTOR}: {counts}, of {len(others)} others measured everywhere (margin {EQUIVALENT:g})."
        )
    if len(noisy):
        answers.append(
            f"Accuracy: with noise, {DETECTOR}'s correction helps the last epoch in {(noisy['last'] > 0).sum()} of "
            f"{len(noisy)} settings, by {noisy['last'].mean():+.1f} points on average."
        )
    verdicts = judged.loc[judged["where"] == GAINS, "verdict"]
    measured = verdicts[verdicts != NOT_TESTED]
    said = [f"{count} {WORDS.get(word, word)}" for word in VERDICTS if (count := (measured == word).sum())]
    answers.append(
        f"Paper: of {DETECTOR}'s {len(verdicts)} gains in accuracy, {len(measured)} were measured: {', '.join(said)}."
    )
    return answers


def _who_finds_most(rows: pd.DataFrame) -> str:
    means = _overall(rows)
    where = ", ".join(dataset_title(str(name)) for name in rows["dataset"].unique())
    own, rank = means[DETECTOR], int(means.rank(ascending=False, method="min")[DETECTOR])
    return (
        f"Detection: {means.idxmax()} finds most at {paper.DETECTION_RATE:.0%} noise (mean AUROC {means.max():.3f}); "
        f"{DETECTOR} is {rank} of {len(means)} ({own:.3f}). Data: {where}."
    )
