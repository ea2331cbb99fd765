"""Noise that depends on the class alone, and not on the image."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest
from benchmark.noise.base import ChanceNoise, ExactNoise, NoiseKind, Samples
from benchmark.paths import regular_file, typed_path

TOLERANCE = 1e-6  # of a row's sum


@dataclass(frozen=True)
class Symmetric(ExactNoise):
    """Each to a uniformly drawn other class (as in the LiNC paper's text)."""

    name: ClassVar[str] = "symmetric"
    summary: ClassVar[str] = "exactly that share of labels, each to a uniformly drawn other class"

    def redraw(self, labels: np.ndarray, samples: Samples, generator: np.random.Generator) -> np.ndarray:
        return (labels + generator.integers(1, samples.num_classes, len(labels))) % samples.num_classes


@dataclass(frozen=True)
class SymmetricInclusive(ExactNoise):
    """Each to a uniformly drawn class, the true one included; what stays right is not wrong."""

    name: ClassVar[str] = "symmetric-inclusive"
    summary: ClassVar[str] = "exactly that share of labels redrawn from all classes, so some stay right by chance"

    def redraw(self, labels: np.ndarray, samples: Samples, generator: np.random.Generator) -> np.ndarray:
        return generator.integers(0, samples.num_classes, len(labels))


@dataclass(frozen=True)
class Pair(ExactNoise):
    """Class c becomes c + 1, the last the first (Han et al., NeurIPS 2018, arXiv 1804.06872)."""

    name: ClassVar[str] = "pair"
    summary: ClassVar[str] = "exactly that share of labels, each to the next class"

    def redraw(self, labels: np.ndarray, samples: Samples, generator: np.random.Generator) -> np.ndarray:
        return (labels + 1) % samples.num_classes


@dataclass(frozen=True)
class Asymmetric(ExactNoise):
    """Each to the most similar class (Patrini et al., CVPR 2017, arXiv 1609.03683, who name such classes by hand).

    Similar is what held-out classifiers (patches.py), trained on correct labels, find most likely after the true class.
    """

    name: ClassVar[str] = "asymmetric"
    summary: ClassVar[str] = "exactly that share of labels, each to the most similar class; or by a matrix"
    options: ClassVar[str] = "FILE.csv (a row per true class, a column per given one, rows sum to one)"

    @classmethod
    def with_option(cls, option: str) -> NoiseKind:
        return read_matrix(typed_path(option)) if option else cls()

    def redraw(self, labels: np.ndarray, samples: Samples, generator: np.random.Generator) -> np.ndarray:
        return most_similar(samples)[labels]


def most_similar(samples: Samples) -> np.ndarray:
    """For each class, the other one whose mean probability is highest."""
    rows = [samples.confusion[samples.labels == label].mean(axis=0) for label in range(samples.num_classes)]
    confusion_KK = np.stack(rows)
    np.fill_diagonal(confusion_KK, -1)
    return confusion_KK.argmax(axis=1)


@dataclass(frozen=True)
class ByMatrix(ChanceNoise):
    """Row c, column k: the chance that a sample of class c is labelled k. Its rate is the mean over classes."""

    name: ClassVar[str] = "asymmetric"
    summary: ClassVar[str] = Asymmetric.summary
    takes_rate: ClassVar[bool] = False

    file: str = ""
    matrix: tuple[tuple[float, ...], ...] = ()

    @property
    def source(self) -> str:
        digest = bytes_digest([repr(self.matrix).encode()])
        return f"{self.file}-{digest[:4]}@{digest[:12]}"

    @property
    def own_rate(self) -> float:
        return round(float(np.mean([1 - row[label] for label, row in enumerate(self.matrix)])), 6)

    def chances(self, samples: Samples, rate: float, generator: np.random.Generator) -> np.ndarray:
        if samples.num_classes != len(self.matrix):
            raise LincBenchError(
                f"The noise matrix {self.file} is for {len(self.matrix)} classes; the data set has "
                f"{samples.num_classes}. Give a row and a column for each class."
            )
        return np.array(self.matrix)[samples.labels]


def read_matrix(path: Path) -> ByMatrix:
    try:
        matrix = np.loadtxt(
            regular_file(path, f"The noise matrix {path}"), delimiter=",", ndmin=2, encoding="utf-8-sig"
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise LincBenchError(f"{path} is not a matrix of numbers ({error}). Separate them by commas.") from error
    rows, columns = matrix.shape
    if rows != columns or rows < 2:
        raise LincBenchError(f"The matrix in {path} is {rows} × {columns}; expected a row and a column per class.")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise LincBenchError(f"The matrix in {path} has entries that are no chances. They are numbers from 0 to 1.")
    if len(wrong := np.flatnonzero(abs(matrix.sum(axis=1) - 1) > TOLERANCE)):
        row = int(wrong[0])
        raise LincBenchError(
            f"Row {row + 1} of the matrix in {path} sums to {matrix[row].sum():g}; each row has the chances of all "
            "labels for one true class, and sums to 1."
        )
    return ByMatrix(path.stem, tuple(tuple(row) for row in (matrix / matrix.sum(axis=1, keepdims=True)).tolist()))
