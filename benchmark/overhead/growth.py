"""How the cost of each detector grows with samples, classes and epochs, on synthetic features; and LiNC's own state.

The network is so small that what is added to it can be seen. Seconds and bytes are differences from a twin without
detectors. LiNC's own state is measured without any network, up to four million samples and at ImageNet's size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk.provenance import provenance_columns
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import matches, merge_rows
from benchmark.execution.progress import Progress
from benchmark.identity import Json
from benchmark.overhead.overhead import TWIN, Variant, measure_seconds, peaks_in_child, variant_for
from benchmark.overhead.workbench import Measured, Synthetic, record_in
from benchmark.record.history import END_OF_EPOCHS, EVALUATION, OBJECTIVE, PASS, STEPS, History
from benchmark.record.recorders import Predict, RunShape, Signal
from benchmark.runs.pipeline import set_up_torch
from benchmark.seeds import torch_generator
from benchmark.statistics.mixture import FITTED
from benchmark.training.loop import Recipe, TrainingSettings
from detectors import DETECTORS, Detector
from detectors.linc import LiNC, LiNCRecipe

OWN_STATE = "LiNC's own state"
IMAGENET = "ImageNet"
FEW, MANY = 2000, 1_000_000  # what is small is measured three times after a warm-up; so is a state that is not large
KEY = ["axis", "samples", "classes", "epochs", "quantity", "detector"]
Row = dict[str, Json]


@dataclass(frozen=True)
class Point:
    """One size at which everything is measured."""

    axis: str
    samples: int = 1000
    classes: int = 8
    epochs: int = LiNCRecipe().min_epochs  # all of LiNC's phases

    @property
    def training(self) -> TrainingSettings:
        return TrainingSettings(epochs=self.epochs)

    def row(self, quantity: str, detector: str, added: float, twin: float, recorded: int) -> Row:
        """`recorded` are the bytes that the detector leaves on disk."""
        at = {"axis": self.axis, "samples": self.samples, "classes": self.classes, "epochs": self.epochs}
        added, twin = (float(f"{value:.5g}") for value in (added, twin))
        of = {"quantity": quantity, "detector": detector, "added": added, "twin": twin, "recorded_bytes": recorded}
        return at | of | provenance_columns()


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
    """Every point's rows take the place of older ones as soon as they are there."""
    work = [*((_state, point) for point in STATE), *((_seconds, point) for point in SECONDS)]
    work += [(_bytes, point) for point in BYTES]
    weights = np.cumsum([point.samples * point.epochs // 1000 for _, point in work]).tolist()
    with progress.counting("growth, thousands of samples times epochs") as report:
        report(0, weights[-1])
        for (measure, point), done in zip(work, weights, strict=True):
            rows = list(measure(point))
            merge_rows(results, "overhead_growth", rows, partial(matches, KEY, rows))
            report(done, weights[-1])


def _seconds(point: Point) -> Iterator[Row]:
    """Of every detector, in runs that those of one recipe share; each is charged the whole cost of what it reads."""
    variants: dict[Variant, list[Detector]] = {}
    for recipe in dict.fromkeys(detector.training for detector in DETECTORS):
        readers = [detector for detector in DETECTORS if detector.training == recipe]
        variants[variant_for(readers)] = readers
    few = point.samples <= FEW
    with TemporaryDirectory() as folder:
        bench = Synthetic(point.samples, point.classes, point.training).build(Path(folder))
        found = measure_seconds(bench, variants, 3 if few else 1, Path(folder) / "run", warm_up=int(few))
    for variant, readers in variants.items():
        for detector in readers:
            keys = [signal.key for signal in variant_for([detector]).signals]
            added = [
                run.charges.objective + sum(run.charges.signals.get(key, 0.0) for key in keys) + run.scoring[detector]
                for run in found.of[variant]
            ]
            recorded = sum(found.of[variant][0].recorded[key] for key in keys)
            yield point.row("seconds", detector.label, float(np.median(added)), found.base(variant), recorded)


def _bytes(point: Point) -> Iterator[Row]:
    """Peak memory of every detector alone, in training and recording or in scoring; with and without its record."""
    setup = Synthetic(point.samples, point.classes, point.training)
    variants: dict[Variant, list[Detector]] = {}
    for detector in DETECTORS:
        variants.setdefault(variant_for([detector]), []).append(detector)
    twin = peaks_in_child(setup, TWIN, ()).run
    for variant, readers in variants.items():
        peaks = peaks_in_child(setup, variant, readers)
        for detector in readers:
            added, scoring = peaks.run - twin, peaks.scoring[detector]
            yield point.row("bytes", detector.label, max(added, scoring), twin, peaks.recorded)
            beyond = max(added - peaks.held, scoring)
            yield point.row("bytes beyond the record", detector.label, beyond, twin, peaks.recorded)


def _state(point: Point) -> Iterator[Row]:
    """Of LiNC's objective alone, against cross-entropy."""
    own = variant_for([LiNC(LiNCRecipe(warm_up=1, soft_epochs=1))])
    setup = ObjectiveOnly(point.samples, point.classes, point.training)
    rounds = 3 if point.samples <= MANY else 1
    with TemporaryDirectory() as folder:
        found = measure_seconds(setup.build(Path(folder)), {own: ()}, rounds, Path(folder) / "run", warm_up=0)
    (runs,) = found.of.values()
    recorded = sum(runs[0].recorded.values())
    added = float(np.median([run.charges.objective for run in runs]))
    yield point.row("seconds", OWN_STATE, added, found.base(own), recorded)
    pairs = [[peaks_in_child(setup, variant, ()) for variant in (TWIN, own)] for _ in range(rounds)]
    twin, peak = np.median([[one.run for one in pair] for pair in pairs], axis=0)
    yield point.row("bytes", OWN_STATE, peak - twin, twin, recorded)
    yield point.row("bytes beyond the record", OWN_STATE, peak - twin - recorded, twin, recorded)
    yield from _disk(point)


def _disk(point: Point) -> Iterator[Row]:
    """What every detector would leave on disk at ImageNet's size, after as many epochs as the paper's."""
    if point.axis != IMAGENET:
        return
    long = replace(point, epochs=TrainingSettings().epochs)
    shape = RunShape(long.epochs, long.samples, long.classes)
    for detector in DETECTORS:
        needed = sum(signal.bytes_needed(shape) for signal in variant_for([detector]).signals)
        yield long.row("disk", detector.label, needed, 0, needed)


@dataclass(frozen=True)
class ObjectiveOnly:
    """A bench without a network: the objective sees random logits, batch by batch."""

    samples: int
    classes: int
    training: TrainingSettings

    def build(self, folder: Path) -> "ObjectiveOnly":
        set_up_torch(self.training.threads)
        return self

    def briefly(self) -> "ObjectiveOnly":
        return replace(self, samples=2 * FITTED)

    def run(self, recipe: Recipe, signals: tuple[Signal, ...], folder: Path) -> Measured:
        generator, size = torch_generator(0, "synthetic"), self.training.batch_size
        pool = torch.randn(16, size, self.classes, generator=generator)
        labels = torch.randint(self.classes, (self.samples,), generator=generator)
        split = LabelledFeatures(np.empty((0, 1)), labels)
        data = TrainingData(split, split, split, self.classes)
        objective, history = (
            recipe.objective(data, self.training, lambda: torch.randn(self.samples, 8).numpy()),
            History(),
        )
        for part in (STEPS, END_OF_EPOCHS, EVALUATION):
            history.laps[part] = [0.0]
        started = history.stopwatch.elapsed
        for epoch in range(1, self.training.epochs + 1):
            order = torch.randperm(self.samples, generator=generator)
            for number, indices in enumerate(torch.split(order, size)):
                with history.clock(OBJECTIVE):
                    seen = pool[number % len(pool), : len(indices)].detach().requires_grad_()
                    objective.loss(epoch, indices, seen).backward()  # type: ignore[no-untyped-call]

            def answers() -> Iterator[Tensor]:
                with history.clock(history.charge_caller(PASS)):
                    for number, indices in enumerate(torch.split(labels, size)):
                        yield pool[number % len(pool), : len(indices)]

            with history.clock(END_OF_EPOCHS):
                objective.end_epoch(epoch, Predict(answers))
        left_behind = {signal: array for signal, array in objective.signals().items() if signal in signals}
        record = record_in(folder, data, self.training.epochs, signals, left_behind, history)
        return Measured(history.laps, history.stopwatch.elapsed - started, record)
