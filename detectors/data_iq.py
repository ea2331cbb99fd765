"""Data-IQ (Seedat et al., NeurIPS 2022, arXiv 2210.13043).

From end-of-epoch evaluation: confidence = mean_t p_t(ỹ), aleatoric = mean_t p_t(ỹ)(1 − p_t(ỹ)). The authors define
groups (hard = low confidence with low aleatoric uncertainty) and no single score. Ours, monotone and true to that:
(1 − confidence) − aleatoric = mean_t (1 − p_t(ỹ))²; high is noisy. H-CAT: 1 − confidence. The bare aleatoric
uncertainty is a choice too, but not monotone in noisiness.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import EVAL_SUMMARY, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import given_probability


@dataclass(frozen=True)
class DataIQ(Detector):
    name: ClassVar[str] = "Data-IQ"
    version: ClassVar[int] = 2  # reads summaries of logits
    summary: ClassVar[str] = "low confidence with low aleatoric uncertainty, over the epochs"

    measure: Literal["hard", "confidence", "aleatoric"] = "hard"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_SUMMARY,)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, EVAL_SUMMARY)

    def _score(self, labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
        probability_EB = given_probability(summary_EB)
        if self.measure == "confidence":
            return 1.0 - probability_EB.mean(axis=0)
        if self.measure == "aleatoric":
            return (probability_EB * (1.0 - probability_EB)).mean(axis=0)
        return np.square(1.0 - probability_EB).mean(axis=0)
