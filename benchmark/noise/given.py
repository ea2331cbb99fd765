"""Wrong labels as people made them: two labels per image, of which one is trusted.

In an .npz the correct labels are those of MedMNIST's layout (`train_labels`), and the ones that people gave have names
that go on after it (`train_labels_worse`, with `val_labels_worse` beside it). In a CSV they are another column.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.data.other_labels import other_labels
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest
from benchmark.noise.base import NoiseKind, Samples, WrongLabels


@dataclass(frozen=True)
class Given(NoiseKind):
    name: ClassVar[str] = "given"
    summary: ClassVar[str] = "as people made them: a second column or key of labels in the data set's own file"
    options: ClassVar[str] = "KEY or COLUMN, such as given:train_labels_worse"

    takes_rate: ClassVar[bool] = False
    takes_seed: ClassVar[bool] = False

    column: str = ""
    labels: Mapping[str, np.ndarray] = field(default_factory=dict, compare=False)  # by split
    correct: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False)  # of training

    @classmethod
    def with_option(cls, option: str) -> NoiseKind:
        if not option:
            raise LincBenchError("Which labels did people give? Name their key or column: --given-labels NAME.")
        return cls(option)

    def of_dataset(self, argument: str, data_root: Path | None) -> "Given":
        labels, correct = other_labels(argument, self.column)
        return replace(self, labels=labels, correct=correct)

    @property
    def source(self) -> str:
        digest = bytes_digest(labels.astype("<i8").tobytes() for labels in self.labels.values())
        return f"{self.column.removeprefix('train_labels_')}@{digest[:12]}"

    @property
    def own_rate(self) -> float:
        return round(float((self.labels["train"] != self.correct).mean()), 6)

    def corrupt(self, samples: Samples, rate: float, seed: int) -> WrongLabels:
        return WrongLabels({split: self.labels[split] for split in samples.sizes})
