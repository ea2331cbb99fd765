"""TracIn's self-influence (Pruthi et al., NeurIPS 2020, arXiv 2002.08484): high is noisy.

Σ_t η_t ‖∇l_i(t)‖² over checkpoints t, with the learning rate η_t: how much a step of gradient descent on a sample
changes its own loss (training here uses Adam, whose steps are others).
For a linear classifier on h the gradient is known: ‖∇l‖² = ‖p − e_ỹ‖² (‖h‖² + 1). `parameters` = "all trained" takes
that of all trained parameters, at the same checkpoints, and costs far more. Checkpoints are spread evenly over the
training, nine of them, as the authors' for CIFAR-10 (every 30th of 270 epochs).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.identity import Json
from benchmark.record import CheckpointGradientNorms, RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class TracIn(Detector):
    name: ClassVar[str] = "TracIn"
    summary: ClassVar[str] = "how much a step on the sample would change its own loss, over checkpoints"

    checkpoints: int = 9
    parameters: Literal["classifier", "all trained"] = "classifier"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (CheckpointGradientNorms(self.checkpoints, self.parameters),)

    def score(self, record: RunRecord) -> np.ndarray:
        norms_EN = record[self.needs[0]]
        rates = [_learning_rate(record.settings, epoch) for epoch in self.needs[0].epochs_of(record.epochs)]
        return (np.array(rates)[:, None] * np.square(norms_EN.astype(np.float64))).sum(axis=0)


def _learning_rate(settings: Json, epoch: int) -> float:
    """In that epoch; one where the record does not tell."""
    if not settings:
        return 1.0
    training = settings["training"]
    drops = sum(milestone < epoch for milestone in training["milestones"])
    return float(training["learning_rate"] * training["decay"] ** drops)
