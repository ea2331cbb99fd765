"""Random scores from a fixed seed: the floor that every detector must clear (AUC 0.5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.record import RunRecord, Signal
from detectors.base import Detector


@dataclass(frozen=True)
class Random(Detector):
    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "a fixed shuffle, for the floor"

    expected_failures: ClassVar[Mapping[str, str]] = {
        "sample order": "random scores belong to positions, not to samples",
        "right direction": "random scores know nothing",
    }

    seed: int = 0

    @property
    def needs(self) -> tuple[Signal, ...]:
        return ()

    def epochs_used(self, epochs: int) -> int:
        return 0

    def score(self, record: RunRecord) -> np.ndarray:
        return np.random.default_rng(self.seed).random(len(record.given_labels))
