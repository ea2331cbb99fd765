"""Label noise: makes labels wrong on purpose, and keeps the answer key."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.disk import open_arrays
from benchmark.errors import LincBenchError, unknown_name
from benchmark.seeds import numpy_generator


@dataclass(frozen=True)
class NoiseKind:
    """How the chosen labels are redrawn, from their classes, the number of classes and a generator."""

    name: str
    summary: str
    redraw: Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
    version: int = 1


def _other_classes(labels: np.ndarray, num_classes: int, generator: np.random.Generator) -> np.ndarray:
    return (labels + generator.integers(1, num_classes, len(labels))) % num_classes


def _any_classes(labels: np.ndarray, num_classes: int, generator: np.random.Generator) -> np.ndarray:
    return generator.integers(0, num_classes, len(labels))


NOISE_KINDS = (
    NoiseKind("symmetric", "exactly that share of labels, each to a uniformly drawn other class", _other_classes),
    NoiseKind(
        "symmetric-inclusive",
        "exactly that share of labels redrawn from all classes, so some stay right by chance",
        _any_classes,
    ),
)


def noise_named(name: str) -> NoiseKind:
    for kind in NOISE_KINDS:
        if kind.name == name:
            return kind
    raise unknown_name("noise kind", name, [kind.name for kind in NOISE_KINDS])


@dataclass(frozen=True)
class NoiseSettings:
    """Which labels are wrong: the same for every method and recipe that shares these values."""

    kind: str = "symmetric"
    version: int = 1
    rate: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            hint = f" Did you mean {self.rate / 100:g}?" if 1 < self.rate <= 100 else ""
            raise LincBenchError(f"The noise rate is {self.rate:g}; it is a share of the labels, from 0 to 1.{hint}")

    def check(self, samples: int, what: str) -> None:
        """Before anything is trained: a rate above 0 makes some of the labels wrong, and leaves some right."""
        wrong = round(self.rate * samples)
        labels = f"of the {samples:,} {what} would be wrong with a noise rate of {self.rate:g}"
        if self.rate > 0 and wrong == 0:
            raise LincBenchError(f"None {labels}. Choose at least {1 / samples:.1g}, or 0 for labels as they are.")
        if wrong == samples and self.kind == NOISE_KINDS[0].name:
            raise LincBenchError(f"All {labels}, and none right to tell them from. Choose a lower rate; 1 % is 0.01.")

    def corrupt(self, clean_labels: np.ndarray, num_classes: int, split: str) -> np.ndarray:
        """A copy in which exactly the share `rate` is redrawn."""
        generator = numpy_generator(self.seed, "noise", split)
        given = clean_labels.copy()
        chosen = generator.choice(len(given), size=round(self.rate * len(given)), replace=False)
        given[chosen] = noise_named(self.kind).redraw(given[chosen], num_classes, generator)
        return given


@dataclass(frozen=True)
class AnswerKey:
    """The clean labels. Opened only to judge scores and runs; no detector and no training ever sees it."""

    clean_labels: np.ndarray
    clean_validation_labels: np.ndarray

    @classmethod
    def read(cls, path: Path) -> "AnswerKey":
        with open_arrays(path) as labels:
            return cls(labels["train"], labels["validation"])

    def is_mislabelled(self, given_labels: np.ndarray) -> np.ndarray:
        """A label is wrong if it differs from the clean one; having been redrawn is not enough."""
        return given_labels != self.clean_labels
