"""Post-hoc trust: LiNC's trust recursion run on the logits of *standard* training; score 1 − α after the warm-up.

α ← α − η((−log p_ỹ − H(p))/B + λα), as in detectors/linc.py, without feeding α back into training: the difference to
LiNC is what that feedback adds. The batch size B scales the steps but not the ranking, unless trust leaves [0, 1].
`moment` takes the logits at the end of each epoch: the same recursion on a network that has learned a little more.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from benchmark.record import RunRecord, Signal
from detectors.base import Detector
from detectors.linc import LiNCRecipe
from detectors.logits import Moment, summary_at


@dataclass(frozen=True)
class PostHocTrust(Detector):
    name: ClassVar[str] = "post-hoc trust"
    version: ClassVar[int] = 3  # reads summaries of logits
    summary: ClassVar[str] = "LiNC's trust, computed from standard training's logits afterwards"

    like: LiNCRecipe = field(default=LiNCRecipe())
    batch_size: int | None = None  # that of the run, or the paper's 128 where the record does not tell
    moment: Moment = "presentation"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (summary_at(self.moment, tuple(range(1, self.like.warm_up + 1))),)

    def epochs_used(self, epochs: int) -> int:
        return min(self.like.warm_up, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        batch_size = self.batch_size or (record.settings["training"]["batch_size"] if record.settings else 128)
        scale = 1 / batch_size if self.like.trust_gradient == "mean" else 1.0
        return record.map_samples(lambda labels_B, summary_EB: self._score(summary_EB, scale), self.needs[0])

    def _score(self, summary_EB: np.ndarray, scale: float) -> np.ndarray:
        gradient_EB = summary_EB["loss"].astype(np.float64) - summary_EB["entropy"]
        trust_B = np.ones(summary_EB.shape[1])
        for gradient_B in gradient_EB[self.like.trust_from_epoch - 1 :]:
            step_B = gradient_B * scale + self.like.trust_decay * trust_B
            trust_B = np.clip(trust_B - self.like.trust_rate * step_B, 0.0, 1.0)
        return 1.0 - trust_B  # low trust is noisy
