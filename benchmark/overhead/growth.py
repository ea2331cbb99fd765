"""How the cost of each detector grows with samples, classes and epochs, on synthetic features.

The network is so small that what a detector adds to it is visible. The reference method's own state (its objective
alone) is measured up to four million samples, and at the size of ImageNet.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from benchmark.disk import ResultsFolder, provenance_columns
from benchmark.disk.tables import matches, merge_rows
from benchmark.execution.progress import Progress
from benchmark.overhead.charges import Row, of_same_recipe, variant_for, variants_for
from benchmark.overhead.measure import measure_memory, measure_seconds
from benchmark.overhead.setups import objective_only, synthetic
from benchmark.overhead.tables import IMAGENET, OWN_STATE
from benchmark.record import RunShape
from benchmark.training import TrainingSettings
from detectors import DETECTORS
from detectors.linc import LiNC, LiNCRecipe

SMALL, NOT_LARGE = 2000, 1_000_000  # samples up to which detectors, or the own state, are measured three times
KEY = ["axis", "samples", "classes", "epochs", "quantity", "detector"]


@dataclass(frozen=True)
class Point:
    """One size at which everything is measured."""

    axis: str
    samples: int = 1000
    classes: int = 8
    epochs: int = LiNCRecipe().min_epochs  # enough for all phases

    @property
    def sizes(self) -> tuple[int, int, TrainingSettings]:
        return self.samples, self.classes, TrainingSettings(epochs=self.epochs)

    def row(self, quantity: str, detector: str, added: float, baseline: float, recorded: int) -> Row:
        """`recorded` are the bytes that the detector leaves on disk."""
        values = {"added": float(f"{added:.5g}"), "baseline": float(f"{baseline:.5g}"), "recorded_bytes": recorded}
        return asdict(self) | {"quantity": quantity, "detector": detector} | values | provenance_columns()


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


def _seconds(point: Point) -> Iterator[Row]:
    """Of every detector, in runs that those of one recipe share; each is charged the whole cost of its signals, and
    signals that are recorded together share theirs."""
    by_recipe = [of_same_recipe(detector, DETECTORS) for detector in DETECTORS]
    variants = {variant_for(readers): readers for readers in by_recipe}
    observed = measure_seconds(partial(synthetic, *point.sizes), variants, rounds=3 if point.samples <= SMALL else 1)
    for variant, readers in variants.items():
        runs = observed[variant]
        base = float(np.median([run.base for run in runs]))
        for detector in readers:
            added = float(np.median([run.added(detector) for run in runs]))
            shape, read = RunShape(point.epochs, point.samples, point.classes), variant_for([detector]).signals
            recorded = sum(runs[0].recorded.get(signal.key, signal.bytes_needed(shape)) for signal in read)
            yield point.row("seconds", detector.label, added, base, recorded)


def _bytes(point: Point) -> Iterator[Row]:
    """Peak memory of every detector alone, in training and recording or in scoring; with and without its record."""
    variants = variants_for(DETECTORS)
    memory = measure_memory(partial(synthetic, *point.sizes), variants, rounds=1)
    for variant, ((peaks, baseline),) in memory.items():
        added = peaks.run - baseline.run
        for detector in variants[variant]:
            for quantity, of_run in (("bytes", added), ("bytes beyond the record", added - peaks.held)):
                highest = max(of_run, peaks.scoring[detector])
                yield point.row(quantity, detector.label, highest, baseline.run, peaks.recorded)


def _state(point: Point) -> Iterator[Row]:
    """Of LiNC's objective alone, compared with cross-entropy."""
    own = variant_for([LiNC(LiNCRecipe(warm_up=1, soft_epochs=1))])
    setup, rounds = partial(objective_only, *point.sizes), 3 if point.samples <= NOT_LARGE else 1
    runs = measure_seconds(setup, {own: ()}, rounds)[own]
    recorded = sum(runs[0].recorded.values())
    seconds, base = np.median([(run.objective, run.base) for run in runs], axis=0)
    yield point.row("seconds", OWN_STATE, seconds, base, recorded)
    pairs = measure_memory(setup, {own: ()}, rounds)[own]
    added, baseline = np.median([(peaks.run - base.run, base.run) for peaks, base in pairs], axis=0)
    yield point.row("bytes", OWN_STATE, added, baseline, recorded)
    yield point.row("bytes beyond the record", OWN_STATE, added - recorded, baseline, recorded)
    if point.axis == IMAGENET:
        yield from _disk(replace(point, epochs=TrainingSettings().epochs))


def _disk(point: Point) -> Iterator[Row]:
    """What every detector would leave on disk, computed."""
    shape = RunShape(point.epochs, point.samples, point.classes)
    for detector in DETECTORS:
        needed = sum(signal.bytes_needed(shape) for signal in variant_for([detector]).signals)
        yield point.row("disk", detector.label, needed, 0, needed)
