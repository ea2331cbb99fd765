"""DataMaps, dataset cartography (Swayamdipta et al., EMNLP 2020, arXiv 2009.10795).

confidence = mean over epochs of p(ỹ) at presentation; low confidence is noisy, so the score is 1 − confidence.
`measure` chooses the map's other axis instead: variability, the standard deviation of p(ỹ) over epochs. Its meaning
turns over during training, so it is no default. H-CAT takes end-of-epoch evaluation (`moment`).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import RunRecord, Signal
from detectors.base import Detector
from detectors.logits import Moment, given_probability, summary_at


@dataclass(frozen=True)
class DataMaps(Detector):
    name: ClassVar[str] = "DataMaps"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "one minus the mean probability of the given label while training"

    measure: Literal["confidence", "variability"] = "confidence"
    moment: Moment = "presentation"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (summary_at(self.moment),)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, summary_at(self.moment))

    def _score(self, labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
        probability_EB = given_probability(summary_EB)
        if self.measure == "variability":
            return probability_EB.std(axis=0)
        return 1.0 - probability_EB.mean(axis=0)  # low confidence is noisy
