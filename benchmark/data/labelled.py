"""What training reads: features or live images, batch by batch, with the given labels."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from benchmark.data.datasets import STAYS, Images
from benchmark.futures import charge_background

Change = Callable[[Tensor], Tensor]


class Rows(Protocol):
    """An array, in memory or mapped from disk, or anything that is read like one."""

    def __getitem__(self, rows: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class ReplacedRows:
    own: Rows
    other: Rows
    numbers: np.ndarray  # of the row of `other` that takes the place of each own row, or STAYS

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        batch, number = np.array(self.own[rows]), self.numbers[rows]
        if (is_replaced := number != STAYS).any():
            batch[is_replaced] = self.other[number[is_replaced]]
        return batch


@dataclass(frozen=True)
class ReplacedImages:
    own: Images
    other: Images
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, window: slice) -> Sequence[np.ndarray]:
        numbers = self.numbers[window].tolist()
        return [
            image if number == STAYS else self.other[number : number + 1][0]
            for image, number in zip(self.own[window], numbers, strict=True)
        ]


@dataclass(frozen=True)
class LabelledFeatures:
    """What training reads of a split, and the labels that it is given for it."""

    features: Rows
    labels: Tensor
    rows: np.ndarray | None = None  # of `features`, if not all of them

    def batches(self, order: Tensor, size: int, change: Change | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Indices and features, batch by batch; each is gathered in the background while the one before is used.

        The thread that asks is charged for the processor time of each batch when it is handed over.
        """

        def read(indices: Tensor) -> tuple[Tensor, Tensor, float]:
            started = time.thread_time()
            wanted = indices.cpu().numpy()
            rows = wanted if self.rows is None else self.rows[wanted]
            batch = torch.from_numpy(self.features[rows]).to(self.labels.device)
            return indices, change(batch) if change else batch, time.thread_time() - started

        with ThreadPoolExecutor(1) as reader:
            first, *others = torch.split(order, size)
            upcoming = reader.submit(read, first)
            for following in (*others, None):
                ready = upcoming
                if following is not None:
                    upcoming = reader.submit(read, following)
                indices, batch, seconds = ready.result()
                charge_background(seconds)
                yield indices, batch

    def in_order(self, size: int) -> Iterator[Tensor]:
        everyone = torch.arange(len(self.labels), device=self.labels.device)
        return (batch for _, batch in self.batches(everyone, size))

    def subset(self, rows: np.ndarray) -> "LabelledFeatures":
        own = rows if self.rows is None else self.rows[rows]
        return LabelledFeatures(self.features, self.labels[torch.from_numpy(rows)], own)


@dataclass(frozen=True)
class TrainingData:
    train: LabelledFeatures  # labels as given, some of them wrong
    validation: LabelledFeatures  # likewise: a practitioner has no others
    test: LabelledFeatures
    num_classes: int
    groups: np.ndarray | None = None  # of training samples, the same for duplicates, if these are known

    def with_training_rows(self, rows: np.ndarray) -> "TrainingData":
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, train=self.train.subset(rows), groups=groups)
