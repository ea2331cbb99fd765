"""Forgetting events (Toneva et al., ICLR 2019, arXiv 1812.05159).

correct_t = [argmax = ỹ] at presentation; the score counts how often a sample that was right turns wrong. One that was
never learned gets the number of epochs, the maximum; high is noisy. H-CAT evaluates at the end of epochs and gives
such samples 0, which turns the worst samples into the best (`never_learned`). Scores have many ties. The authors sum
the counts of five runs; the mean over runs ranks samples as their sum does.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import RunRecord, Signal
from detectors.base import Detector
from detectors.logits import Moment, summary_at


@dataclass(frozen=True)
class Forgetting(Detector):
    name: ClassVar[str] = "forgetting"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "how often a sample that was classified as labelled no longer is"

    never_learned: Literal["most", "zero"] = "most"
    moment: Moment = "presentation"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (summary_at(self.moment),)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, summary_at(self.moment))

    def _score(self, labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
        correct_EB = summary_EB["predicted"] == labels_B
        forgotten_B = (correct_EB[:-1] & ~correct_EB[1:]).sum(axis=0)
        if self.never_learned == "most":
            forgotten_B = np.where(correct_EB.any(axis=0), forgotten_B, len(correct_EB))
        return forgotten_B.astype(np.float64)
