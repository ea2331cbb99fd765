"""The answer in one minute: a table of all detectors with quality, cost and paper, and a few short sentences."""

import pandas as pd

from benchmark.display.front_page import Board
from benchmark.display.tables import MISSING
from benchmark.paper import select
from benchmark.paper.board import verdict
from benchmark.paper.headlines import accuracy_cells, counted_rows
from benchmark.paper.numbers import DETECTION
from benchmark.paper.verdicts import GAINS, NOT_TESTED, VERDICTS, WORDS
from benchmark.reference import DETECTOR
from benchmark.statistics.hierarchical import BETTER, EQUIVALENT, SAME, UNDECIDED, WORSE

MOST = 12  # detectors of the table, besides those that the paper compares


def leaderboard(board: Board) -> pd.DataFrame:
    """Of the first view of the page's board: the best detectors, and those that the paper compares."""
    rows = []
    for place, row in enumerate(board.views[board.first]):
        entry = board.detectors[row.detector]
        if place >= MOST and row.detector not in DETECTION:
            continue
        number = entry.paper_link.rpartition("/")[2]
        rows.append(
            {
                "detector": entry.title,
                "AUROC": row.value,
                "rank": row.ranked or MISSING,
                f"vs. {DETECTOR}": row.versus or MISSING,
                "trainings": entry.trainings or MISSING,
                "added cost": entry.cost or MISSING,
                "paper": ", ".join(filter(None, (entry.paper, number and f"arXiv {number}"))) or MISSING,
            }
        )
    return pd.DataFrame(rows)


def short_answers(board: Board | None, tables: select.Tables, judged: pd.DataFrame) -> list[str]:
    """At most 25 words each: who finds most, who is better than the reference, accuracy, and the paper."""
    answers = []
    if board is not None:
        sentence = verdict(board)
        answers.append(f"Detection: {sentence[0].lower()}{sentence[1:]}")
        verdicts = [row.verdict for row in board.views[board.first] if row.verdict]
        counts = ", ".join(f"{verdicts.count(word)} {word}" for word in (BETTER, WORSE, SAME, UNDECIDED))
        answers.append(f"Against {DETECTOR}: of the {len(verdicts)} others, {counts} (margin {EQUIVALENT:g} AUROC).")
    noisy = accuracy_cells(counted_rows(tables["accuracy"]))
    noisy = noisy[noisy["rate"] > 0]
    if len(noisy):
        answers.append(
            f"Accuracy: with noise, {DETECTOR}'s correction helps the last epoch in {(noisy['last'] > 0).sum()} of "
            f"{len(noisy)} settings, by {noisy['last'].mean():+.1f} points on average (lowest "
            f"{noisy['last'].min():+.1f}, highest {noisy['last'].max():+.1f})."
        )
    gains = judged.loc[judged["where"] == GAINS, "verdict"]
    measured = gains[gains != NOT_TESTED]
    said = [f"{count} {WORDS.get(word, word)}" for word in VERDICTS if (count := (measured == word).sum())]
    answers.append(
        f"Paper: of {DETECTOR}'s {len(gains)} gains in accuracy, {len(measured)} were measured: {', '.join(said)}."
    )
    return answers
