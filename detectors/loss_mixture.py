"""Loss mixture, as in DivideMix (Li et al., ICLR 2020, arXiv 2002.07394).

The posterior of the high-mean component of a two-component Gaussian mixture on the per-sample loss after the warm-up;
high is noisy. Beyond the components' means the posterior is held, since a wide component would win both tails.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EvalSummary, RunRecord, Signal
from benchmark.statistics.mixture import posterior_of_highest
from detectors.base import Detector
from detectors.logits import mean_cross_entropy


@dataclass(frozen=True)
class LossMixture(Detector):
    name: ClassVar[str] = "loss mixture"
    version: ClassVar[int] = 3  # reads summaries of logits
    summary: ClassVar[str] = "probability of the high-loss component of a mixture, after the warm-up"

    warm_up: int = 5

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EvalSummary(at_epochs=(self.warm_up,)),)

    def epochs_used(self, epochs: int) -> int:
        return min(self.warm_up, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        return posterior_of_highest(record.map_samples(mean_cross_entropy, self.needs[0]))  # of one epoch
