"""What a training run leaves to be read later: a row per epoch, predictions, and what each of its parts took."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

# What a run's time is charged to; beside these, each recorder has a clock of its own name.
STEPS = "training"  # the network, the optimiser and the data, without the objective
OBJECTIVE = "objective"
END_OF_EPOCHS = "objective at the end of epochs"
PASS = "evaluation pass"  # over the training set, for whoever asked for it
EVALUATION = "validation and test"


@dataclass
class Stopwatch:
    """Processor time of this thread, which other programs change far less than the time on the wall.

    Waiting for a disk is then not counted, nor is what other threads do: whoever has them work says so with
    `background`. With several threads per run, or an accelerator, only the time on the wall can be had.
    """

    device: str = "cpu"
    threads: int = 1
    background: float = 0.0  # seconds of threads that read ahead

    @property
    def counts_processor_time(self) -> bool:
        return self.device == "cpu" and self.threads == 1

    def now(self) -> float:
        if self.counts_processor_time:
            return time.thread_time()
        if self.device != "cpu":  # it works behind our back, and the next to look would pay for its work
            getattr(torch, self.device).synchronize()
        return time.perf_counter()

    def add_background(self, seconds: float) -> None:
        if self.counts_processor_time:
            self.background += seconds

    @property
    def elapsed(self) -> float:
        """Since some moment: only differences mean anything."""
        return self.now() + self.background


@dataclass
class History:
    """Loss and accuracy per epoch, predictions on validation and test, and what each part of the run took."""

    rows: list[dict[str, float]] = field(default_factory=list)
    predictions: dict[str, list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))
    laps: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # seconds of each time a clock ran
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    _running: list[str] = field(default_factory=list)  # clocks, each inside the one before
    _charged: float = 0.0  # seconds already charged to clocks inside the running one

    @contextmanager
    def clock(self, part: str) -> Iterator[None]:
        """Charges time to `part`; what runs under a clock inside this one is charged there instead."""
        outer, start = self._charged, self.stopwatch.elapsed
        self._charged = 0.0
        self._running.append(part)
        try:
            yield
        finally:
            self._running.pop()
            elapsed = self.stopwatch.elapsed - start
            self.laps[part].append(elapsed - self._charged)
            self._charged = outer + elapsed

    @property
    def seconds(self) -> dict[str, float]:
        return {part: sum(laps) for part, laps in self.laps.items()}

    def add_time_of(self, other: "History") -> None:
        self.stopwatch.background += other.stopwatch.background
        for part, laps in other.laps.items():
            self.laps[part] += laps

    def on_behalf(self, part: str) -> str:
        """A name for `part` that says whose clock is running, since that is who has to pay for it."""
        return f"{part} for {self._running[-1]}" if self._running else part
