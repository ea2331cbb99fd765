"""What the loop minimises. Cross-entropy is the short case; LiNC is another (detectors/linc.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmark.record import Signal

if TYPE_CHECKING:
    from torch import Tensor

    from benchmark.record.recorders import Predict


class Objective:
    """A loss per batch. May keep state per sample; leaves signals behind."""

    def loss(self, epoch: int, indices: Tensor, logits: Tensor) -> Tensor:
        raise NotImplementedError

    def end_epoch(self, epoch: int, predict: Predict) -> None:
        pass

    def signals(self) -> Mapping[Signal, np.ndarray]:
        return {}


@dataclass(frozen=True)
class CrossEntropy(Objective):
    labels: Tensor

    def loss(self, epoch: int, indices: Tensor, logits: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, self.labels[indices])
