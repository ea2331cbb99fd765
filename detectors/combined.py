"""Several detectors as one: their ranks, averaged; high is noisy.

Each detector's scores become ranks among all samples from 0 to 1, ties sharing one, and `method` averages them. The
mean orders samples as Borda's count does, whose points are the ranks; the median does not follow one detector that is
far off. They may be any that read runs of one recipe. The default is what `linc-bench audit` ranks by, as far as one
standard training has it: post-hoc trust in the place of LiNC's, Data-OOB in that of its held-out classifiers.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from benchmark.errors import LincBenchError
from benchmark.record import RunRecord, Signal
from benchmark.training import Recipe, TrainingSettings
from detectors.base import Detector
from detectors.data_iq import DataIQ
from detectors.data_oob import DataOOB
from detectors.el2n import EL2N
from detectors.nearest_neighbours import Neighbours
from detectors.post_hoc_trust import PostHocTrust


@dataclass(frozen=True)
class Combined(Detector):
    name: ClassVar[str] = "combined"
    summary: ClassVar[str] = "mean rank of post-hoc trust, EL2N, Data-IQ, nearest neighbours and Data-OOB"

    of: tuple[Detector, ...] = (PostHocTrust(), EL2N(), DataIQ(), Neighbours(), DataOOB())
    method: Literal["mean", "median"] = "mean"

    def __post_init__(self) -> None:
        if len({detector.training for detector in self.of}) != 1:
            raise LincBenchError("Detectors to be combined must read runs of one recipe; these read several, or none.")

    @property
    def label(self) -> str:
        changed = () if self.of == type(self).of else tuple(detector.label for detector in self.of)
        rule = () if self.method == type(self).method else (f"by {self.method}",)
        return f"{self.name} ({'; '.join((*changed, *rule))})" if changed or rule else self.name

    @property
    def training(self) -> Recipe:
        return self.of[0].training

    @property
    def needs(self) -> tuple[Signal, ...]:
        return tuple(dict.fromkeys(signal for detector in self.of for signal in detector.needs))

    def epochs_used(self, epochs: int) -> int:
        return max(detector.epochs_used(epochs) for detector in self.of)

    def epochs_used_in(self, training: TrainingSettings) -> int:
        return max(detector.epochs_used_in(training) for detector in self.of)

    def score(self, record: RunRecord) -> np.ndarray:
        from scipy.stats import rankdata

        ranks_DN = np.stack([rankdata(detector.score(record)) - 1 for detector in self.of])
        return (np.median if self.method == "median" else np.mean)(ranks_DN, axis=0) / max(1, ranks_DN.shape[1] - 1)
