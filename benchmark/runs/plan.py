"""From a study to units of work: what is to be trained and scored, and what is there already."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

from benchmark.data.datasets import DatasetInfo, describe_dataset
from benchmark.data.noise import NoiseSettings, noise_named
from benchmark.disk.results_folder import ResultsFolder, slug
from benchmark.errors import LincBenchError
from benchmark.identity import digest_of, label_of, settings_of
from benchmark.networks import Backbone
from benchmark.networks.backbone import check_name, weights_identity
from benchmark.networks.feature_store import store_id
from benchmark.record import RunShape, Signal
from benchmark.record.run_record import open_record
from benchmark.runs.studies import Grid, Study
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
        """What runs that may be averaged have in common: everything but seeds and recipe."""
        common = settings_of(self)
        del common["recipe"], common["training"]["seed"], common["noise"]["seed"]
        return digest_of(common, 8)

    @cached_property
    def protocol_id(self) -> str:
        """What settings have in common that differ in data set and noise rate only: a column of the paper's tables."""
        common = settings_of(self)
        del common["recipe"], common["training"]["seed"], common["noise"]["seed"]
        del common["dataset"], common["dataset_identity"], common["noise"]["rate"]
        return digest_of(common, 8)

    @property
    def seeds(self) -> tuple[int, int]:
        return self.noise.seed, self.training.seed

    @property
    def all_but_training_seed(self) -> tuple[str, int, Recipe]:
        """What runs share whose scores may be averaged."""
        return self.setting_id, self.noise.seed, self.recipe

    @property
    def recipe_label(self) -> str:
        """The recipe's name, with what differs from its defaults."""
        return label_of(self.recipe)

    @property
    def noise_id(self) -> str:
        noise = self.noise
        digest = digest_of({"data set": self.dataset_identity, "noise": settings_of(noise)})
        return slug(f"{self.dataset}-{noise.kind}-{noise.rate:g}-n{noise.seed}-{digest}")


def detector_id(detector: Detector) -> str:
    return slug(f"{detector.name.lower()}-{digest_of(settings_of(detector), 8)}")


@dataclass(frozen=True)
class Sources:
    """Where things are on this machine; never part of an identity."""

    results: ResultsFolder = ResultsFolder()
    data_root: Path | None = None
    weights_file: Path | None = None

    def with_whole_paths(self) -> "Sources":
        """For workers in another folder."""
        root, weights = (path and path.absolute() for path in (self.data_root, self.weights_file))
        return Sources(ResultsFolder(self.results.root.absolute()), root, weights)


@dataclass(frozen=True)
class Unit:
    """One training run with its scoring: what an executor takes."""

    run: RunSettings
    info: DatasetInfo
    dataset_argument: str
    signals: tuple[Signal, ...]  # to be recorded if it is trained
    detectors: tuple[Detector, ...]  # to be scored
    sources: Sources
    force: bool = False

    @property
    def shape(self) -> RunShape:
        return RunShape(self.run.training.epochs, self.info.sizes[0], self.info.num_classes)

    @property
    def folder(self) -> Path:
        return self.sources.results.run(self.run.run_id)

    @property
    def store(self) -> Path:
        training = self.run.training
        return self.sources.results.features(store_id(self.info, self.run.backbone, training.threads, training.device))

    @property
    def needs_store(self) -> bool:
        """The plain path trains on the images themselves."""
        return not self.run.training.plain

    def joined_with(self, other: "Unit") -> "Unit":
        """The same run, with what either needs of it."""
        return replace(
            self,
            signals=tuple(dict.fromkeys((*self.signals, *other.signals))),
            detectors=tuple(dict.fromkeys((*self.detectors, *other.detectors))),
        )

    def why_train(self) -> str | None:
        """Why it has to be trained, in words; None if there is a record that looks whole, with all that is needed."""
        if self.force or not self.folder.exists():
            return f"{self.shape.epochs} epochs on {self.shape.samples:,} samples"
        try:
            there = open_record(self.folder).arrays
        except LincBenchError as error:
            return f"again: {error}"
        missing = [signal.key for signal in self.signals if signal.key not in there]
        return f"again, to record {', '.join(missing)}" if missing else None

    def score_file(self, detector: Detector) -> Path:
        return self.sources.results.scores(self.run.run_id, detector_id(detector))


@dataclass(frozen=True)
class Plan:
    study: Study
    units: tuple[Unit, ...]
    to_train: Mapping[Unit, str]  # and why, in words
    sources: Sources

    @cached_property
    def _first_seeds(self) -> dict[str, tuple[int, int]]:
        return {run.setting_id: run.seeds for run in reversed([unit.run for unit in self.units])}

    def is_first_seed(self, unit: Unit) -> bool:
        """Of those that the plan has in the unit's setting."""
        return unit.run.seeds == self._first_seeds[unit.run.setting_id]

    def notes(self) -> list[str]:
        """What a reader of the results should know beforehand."""
        wanting = dict.fromkeys(
            (unit.run.recipe_label, unit.run.recipe.min_epochs, unit.shape.epochs) for unit in self.units
        )
        return [
            f"the recipe '{name}' needs {least} epochs for all of its phases; {epochs} leave some out."
            for name, least, epochs in wanting
            if epochs < least
        ] + [f"{unit.run.run_id} is trained {why}" for unit, why in self.to_train.items() if why.startswith("again")]

    def with_damaged(self, damaged: Mapping[Unit, str]) -> "Plan":
        """These units trained too, by force: whoever runs one does not read every byte to see that it is damaged."""
        forced = {unit: replace(unit, force=True) for unit in damaged}
        to_train = dict(self.to_train) | {forced[unit]: f"again: {why}" for unit, why in damaged.items()}
        return replace(self, units=tuple(forced.get(unit, unit) for unit in self.units), to_train=to_train)

    def stores_to_compute(self) -> dict[Path, Unit]:
        return {unit.store: unit for unit in self.to_train if unit.needs_store and not unit.store.exists()}


def plan_study(study: Study, sources: Sources, force: bool = False) -> Plan:
    """A unit for every run of the study's grids; a run of several grids records and scores what any of them needs."""
    units: dict[RunSettings, Unit] = {}
    infos = {argument: describe_dataset(argument, sources.data_root) for argument in study.datasets}
    for unit in (unit for grid in study.grids for unit in _units_of(grid, infos, sources, force)):
        other = units.get(unit.run)
        units[unit.run] = unit if other is None else other.joined_with(unit)
    reasons = {unit: _why_train(unit) for unit in units.values()}
    return Plan(study, tuple(reasons), {unit: why for unit, why in reasons.items() if why}, sources)


def _why_train(unit: Unit) -> str | None:
    """A record that cannot be read now counts as there: who runs the unit will find out, and it alone fails."""
    try:
        return unit.why_train()
    except OSError:
        return None


def _units_of(grid: Grid, infos: Mapping[str, DatasetInfo], sources: Sources, force: bool) -> Iterator[Unit]:
    check_name(grid.backbone.name)
    backbone = replace(grid.backbone, weights=weights_identity(grid.backbone.name, sources.weights_file))
    for argument in grid.datasets:
        if infos[argument].sizes[0] < grid.training.batch_size:
            raise LincBenchError(
                f"{argument} has {infos[argument].sizes[0]} training samples, fewer than one batch of "
                f"{grid.training.batch_size}. Choose a smaller batch with --batch-size."
            )
    for detector in grid.detectors:
        _check_needs(detector)
    recipes = dict.fromkeys([*grid.recipes, *(detector.training for detector in grid.detectors)])
    kind = noise_named(grid.noise)
    axes = product(grid.datasets, grid.rates, grid.noise_seeds, grid.training_seeds, recipes)
    for argument, rate, noise_seed, training_seed, recipe in axes:
        info = infos[argument]
        run = RunSettings(
            dataset=info.name,
            dataset_identity=info.identity,
            noise=NoiseSettings(kind.name, kind.version, rate, noise_seed),
            backbone=backbone,
            training=replace(grid.training, seed=training_seed),
            recipe=recipe,
        )
        detectors = tuple(detector for detector in grid.detectors if detector.training == recipe)
        yield Unit(run, info, argument, signals_for(recipe, detectors), detectors, sources, force)


def _check_needs(detector: Detector) -> None:
    """Before anything is trained: can the signals be had from the detector's recipe?"""
    recipe = detector.training
    for signal in detector.needs:
        is_recorded = recipe.records and type(signal).recorder is not Signal.recorder
        if signal not in recipe.leaves and not is_recorded:
            raise LincBenchError(
                f"{detector.label} needs {signal.key}, but the recipe '{recipe.name}' that it names in `training` "
                "neither leaves it behind nor lets it be recorded."
            )


def signals_for(recipe: Recipe, detectors: Sequence[Detector]) -> tuple[Signal, ...]:
    """What is recorded in a run of this recipe that these detectors read."""
    needed = dict.fromkeys([*recipe.leaves, *(signal for detector in detectors for signal in detector.needs)])
    return tuple(needed)
