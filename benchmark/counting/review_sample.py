"""The random sample of a review, drawn beforehand, and the certificate of the decisions so far."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmark.counting.certificate import RIGHT, UNDECIDED, UNRESOLVED, WRONG
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


def decisions_of(words: pd.Series) -> list[int]:
    """Of the ranked list, as `certificate` takes them."""
    return [CODES[word] for word in words]
