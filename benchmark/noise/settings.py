"""What says which labels are wrong, and the answer key."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmark.disk import open_arrays
from benchmark.errors import LincBenchError
from benchmark.identity import later
from benchmark.names import check_title

IS_REPLACED = "_is_replaced"  # ending of the names, beside the clean labels, of arrays of which images are replaced
REDRAWN = "symmetric-inclusive"  # the kind that leaves labels right by chance, also at a rate of 1


@dataclass(frozen=True)
class NoiseSettings:
    """Which labels are wrong: the same for every method and recipe that shares these values."""

    kind: str = "symmetric"
    version: int = 1
    rate: float = 0.2
    seed: int = 0
    source: str = field(default="", metadata=later(1))  # what the kind read beside: a column, a matrix, a file

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            hint = f" Did you mean {self.rate / 100:g}?" if 1 < self.rate <= 100 else ""
            raise LincBenchError(f"The noise rate is {self.rate:g}; it is a share of the labels, from 0 to 1.{hint}")
        check_title("kind of noise", self.title)

    @property
    def title(self) -> str:
        """The kind, and what it was made from, without digests."""
        source = self.source.partition("@")[0]
        return f"{self.kind}:{source}" if source else self.kind

    def check(self, samples: int, what: str) -> None:
        """Before anything is trained: a rate above 0 makes some of the labels wrong, and leaves some right."""
        wrong = round(self.rate * samples)
        labels = f"of the {samples:,} {what} would be wrong with a noise rate of {self.rate:g}"
        if self.rate > 0 and wrong == 0:
            raise LincBenchError(f"None {labels}. Choose at least {1 / samples:.1g}, or 0 for labels as they are.")
        if wrong == samples and self.kind != REDRAWN:
            raise LincBenchError(f"All {labels}, and none right to tell them from. Choose a lower rate; 1 % is 0.01.")


@dataclass(frozen=True)
class AnswerKey:
    """The clean labels. Opened only to judge scores and runs; no detector and no training ever sees it."""

    clean_labels: np.ndarray
    clean_validation_labels: np.ndarray
    is_replaced: np.ndarray | None = None  # training images that are those of another data set

    @classmethod
    def read(cls, path: Path) -> "AnswerKey":
        with open_arrays(path) as labels:
            is_replaced, validation = labels.get(f"train{IS_REPLACED}"), labels["validation"]
            if is_replaced is not None:
                validation = np.where(labels[f"validation{IS_REPLACED}"], -1, validation)
            return cls(labels["train"], validation, is_replaced)

    @property
    def labels_that_are_right(self) -> np.ndarray:
        """The clean ones, or -1 for images that are of no class."""
        return self.clean_labels if self.is_replaced is None else np.where(self.is_replaced, -1, self.clean_labels)

    def is_mislabelled(self, given_labels: np.ndarray) -> np.ndarray:
        """A label is wrong if it differs from the clean one; having been redrawn is not enough."""
        return given_labels != self.labels_that_are_right
