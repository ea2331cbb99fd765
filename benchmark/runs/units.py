"""A unit of work is one training run with its scoring: what identifies it, apart from this machine and its paths."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmark.data import NoiseSettings
from benchmark.data.datasets import DatasetInfo
from benchmark.disk import slug
from benchmark.identity import digest_of, settings_of
from benchmark.networks import Backbone
from benchmark.networks.feature_store import store_id
from benchmark.record import RunShape, Signal
from benchmark.training import Recipe, TrainingSettings
from detectors import Detector


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
        return slug(f"{self.dataset}-{noise.kind}-{noise.rate:g}-{seeds}-{self.recipe.name}-{digest}")

    @cached_property
    def setting_id(self) -> str:
        """The same for runs that differ in seeds and recipe only, which may be averaged."""
        common = settings_of(self)
        del common["recipe"], common["training"]["seed"], common["noise"]["seed"]
        return digest_of(common, 8)

    @cached_property
    def protocol_id(self) -> str:
        """The same for settings that differ in data set and noise rate only: a column of the paper's tables."""
        common = settings_of(self)
        del common["recipe"], common["training"]["seed"], common["noise"]["seed"]
        del common["dataset"], common["dataset_identity"], common["noise"]["rate"]
        return digest_of(common, 8)

    @property
    def seeds(self) -> tuple[int, int]:
        return self.noise.seed, self.training.seed

    @property
    def all_but_training_seed(self) -> tuple[str, int, Recipe]:
        """The same for runs whose scores may be averaged."""
        return self.setting_id, self.noise.seed, self.recipe

    @property
    def noise_id(self) -> str:
        noise = self.noise
        digest = digest_of({"data set": self.dataset_identity, "noise": settings_of(noise)})
        return slug(f"{self.dataset}-{noise.kind}-{noise.rate:g}-n{noise.seed}-{digest}")


@dataclass(frozen=True)
class Unit:
    run: RunSettings
    info: DatasetInfo
    signals: tuple[Signal, ...]  # recorded if it is trained
    detectors: tuple[Detector, ...]  # that score it

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def shape(self) -> RunShape:
        return RunShape(self.run.training.epochs, self.info.sizes[0], self.info.num_classes)

    @property
    def store_id(self) -> str | None:
        """The name of its feature store; None for the plain path, which trains on the images themselves."""
        training = self.run.training
        is_plain, machine = training.plain, (training.threads, training.device)
        return None if is_plain else store_id(self.info, self.run.backbone, *machine)

    def joined_with(self, other: "Unit") -> "Unit":
        """The same run with the signals and detectors of both."""
        return replace(
            self,
            signals=tuple(dict.fromkeys((*self.signals, *other.signals))),
            detectors=tuple(dict.fromkeys((*self.detectors, *other.detectors))),
        )


def detector_id(detector: Detector) -> str:
    return slug(f"{detector.name.lower()}-{digest_of(settings_of(detector), 8)}")


def signals_for(recipe: Recipe, detectors: Sequence[Detector]) -> tuple[Signal, ...]:
    """What a run of this recipe records for these detectors."""
    return tuple(dict.fromkeys([*recipe.leaves, *(signal for detector in detectors for signal in detector.needs)]))


def joined(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Each run once, with all that any of the units needs of it."""
    by_run: dict[RunSettings, Unit] = {}
    for unit in units:
        by_run[unit.run] = by_run[unit.run].joined_with(unit) if unit.run in by_run else unit
    return tuple(by_run.values())
