"""Makes labels wrong on purpose, and keeps the answer key."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from benchmark.errors import LincBenchError, unknown_name
from benchmark.seeds import numpy_generator


class NoiseKind(Protocol):
    """Returns new labels for `clean_labels`; draws all chance from `generator` and never changes its input."""

    name: ClassVar[str]
    version: ClassVar[int]
    summary: ClassVar[str]

    def corrupt(
        self, clean_labels: np.ndarray, num_classes: int, rate: float, generator: np.random.Generator
    ) -> np.ndarray: ...


def _chosen(n: int, rate: float, generator: np.random.Generator) -> np.ndarray:
    return generator.choice(n, size=round(rate * n), replace=False)


@dataclass(frozen=True)
class Symmetric:
    name: ClassVar[str] = "symmetric"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "exactly that share of labels, each to a uniformly drawn other class"

    def corrupt(
        self, clean_labels: np.ndarray, num_classes: int, rate: float, generator: np.random.Generator
    ) -> np.ndarray:
        given = clean_labels.copy()
        chosen = _chosen(len(given), rate, generator)
        given[chosen] = (given[chosen] + generator.integers(1, num_classes, len(chosen))) % num_classes
        return given


@dataclass(frozen=True)
class SymmetricInclusive:
    name: ClassVar[str] = "symmetric-inclusive"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "exactly that share of labels redrawn from all classes, so some stay right by chance"

    def corrupt(
        self, clean_labels: np.ndarray, num_classes: int, rate: float, generator: np.random.Generator
    ) -> np.ndarray:
        given = clean_labels.copy()
        chosen = _chosen(len(given), rate, generator)
        given[chosen] = generator.integers(0, num_classes, len(chosen))
        return given


NOISE_KINDS: tuple[NoiseKind, ...] = (Symmetric(), SymmetricInclusive())


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

    def corrupt(self, clean_labels: np.ndarray, num_classes: int, split: str) -> np.ndarray:
        generator = numpy_generator(self.seed, "noise", split)
        return noise_named(self.kind).corrupt(clean_labels, num_classes, self.rate, generator)


@dataclass(frozen=True)
class AnswerKey:
    """The clean labels. Only evaluation opens it; no detector and no training ever does."""

    clean_labels: np.ndarray
    clean_validation_labels: np.ndarray

    def is_mislabelled(self, given_labels: np.ndarray) -> np.ndarray:
        """A label is wrong if it differs from the clean one; having been redrawn is not enough."""
        return given_labels != self.clean_labels
