"""EL2N, the error's L2 norm (Paul et al., NeurIPS 2021, arXiv 2107.07075).

‖p − e_ỹ‖₂ at one early epoch in evaluation mode; high is noisy. The authors advise to average it over ten trainings;
here every detector is judged from one, and averaged over several in a table of its own (`Grid.trainings`).
H-CAT: squared, last epoch, one training.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import EvalSummary, RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class EL2N(Detector):
    name: ClassVar[str] = "EL2N"
    version: ClassVar[int] = 3  # reads summaries of logits
    summary: ClassVar[str] = "distance of the prediction from the given label at an early epoch"

    epoch: int | None = 10  # the last if there are fewer, or if none is named
    squared: bool = False

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EvalSummary(at_epochs=(self.epoch or 0,)),)

    def epochs_used(self, epochs: int) -> int:
        return min(self.epoch or epochs, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, self.needs[0])

    def _score(self, labels_B: np.ndarray, summary_1B: np.ndarray) -> np.ndarray:
        other_probability_B = -np.expm1(-summary_1B["loss"][0].astype(np.float64))  # 1 − p(given label)
        squares_B = np.square(other_probability_B) + summary_1B["other_squares"][0]
        return squares_B if self.squared else np.sqrt(squares_B)
