"""Data some of whose images are those of another data set (noise/open_set.py)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.data.image_files import Images
from benchmark.data.labelled import Rows

STAYS = -1  # in the place of the number of another image
REPLACED = "_replaced"  # ending of the names of these numbers beside the given labels


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
