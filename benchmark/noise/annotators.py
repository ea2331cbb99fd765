"""Noise of several annotators (the model of Dawid and Skene, Applied Statistics 1979).

Five simulated raters, each with a skill and a confusion of its own: rater r labels an image of class c wrongly with
the chance e_r, and takes it for another class in proportion to a row drawn from a flat Dirichlet distribution. The e_r
lie evenly between half and one and a half times the rate. An image gets the label of one rater, picked at
random, or with `majority` that of three different ones; if they all disagree, one of theirs. Majorities err less than
the rate while it is below a half.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from benchmark.noise.base import ChanceNoise, NoiseKind, Samples

RATERS = 5
SKILLS = (0.5, 1.5)  # errors of the best and of the worst rater, in units of the rate
MAJORITY = "majority"


@dataclass(frozen=True)
class Annotators(ChanceNoise):
    name: ClassVar[str] = "annotators"
    summary: ClassVar[str] = "labels of simulated raters with different skill and confusion: one, or a majority"
    options: ClassVar[str] = MAJORITY
    reaches: ClassVar[tuple[float, float]] = (0.0, 0.66)

    vote: str = ""

    @classmethod
    def with_option(cls, option: str) -> NoiseKind:
        return cls(option) if option == MAJORITY else super().with_option(option)

    @property
    def source(self) -> str:
        return self.vote

    def chances(self, samples: Samples, rate: float, generator: np.random.Generator) -> np.ndarray:
        raters_RKK = confusions(samples.num_classes, rate, generator)
        if self.vote == MAJORITY:
            table_KK = np.mean([majority(*three) for three in combinations(raters_RKK, 3)], axis=0)
        else:
            table_KK = raters_RKK.mean(axis=0)
        return table_KK[samples.labels]


def confusions(num_classes: int, rate: float, generator: np.random.Generator) -> np.ndarray:
    """Raters × true × given."""
    is_other = ~np.eye(num_classes, dtype=bool)
    errors = rate * np.linspace(*SKILLS, RATERS)
    raters_RKK = np.zeros((RATERS, num_classes, num_classes))
    drawn = generator.dirichlet(np.ones(num_classes - 1), (RATERS, num_classes))
    raters_RKK[:, is_other] = drawn.reshape(RATERS, -1)
    return raters_RKK * errors[:, None, None] + np.eye(num_classes) * (1 - errors)[:, None, None]


def majority(a_KK: np.ndarray, b_KK: np.ndarray, c_KK: np.ndarray) -> np.ndarray:
    """True × given: at least two of three agree, or else one of them is picked."""

    def alone(one: np.ndarray, two: np.ndarray, three: np.ndarray) -> np.ndarray:
        """One says so, and the others say two other classes that differ."""
        both = (two * three).sum(axis=1, keepdims=True) - two * three
        return one * ((1 - two) * (1 - three) - both)

    agree = a_KK * b_KK + a_KK * c_KK + b_KK * c_KK - 2 * a_KK * b_KK * c_KK
    return agree + (alone(a_KK, b_KK, c_KK) + alone(b_KK, a_KK, c_KK) + alone(c_KK, a_KK, b_KK)) / 3
