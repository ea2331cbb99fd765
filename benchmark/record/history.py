"""How large a training run is, what each of its epochs gave, and what each of its parts took."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from benchmark.futures import background_seconds


@dataclass(frozen=True)
class RunShape:
    """What the shapes of its arrays depend on."""

    epochs: int
    samples: int
    classes: int


TRAINING_LOOP, THE_OBJECTIVE = ("training",), ("objective",)  # payers that every run has


class Charge(NamedTuple):
    """What a clock measures, and who pays for it: the loop, the objective, or the signals of a recorder."""

    part: str
    payers: tuple[str, ...]

    def __str__(self) -> str:
        return self.part if self.payers == (self.part,) else f"{self.part} for {' and '.join(self.payers)}"


STEPS = Charge("training", TRAINING_LOOP)  # the network, the optimiser and the data, without the objective
EVALUATION = Charge("validation and test", TRAINING_LOOP)
OBJECTIVE = Charge("objective", THE_OBJECTIVE)
END_OF_EPOCHS = Charge("end of epochs", THE_OBJECTIVE)
RECORDING = "recording"  # a part of which each recorder has its own clock
PASS = "evaluation pass"  # over the training set, paid by the recorder or objective that asked for it
PASS_OF_OBJECTIVE = Charge(PASS, THE_OBJECTIVE)


@dataclass
class Stopwatch:
    """Processor time of this thread, which other programs change far less than the time on the wall.

    Waiting for a disk is then not counted, nor is what other threads do, except reading ahead for this one. With
    several threads per run, or on an accelerator, wall time is measured instead.
    """

    device: str = "cpu"
    threads: int = 1

    @property
    def counts_processor_time(self) -> bool:
        return self.device == "cpu" and self.threads == 1

    @property
    def elapsed(self) -> float:
        """Since an arbitrary moment: only differences have a meaning."""
        if self.counts_processor_time:
            return time.thread_time() + background_seconds()
        if self.device != "cpu":  # it works asynchronously, and the next clock would be charged for its work
            import torch

            getattr(torch, self.device).synchronize()
        return time.perf_counter()


@dataclass
class History:
    """Loss and accuracy per epoch, predictions on validation and test, and what each part of the run took."""

    rows: list[dict[str, float]] = field(default_factory=list)
    predictions: dict[str, list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))
    laps: dict[Charge, list[float]] = field(default_factory=lambda: defaultdict(list))  # seconds of each clock run
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    _running: list[Charge] = field(default_factory=list)  # clocks, each inside the one before
    _charged: float = 0.0  # seconds already charged to clocks inside the running one

    @contextmanager
    def clock(self, charge: Charge) -> Iterator[None]:
        """Measures the time inside, without the time of clocks that run inside this one."""
        outer, start = self._charged, self.stopwatch.elapsed
        self._charged = 0.0
        self._running.append(charge)
        try:
            yield
        finally:
            self._running.pop()
            elapsed = self.stopwatch.elapsed - start
            self.laps[charge].append(elapsed - self._charged)
            self._charged = outer + elapsed

    def charge_caller(self, part: str) -> Charge:
        """`part`, paid by those who pay for the running clock."""
        return Charge(part, self._running[-1].payers if self._running else TRAINING_LOOP)

    @property
    def seconds(self) -> dict[str, float]:
        """Of each clock in total, under readable names."""
        return {str(charge): sum(laps) for charge, laps in self.laps.items()}

    def add_time_of(self, other: "History") -> None:
        for charge, laps in other.laps.items():
            self.laps[charge] += laps
