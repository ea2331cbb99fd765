"""What the loop is given: the settings of a training, and the objective that it minimises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmark.errors import LincBenchError
from benchmark.identity import later
from benchmark.networks import HeadInit
from benchmark.record import Signal

if TYPE_CHECKING:
    from torch import Tensor

    from benchmark.record.recorders import Predict


@dataclass(frozen=True)
class TrainingSettings:
    """The paper's section on the model and training, as values."""

    epochs: int = 70
    batch_size: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 1e-4
    milestones: tuple[int, ...] = (10, 20, 40, 60)
    decay: float = 0.7
    seed: int = 0
    threads: int = 1  # bytes depend on it, so it is a setting; parallelism is over runs
    device: str = "cpu"
    plain: bool = False  # the whole network runs in every step, instead of its tail on cached features
    augment: bool = False  # random flips and crops of the training images
    head_init: HeadInit = field(default="small", metadata=later(1, before="torch"))
    warm_up_steps: int = field(default=0, metadata=later(1))  # in which the learning rate rises from 0
    clip_norm: float = field(default=0.0, metadata=later(1))  # longest gradient of all trained parameters; 0: any

    def __post_init__(self) -> None:
        if self.augment and not self.plain:
            raise LincBenchError("Augmentation changes the images in every step, so it needs the plain path.")


class Objective:
    """A loss per batch. May keep state per sample, and leave signals behind. CrossEntropy is short; LiNC is longer."""

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
