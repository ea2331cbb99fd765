"""VoG, the variance of gradients (Agarwal et al., CVPR 2022, arXiv 2008.11600).

S_k = ∂z_ỹ/∂x at K checkpoints, averaged over channels; per pixel the standard deviation over k; mean over pixels; then
z-scored within each given class; high is noisy. H-CAT: gradient of the probability, epochs 1, 3 and 5, the standard
deviation of each channel (`channels`), no class normalisation, and it reads high as clean (`high_is_clean` reproduces
its number).
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from benchmark.identity import later
from benchmark.record import InputGradientSpread, RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class VoG(Detector):
    name: ClassVar[str] = "VoG"
    summary: ClassVar[str] = "how much the input gradient of the given label's logit varies over checkpoints"

    stage: Literal["early", "late", "all"] = "early"
    checkpoints: int = 3
    at_epochs: tuple[int, ...] = ()
    output: Literal["logit", "probability"] = "logit"
    per_class: bool = True
    high_is_clean: bool = False
    channels: Literal["mean", "separate"] = field(default="mean", metadata=later(1))

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (InputGradientSpread(self.stage, self.checkpoints, self.at_epochs, self.output, self.channels),)

    def epochs_used(self, epochs: int) -> int:
        return max(InputGradientSpread(self.stage, self.checkpoints, self.at_epochs).epochs_of(epochs), default=0)

    def score(self, record: RunRecord) -> np.ndarray:
        scores = np.array(record[self.needs[0]], dtype=np.float64)
        if self.per_class:
            for label in np.unique(record.given_labels):
                members = record.given_labels == label
                spread = scores[members].std()
                scores[members] = (scores[members] - scores[members].mean()) / (spread if spread > 0 else 1.0)
        return -scores if self.high_is_clean else scores
