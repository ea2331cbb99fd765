"""AUM, the area under the margin (Pleiss et al., NeurIPS 2020, arXiv 2001.10528).

margin = z_ỹ − max over the other classes of z, on the logits that produced the update; AUM = its mean over epochs.
Low AUM is noisy, so the score is −AUM. The authors leave the first epoch out (`skip_first_epoch`) and train without
drops of the learning rate, about as long as it would take to the first one: ours reads up to the first milestone of the
schedule (`until`), or to the end if the record does not tell or has none. H-CAT: all epochs, the first included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import TRAIN_SUMMARY, RunRecord, Signal
from benchmark.training import TrainingSettings
from detectors.base import Detector
from detectors.logits import given_margin


@dataclass(frozen=True)
class AUM(Detector):
    name: ClassVar[str] = "AUM"
    version: ClassVar[int] = 3  # reads summaries of logits
    summary: ClassVar[str] = "margin of the given label's logit over the best other, averaged over epochs"

    skip_first_epoch: bool = True
    until: Literal["first drop", "end"] = "first drop"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (TRAIN_SUMMARY,)

    def epochs_used_in(self, training: TrainingSettings) -> int:
        return self._last_epoch(training.epochs, training.milestones)

    def score(self, record: RunRecord) -> np.ndarray:
        milestones = record.settings["training"]["milestones"] if record.settings else ()
        until_then = record.first_epochs(self._last_epoch(record.epochs, milestones))
        return until_then.map_samples(self._negative_aum, TRAIN_SUMMARY)

    def _last_epoch(self, epochs: int, milestones: Sequence[int]) -> int:
        return min([epochs, *milestones]) if self.until == "first drop" else epochs

    def _negative_aum(self, labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
        first = 1 if self.skip_first_epoch and len(summary_EB) > 1 else 0
        return -given_margin(summary_EB[first:]).mean(axis=0)  # low AUM is noisy
