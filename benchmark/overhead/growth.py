"""How the cost of each detector grows with samples, classes and epochs, on synthetic features.

The network is so small that what a detector adds to it is visible. The reference method's own state (its objective
alone) is measured up to four million samples, and at the size of ImageNet.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmark.disk import ResultsFolder, provenance_columns
from benchmark.disk.tables import matches, merge_rows
from benchmark.execution.progress import Progress
from benchmark.overhead.charges import variant_for, variants_for
from benchmark.overhead.measure import measure_memory, measure_seconds
from benchmark.overhead.setups import ObjectiveOnly, Synthetic
from benchmark.overhead.tables import IMAGENET, OWN_STATE
from benchmark.record import RunShape
from benchmark.training import TrainingSettings
from detectors import DETECTORS
from detectors.linc import LiNC, LiNCRecipe

SMALL, NOT_LARGE = 2000, 1_000_000  # samples up to which detectors, or the own state, are measured three times
KEY = ["axis", "samples", "classes", "epochs", "quantity", "detector"]
Row = dict[str, object]


@dataclass(frozen=True)
class Point:
    """One size at which everything is measured."""

    axis: str
    samples: int = 1000
    classes: int = 8
    epochs: int = LiNCRecipe().min_epochs  # enough for all phases

    @property
    def training(self) -> TrainingSettings:
        return TrainingSettings(epochs=self.epochs)

    def row(self, quantity: str, detector: str, added: float, baseline: float, recorded: int) -> Row:
        """`recorded` are the bytes that the detector leaves on disk."""
        size = {"axis": self.axis, "samples": self.samples, "classes": self.classes, "epochs": self.epochs}
        values = {"added": float(f"{added:.5g}"), "baseline": float(f"{baseline:.5g}"), "recorded_bytes": recorded}
        return size | {"quantity": quantity, "detector": detector} | values | provenance_columns()


SECONDS = (
    *(Point("samples", samples=1000 * 2**power) for power in range(8)),
    *(Point("classes", classes=classes) for classes in (2, 5, 10, 20, 50, 100)),
    *(Point("epochs", epochs=epochs) for epochs in (5, 10, 20, 40, 70)),
)
BYTES = tuple(Point("samples", samples=samples) for samples in (1000, 4000, 16_000, 64_000))
STATE = (
    *(Point("samples", samples=64_000 * 2**power, classes=10, epochs=3) for power in range(7)),
    Point(IMAGENET, samples=1_281_167, classes=1000, epochs=3),
)


def measure_growth(results: ResultsFolder, progress: Progress) -> None:
    """The rows of every point replace older ones as soon as they are measured."""
    measures = ((_state, STATE), (_seconds, SECONDS), (_bytes, BYTES))
    work = [(measure, point) for measure, points in measures for point in points]
    weights = np.cumsum([point.samples * point.epochs // 1000 for _, point in work]).tolist()
    with progress.counting("growth, thousands of samples times epochs") as report:
        report(0, weights[-1])
        for (measure, point), done in zip(work, weights, strict=True):
            rows = list(measure(point))
            merge_rows(results, "overhead_growth", rows, partial(matches, KEY, rows))
            report(done, weights[-1])


def _quietly(done: int, total: int) -> None:
    pass


def _seconds(point: Point) -> Iterator[Row]:
    """Of every detector, in runs that those of one recipe share; each is charged the whole cost of what it reads."""
    variants = {}
    for recipe in dict.fromkeys(detector.training for detector in DETECTORS):
        readers = [detector for detector in DETECTORS if detector.training == recipe]
        variants[variant_for(readers)] = readers
    rounds = 3 if point.samples <= SMALL else 1
    observed = measure_seconds(Synthetic(point.samples, point.classes, point.training), variants, rounds, _quietly)
    for variant, readers in variants.items():
        runs = observed[variant]
        for detector in readers:
            alone = variant_for([detector])
            added = np.median([run.objective + run.recording(alone) + run.scoring[detector] for run in runs])
            recorded = sum(runs[0].recorded[signal.key] for signal in alone.signals)
            base = np.median([run.base for run in runs])
            yield point.row("seconds", detector.label, float(added), float(base), recorded)


def _bytes(point: Point) -> Iterator[Row]:
    """Peak memory of every detector alone, in training and recording or in scoring; with and without its record."""
    variants = variants_for(DETECTORS)
    found = measure_memory(Synthetic(point.samples, point.classes, point.training), variants, 1, _quietly)
    for variant, readers in variants.items():
        (peaks,), (baseline,), (added,) = found[variant].peaks, found[variant].baselines, found[variant].added()
        for detector in readers:
            scoring = peaks.scoring[detector]
            yield point.row("bytes", detector.label, max(added, scoring), baseline.run, peaks.recorded)
            beyond = max(added - peaks.held, scoring)
            yield point.row("bytes beyond the record", detector.label, beyond, baseline.run, peaks.recorded)


def _state(point: Point) -> Iterator[Row]:
    """Of LiNC's objective alone, compared with cross-entropy."""
    own = variant_for([LiNC(LiNCRecipe(warm_up=1, soft_epochs=1))])
    setup = ObjectiveOnly(point.samples, point.classes, point.training)
    rounds = 3 if point.samples <= NOT_LARGE else 1
    runs = measure_seconds(setup, {own: ()}, rounds, _quietly)[own]
    recorded = sum(runs[0].recorded.values())
    seconds, base = np.median([(run.objective, run.base) for run in runs], axis=0)
    yield point.row("seconds", OWN_STATE, seconds, base, recorded)
    memory = measure_memory(setup, {own: ()}, rounds, _quietly)[own]
    added, baseline = np.median(memory.added()), np.median([peaks.run for peaks in memory.baselines])
    yield point.row("bytes", OWN_STATE, float(added), float(baseline), recorded)
    yield point.row("bytes beyond the record", OWN_STATE, float(added) - recorded, float(baseline), recorded)
    if point.axis == IMAGENET:
        yield from _disk(replace(point, epochs=TrainingSettings().epochs))


def _disk(point: Point) -> Iterator[Row]:
    """What every detector would leave on disk, computed."""
    shape = RunShape(point.epochs, point.samples, point.classes)
    for detector in DETECTORS:
        needed = sum(signal.bytes_needed(shape) for signal in variant_for([detector]).signals)
        yield point.row("disk", detector.label, needed, 0, needed)
