"""Data-IQ (Seedat et al., NeurIPS 2022, arXiv 2210.13043).

From end-of-epoch evaluation: confidence = mean_t p_t(ỹ), aleatoric = mean_t p_t(ỹ)(1 − p_t(ỹ)). The authors define
groups (hard = low confidence with low aleatoric uncertainty) and no single score. Ours, monotone and true to that:
(1 − confidence) − aleatoric = mean_t (1 − p_t(ỹ))²; high is noisy. H-CAT: 1 − confidence. The bare aleatoric
uncertainty is a choice too, but not monotone in noisiness.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import EVAL_LOGITS, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import given_log_probability


@dataclass(frozen=True)
class DataIQ(Detector):
    name: ClassVar[str] = "Data-IQ"
    summary: ClassVar[str] = "low confidence with low aleatoric uncertainty, over the epochs"

    measure: Literal["hard", "confidence", "aleatoric"] = "hard"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_LOGITS,)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, EVAL_LOGITS)

    def _score(self, labels_B: np.ndarray, logits_EBK: np.ndarray) -> np.ndarray:
        probability_EB = np.exp(given_log_probability(logits_EBK, labels_B))
        if self.measure == "confidence":
            return 1.0 - probability_EB.mean(axis=0)
        if self.measure == "aleatoric":
            return (probability_EB * (1.0 - probability_EB)).mean(axis=0)
        return np.square(1.0 - probability_EB).mean(axis=0)
