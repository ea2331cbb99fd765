"""The whole contract of a detector.

A detector is a frozen dataclass in a file of its own: it reads a finished run record and gives every training sample a
number. *Higher means more suspicious, always*; where a paper points the other way, the minus sign and one comment live
in that detector's file and nowhere else. A detector ranks; it never thresholds, never sees the clean labels, never
writes. Choices that people disagree on are fields.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from benchmark.identity import label_of
from benchmark.record import RunRecord, Signal
from benchmark.training import Recipe, Standard, TrainingSettings


@dataclass(frozen=True)
class Detector(ABC):
    name: ClassVar[str]
    version: ClassVar[int] = 1  # raise it when scores may change
    summary: ClassVar[str] = ""  # one line for `linc-bench list`
    expected_failures: ClassVar[Mapping[str, str]] = MappingProxyType({})  # checks it cannot pass, and why

    @property
    def training(self) -> Recipe:
        """The recipe whose runs it reads."""
        return Standard()

    @property
    @abstractmethod
    def needs(self) -> tuple[Signal, ...]:
        """The signals it reads, and no others."""

    @abstractmethod
    def score(self, record: RunRecord) -> np.ndarray:
        """(n,) float64, one number per sample, higher = more suspicious."""

    def epochs_used(self, epochs: int) -> int:
        """How many of a run's epochs the score looks at."""
        return epochs

    def epochs_used_in(self, training: TrainingSettings) -> int:
        """The same of a run with these settings; one that stops where the schedule changes overrides this."""
        return self.epochs_used(training.epochs)

    @property
    def paper(self) -> tuple[str, str]:
        """Authors, venue and year, and the arXiv number, as its file's first lines say; empty if they say nothing."""
        about = sys.modules[type(self).__module__].__doc__ or ""
        said = re.search(r"\((?:as in )?([^()]+(?: et al\.| and )[^()]*?)(?:, arXiv ([\d.]+))?\)", about)
        return (said[1], said[2] or "") if said else ("", "")

    @property
    def label(self) -> str:
        """Its name, and what differs from the defaults."""
        return label_of(self)
