"""What training is given: features with labels, some of the labels wrong."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class LabelledFeatures:
    """What the frozen prefix made of a split, and the labels that training or evaluation is given for it."""

    features: np.ndarray
    labels: Tensor
    rows: np.ndarray | None = None  # of `features`, if not all of them

    def gather(self, indices: Tensor) -> Tensor:
        wanted = indices.cpu().numpy()
        batch = torch.from_numpy(self.features[wanted if self.rows is None else self.rows[wanted]])
        return batch.to(self.labels.device, torch.float32)

    def subset(self, rows: np.ndarray) -> "LabelledFeatures":
        return LabelledFeatures(self.features, self.labels[torch.from_numpy(rows)], rows)


@dataclass(frozen=True)
class TrainingData:
    train: LabelledFeatures  # labels as given, some of them wrong
    validation: LabelledFeatures  # likewise: a practitioner has no others
    test: LabelledFeatures
    num_classes: int

    def with_training_rows(self, rows: np.ndarray) -> "TrainingData":
        return replace(self, train=self.train.subset(rows))
