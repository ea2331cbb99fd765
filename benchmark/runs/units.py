"""A unit of work is one training run with its scoring: what identifies it, what it needs, and what became of it."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from traceback import format_exception

from benchmark.data.datasets import DatasetInfo
from benchmark.disk import ResultsFolder, slug, write_json, write_text
from benchmark.identity import Json, digest_of, settings_of
from benchmark.networks import Backbone
from benchmark.networks.feature_store import store_id
from benchmark.noise import NoiseSettings
from benchmark.record import RunShape, Signal
from benchmark.training import Recipe, TrainingSettings
from detectors import Detector

SEED_STEP = 100  # between the training seeds of one pair of seeds: far from those of other pairs


@dataclass(frozen=True)
class RunSettings:
    """Everything that a run's numbers depend on; its digest names the record."""

    dataset: str
    dataset_identity: str
    noise: NoiseSettings
    backbone: Backbone
    training: TrainingSettings
    recipe: Recipe

    @cached_property
    def run_id(self) -> str:
        noise, seeds = self.noise, f"n{self.noise.seed}-t{self.training.seed}"
        digest = digest_of(settings_of(self))
        return slug(f"{self.dataset}-{noise.title}-{noise.rate:g}-{seeds}-{self.recipe.name}-{digest}")

    def _settings_without_seeds_and_recipe(self) -> Json:
        common = settings_of(self)
        del common["recipe"], common["training"]["seed"], common["noise"]["seed"]
        return common

    @cached_property
    def setting_id(self) -> str:
        """The same for runs that differ in seeds and recipe only, which may be averaged."""
        return digest_of(self._settings_without_seeds_and_recipe(), 8)

    def setting_at(self, rate: float) -> str:
        """The setting of the same run at another noise rate."""
        return replace(self, noise=replace(self.noise, rate=rate)).setting_id

    @cached_property
    def protocol_id(self) -> str:
        """The same for settings that differ in data set and noise rate only: a column of the paper's tables."""
        common = self._settings_without_seeds_and_recipe()
        del common["dataset"], common["dataset_identity"], common["noise"]["rate"]
        return digest_of(common, 8)

    @property
    def seeds(self) -> tuple[int, int]:
        return self.noise.seed, self.training.seed

    def repeated(self, trainings: int) -> tuple["RunSettings", ...]:
        """The further trainings on the same wrong labels that make it one of several."""
        seeds = (self.training.seed + SEED_STEP * number for number in range(1, trainings))
        return tuple(replace(self, training=replace(self.training, seed=seed)) for seed in seeds)

    @property
    def noise_id(self) -> str:
        noise = self.noise
        digest = digest_of({"data set": self.dataset_identity, "noise": settings_of(noise)})
        return slug(f"{self.dataset}-{noise.title}-{noise.rate:g}-n{noise.seed}-{digest}")


@dataclass(frozen=True)
class Unit:
    run: RunSettings
    info: DatasetInfo
    signals: tuple[Signal, ...]  # recorded if it is trained
    detectors: tuple[Detector, ...]  # that score it
    trainings: int = 1  # of several, scores are also averaged; 0 if it is only one of those of another unit
    by_epochs: bool = False  # AUROC by the number of epochs read is computed too
    foreign: DatasetInfo | None = None  # another data set, whose images take the places of some

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def label_by_epochs(self, detector: Detector) -> str | None:
        """Under which computing AUROC by epochs may fail; None if it is not wanted, or needs the whole run."""
        is_known = detector.needs and all(signal.per_epoch for signal in detector.needs)
        return f"{detector.label} by epochs" if self.by_epochs and is_known else None

    @property
    def shape(self) -> RunShape:
        return RunShape(self.run.training.epochs, self.info.sizes[0], self.info.num_classes)

    @property
    def store_id(self) -> str | None:
        """The name of its feature store; None for the plain path, which trains on the images themselves."""
        return self.store_id_of(self.info)

    @property
    def infos(self) -> tuple[DatasetInfo, ...]:
        """The data sets that it reads."""
        return (self.info,) if self.foreign is None else (self.info, self.foreign)

    def store_id_of(self, info: DatasetInfo) -> str | None:
        training = self.run.training
        return None if training.plain else store_id(info, self.run.backbone, training.threads, training.device)


def detector_id(detector: Detector) -> str:
    return slug(f"{detector.name.lower()}-{digest_of(settings_of(detector), 8)}")


def signals_for(recipe: Recipe, detectors: Sequence[Detector]) -> tuple[Signal, ...]:
    """What a run of this recipe records for these detectors."""
    return tuple(dict.fromkeys([*recipe.leaves, *(signal for detector in detectors for signal in detector.needs)]))


def joined(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Each run once, with the signals, detectors and trainings of all its units."""
    by_run: dict[RunSettings, Unit] = {}
    for unit in units:
        known = by_run.get(unit.run, unit)
        by_run[unit.run] = replace(
            known,
            signals=tuple(dict.fromkeys((*known.signals, *unit.signals))),
            detectors=tuple(dict.fromkeys((*known.detectors, *unit.detectors))),
            trainings=max(known.trainings, unit.trainings),
            by_epochs=known.by_epochs or unit.by_epochs,
        )
    return tuple(by_run.values())


@dataclass(frozen=True)
class Outcome:
    run_id: str
    trained: bool = False
    error: str | None = None  # why there is no record
    failures: dict[str, str] = field(default_factory=dict)  # why a detector has no scores, by its label; or by epochs
    is_transient: bool = False  # the error may not come again: a worker was killed, a disk was unavailable
    scoring: str = ""  # the label of the detector that was being scored when the worker was lost

    @property
    def reasons(self) -> list[str]:
        """Everything that failed; empty if all is well."""
        failures = [f"{detector}: {reason}" for detector, reason in self.failures.items()]
        return failures if self.error is None else [self.error]

    def failure_of(self, detector: Detector) -> str | None:
        """Why the detector has no scores of this run."""
        return self.error if self.error is not None else self.failures.get(detector.label)


def write_log(results: ResultsFolder, run_id: str, errors: dict[str, BaseException]) -> None:
    """Tracebacks, each under a title."""
    text = "\n".join(f"{title}\n{''.join(format_exception(error))}" for title, error in errors.items())
    with suppress(OSError):  # a full disk is reported anyway
        write_text(results.log(run_id), text)


def note_failure(results: ResultsFolder, outcome: Outcome, attempts: int) -> None:
    """For `linc-bench status`; a success removes the note and the log of earlier failures."""
    note = results.failed(outcome.run_id)
    if not outcome.reasons:
        note.unlink(missing_ok=True)
        results.log(outcome.run_id).unlink(missing_ok=True)
        return
    with suppress(OSError):  # a full disk is reported anyway
        write_json(note, {"reason": "; ".join(outcome.reasons), "attempts": attempts})
