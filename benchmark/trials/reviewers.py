"""Simulated reviewers: what their first decisions prove, and whether that is true."""

from collections.abc import Iterator

import numpy as np

from benchmark.counting.certificate import RIGHT, UNDECIDED, WRONG, certificate
from benchmark.counting.review_sample import drawn_order, edges_of
from benchmark.seeds import numpy_generator

MISTAKES = (0.0, 0.05)  # of reviewers: the share of labels that they judge wrongly
DECISIONS = (50, 100, 200)


def review_rows(is_wrong: np.ndarray, seed: int) -> Iterator[dict[str, object]]:
    """A row for each reviewer and number of decisions; `is_wrong` is the truth, from the top of the list."""
    size, total = len(is_wrong), int(is_wrong.sum())
    edges, order = edges_of(size), drawn_order(size, seed)
    wrong_above = np.cumsum(is_wrong)
    for mistakes in MISTAKES:
        is_mistaken = numpy_generator(seed, "reviewer", str(mistakes)).random(size) < mistakes
        judged = np.where(is_wrong ^ is_mistaken, WRONG, RIGHT)
        for count in (count for count in DECISIONS if count <= len(order)):
            decisions = np.full(size, UNDECIDED)
            decisions[order[:count]] = judged[order[:count]]
            proved = certificate(decisions.tolist(), edges, order.tolist())
            holds_above = (np.array(proved["held"]) <= wrong_above).all()
            holds_below = (np.array(proved["rest"]) >= total - wrong_above).all()
            yield {
                "mistakes": mistakes,
                "decisions": count,
                "low": proved["low"] / size,
                "high": proved["high"] / size,
                "covers": bool(proved["low"] <= total <= proved["high"] and holds_above and holds_below),
                "found": int(wrong_above[count - 1]),
                "by_chance": count * total / size,
            }
