"""The answer in one minute: a table of all detectors with quality, cost and paper, and a few short sentences."""

import pandas as pd

from benchmark.display.front_page import Board
from benchmark.display.tables import MISSING
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.headlines import accuracy_cells, compared_rows, counted_rows
from benchmark.paper.verdicts import GAINS, NOT_TESTED, VERDICTS, WORDS
from benchmark.reference import DETECTOR
from benchmark.statistics.comparisons import compared, measured_together
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


def leaderboard(board: Board | None) -> pd.DataFrame:
    """The first view of the page's board: a row per detector, the best first."""
    if board is None:
        return pd.DataFrame()
    rows = []
    for row in board.views[board.first]:
        entry = board.entries[row.detector]
        number = entry.paper_link.rpartition("/")[2]
        rows.append(
            {
                "detector": entry.title,
                "AUROC": row.value,
                "rank": row.ranked or MISSING,
                "trainings": entry.trainings or MISSING,
                "added cost": entry.cost or MISSING,
                "paper": ", ".join(filter(None, (entry.paper, number and f"arXiv {number}"))) or MISSING,
            }
        )
    return pd.DataFrame(rows)


def _overall(rows: pd.DataFrame) -> pd.Series:
    """Mean AUROC over data sets of the detectors that were measured together."""
    return measured_together(rows).groupby("dataset").mean().mean()


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
            f"{len(noisy)} settings, by {noisy['last'].mean():+.1f} points on average ({noisy['last'].min():+.1f} to "
            f"{noisy['last'].max():+.1f})."
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
