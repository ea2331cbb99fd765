"""The random sample of a review, drawn beforehand, and the certificate of the decisions so far."""

import inspect
import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from benchmark.counting import certificate, certificate_words
from benchmark.counting.certificate import RIGHT, UNDECIDED, UNRESOLVED, WRONG
from benchmark.counting.certificate_words import in_words
from benchmark.seeds import numpy_generator

FIRST = 0.1  # of the list: the first stratum; most wrong labels should be there
TURNS = (0, 1, 1)  # strata in turn: a decision in the first for two in the second
DRAWN = 600  # places; hardly anybody decides on more
CODES = {"": UNDECIDED, "keep": RIGHT, "relabel": WRONG, "ambiguous": UNRESOLVED, "skip": UNRESOLVED}


def edges_of(size: int) -> list[int]:
    """Where the strata of a list end. (With more strata, bounds were wider on simulated lists.)"""
    return [max(1, round(FIRST * size)), size] if size > 1 else [size]


def drawn_order(size: int, seed: int = 0) -> np.ndarray:
    """Places of a list of this size, in the order in which they are to be decided."""
    generator, start = numpy_generator(seed, "review sample"), 0
    left: list[Iterator[int]] = []
    for end in edges_of(size):
        left.append(iter((start + generator.permutation(end - start)).tolist()))
        start = end
    order: list[int] = []
    while len(order) < min(DRAWN, size):
        order += [place for turn in TURNS if turn < len(left) and (place := next(left[turn], None)) is not None]
    return np.array(order[:DRAWN])


def with_sample(ranked: pd.DataFrame) -> pd.DataFrame:
    """The list with a column `sample`: the turn of each place in the drawn order, or nothing."""
    order = drawn_order(len(ranked))
    turns = np.full(len(ranked), "", dtype=object)
    turns[order] = np.arange(1, len(order) + 1)
    listed = ranked.copy()
    listed.insert(list(listed).index("rank") + 1, "sample", turns)
    return listed


def proved_by(listed: pd.DataFrame, decided: pd.Series) -> list[str]:
    """What decisions on an audit's list prove, in sentences; nothing if the list is of a version without a sample.

    The columns `rank` and `sample` may be text.
    """
    if not {"rank", "sample"} <= set(listed):
        return []
    numbers = listed[["rank", "sample"]].apply(pd.to_numeric, errors="coerce")
    by_rank = numbers.assign(decided=decided).sort_values("rank", ignore_index=True)
    turns = by_rank["sample"].dropna().sort_values()
    codes = [CODES[word] for word in by_rank["decided"]]
    return in_words(codes, edges_of(len(codes)), [int(place) for place in turns.index])


@cache
def as_javascript() -> str:
    """certificate.py and certificate_words.py for a page, as one script."""
    from pscript import py2js

    text = inspect.getsource(certificate) + inspect.getsource(certificate_words)
    return f"{py2js(re.sub(r'^from .*', '', text, flags=re.MULTILINE))}\n"
