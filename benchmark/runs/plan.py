"""From a study to a plan: the units of work, which of them must be trained, and where things are on this machine."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from benchmark.data.datasets import DatasetInfo, describe_dataset, missing_file
from benchmark.disk import ResultsFolder, provenance
from benchmark.errors import LincBenchError
from benchmark.identity import label_of
from benchmark.networks.backbone import check_name, weights_identity, weights_path
from benchmark.record import Signal, open_record, without_parts
from benchmark.runs.studies import Grid, Study
from benchmark.runs.units import RunSettings, Unit, detector_id, joined, signals_for
from benchmark.runs.wrong_labels import Kinds, kinds_of, noises
from detectors import Detector


@dataclass(frozen=True)
class Sources:
    """Where things are on this machine, and other things that are never part of an identity."""

    results: ResultsFolder = ResultsFolder()
    data_root: Path | None = None
    weights_file: Path | None = None
    datasets: Mapping[DatasetInfo, str] = field(default_factory=dict)  # the name or path that loads each
    commit: str = field(default_factory=lambda: provenance.commit())  # asked for once, at the start of a command
    score_limit: float | None = None  # seconds for each detector; beyond them its worker process ends

    def with_absolute_paths(self) -> "Sources":
        """For workers that run in another folder."""
        root, weights = (path and path.absolute() for path in (self.data_root, self.weights_file))
        return replace(self, results=ResultsFolder(self.results.root.absolute()), data_root=root, weights_file=weights)

    def record(self, unit: Unit) -> Path:
        return self.results.run(unit.run_id)

    def store(self, unit: Unit, info: DatasetInfo | None = None) -> Path:
        """Of its data set, or of the one whose images take the places of some."""
        store_id = unit.store_id_of(info or unit.info)
        assert store_id is not None, "the plain path has no feature store"
        return self.results.features(store_id)

    def score_file(self, unit: Unit, detector: Detector) -> Path:
        return self.results.scores(unit.run_id, detector_id(detector))

    def dataset(self, unit: Unit) -> str:
        """The name or path that loads the unit's data set; its name alone where there are only its records."""
        return self.datasets.get(unit.info, unit.info.name)


@dataclass(frozen=True)
class Plan:
    study: Study
    units: tuple[Unit, ...]
    to_train: Mapping[Unit, str]  # with the reason
    sources: Sources
    noise: Kinds  # what makes the labels wrong, by noise id
    force: bool = False  # train and score what is there already

    @cached_property
    def _first_seeds(self) -> dict[str, tuple[int, int]]:
        return {run.setting_id: run.seeds for run in reversed([unit.run for unit in self.units])}

    def is_first_seed(self, unit: Unit) -> bool:
        """Whether it has the first seeds of its setting in this plan."""
        return unit.run.seeds == self._first_seeds[unit.run.setting_id]

    @cached_property
    def _unit_of(self) -> dict[RunSettings, Unit]:
        return {unit.run: unit for unit in self.units}

    def judged_together(self, unit: Unit, detector: Detector) -> list[tuple[Unit, ...]]:
        """The unit alone, and with its further trainings if the detector scores them all; nothing for one of these."""
        found = [self._unit_of.get(run) for run in unit.run.repeated(unit.trainings)]
        further = [other for other in found if other is not None and detector in other.detectors]
        together = [(unit, *further)] if found and len(found) == len(further) else []
        return [(unit,), *together] if unit.trainings else []

    def notes(self) -> list[str]:
        """What a reader of the results should know beforehand."""
        recipes = {
            (label_of(unit.run.recipe), unit.run.recipe.min_epochs, unit.shape.epochs): None for unit in self.units
        }
        return [
            f"the recipe '{name}' needs {least} epochs for all of its phases; {epochs} leave some out."
            for name, least, epochs in recipes
            if epochs < least
        ] + [f"{unit.run_id} is trained {why}" for unit, why in self.to_train.items() if why.startswith("again")]

    def downloads(self) -> list[str]:
        """Files of data sets that are not here yet, and where they will be."""
        missing = (missing_file(argument, self.sources.data_root) for argument in self.sources.datasets.values())
        return [file for file in missing if file is not None]

    def not_here_yet(self) -> str:
        """All files of data sets and networks in a sentence, so that nobody fetches one after the other."""
        files, backbones = self.downloads(), dict.fromkeys(unit.run.backbone.name for unit in self.to_train)
        of_hub = [name for name in backbones if weights_path(name, self.sources.weights_file) is None]
        files += [f"the weights of {name} (from timm's hub, or with --weights FILE)" for name in of_hub]
        return f"\nAll that is not here yet: {', '.join(files)}." if len(files) > 1 else ""

    def check_datasets(self) -> None:
        """Refuses a data set if the results folder has rows of another one under its name, since reports join them.

        Runs with the same protocol differ in nothing but data set and rate, so the setting tells whose row it is. Of
        rows of costs nothing but the size does.
        """
        from benchmark.disk.tables import read_table  # pandas, which `list` does not need

        columns = ["dataset", "protocol", "rate", "setting", "classes", "samples", "study"]
        runs, costs = (read_table(self.sources.results, table) for table in ("runs", "overhead"))
        costs = costs.rename(columns={"training_samples": "samples"})
        costs = costs.assign(study="overhead", protocol="", rate=0.0, setting="")
        known = [row for rows in (runs, costs) for row in rows[columns].drop_duplicates(columns[:-1]).itertuples()]
        for unit in {(unit.run.dataset, unit.run.protocol_id): unit for unit in self.units}.values():
            for row in (row for row in known if row.dataset == unit.run.dataset):
                is_alike = (row.classes, row.samples) == (unit.info.num_classes, unit.info.sizes[0])
                if not is_alike or (
                    row.protocol == unit.run.protocol_id and row.setting != unit.run.setting_at(float(str(row.rate)))
                ):
                    raise LincBenchError(
                        f"{self.sources.results.root} has results of another data set called '{unit.run.dataset}' "
                        f"(study {row.study}, {row.samples:,} training samples), and their rows would be mixed up. "
                        f"Rename {self.sources.dataset(unit)}, or choose another folder with --results DIR."
                    )

    def stores_to_compute(self) -> dict[Path, tuple[Unit, DatasetInfo]]:
        """Each with a unit that reads it, and the data set that it is of."""
        cached = [(unit, info) for unit in self.to_train if unit.store_id is not None for info in unit.infos]
        stores = {self.sources.store(unit, info): (unit, info) for unit, info in cached}
        return {store: about for store, about in stores.items() if not store.exists()}


def plan_study(study: Study, sources: Sources, force: bool = False) -> Plan:
    """A unit for every run of the study's grids; a run of several grids records and scores what any of them needs."""
    infos = {argument: describe_dataset(argument, sources.data_root) for argument in study.datasets}
    sources = replace(sources, datasets={info: argument for argument, info in infos.items()})
    names = {info.name: argument for info, argument in sources.datasets.items()}
    for info, argument in sources.datasets.items():
        if names[info.name] != argument:
            raise LincBenchError(
                f"{argument} and {names[info.name]} are different data sets, and both are called '{info.name}', so "
                "their results would be mixed up. Rename one of them, or run one at a time with another --results DIR."
            )
    every_unit, noise = list[Unit](), dict[str, Any]()
    for grid, kinds in zip(study.grids, kinds_of(study, sources.data_root), strict=True):
        of_grid = list(_units_of(study, grid, infos, kinds, sources.weights_file))
        noise |= {unit.run.noise_id: kinds[sources.datasets[unit.info]] for unit in of_grid}
        every_unit += of_grid
        sources = replace(
            sources, datasets={**sources.datasets, **dict(kind.foreign for kind in kinds.values() if kind.foreign)}
        )
    units, to_train = joined(every_unit), dict[Unit, str]()
    for unit in units:
        with suppress(OSError):  # a record that cannot be read now counts as there: its unit fails later, and no other
            if why := reason_to_train(unit, sources, force):
                to_train[unit] = why
    return Plan(study, units, to_train, sources, noise, force)


def reason_to_train(unit: Unit, sources: Sources, force: bool) -> str | None:
    """None if there is a record that looks whole and has every signal; its bytes are not compared with checksums."""
    folder = sources.record(unit)
    if force or not folder.exists():
        return f"{unit.shape.epochs} epochs on {unit.shape.samples:,} samples"
    try:
        record = open_record(folder)
    except LincBenchError as error:
        return f"again: {error}"
    missing = without_parts([signal for signal in unit.signals if signal not in record])
    return f"again, to record {', '.join(signal.key for signal in missing)}" if missing else None


def _units_of(
    study: Study,
    grid: Grid,
    infos: Mapping[str, DatasetInfo],
    kinds: Kinds,
    weights_file: Path | None,
) -> Iterator[Unit]:
    """First those of all pairs of seeds, then the further trainings of each pair, for averages."""
    check_name(grid.backbone.name)
    backbone = replace(grid.backbone, weights=weights_identity(grid.backbone.name, weights_file))
    for argument in grid.datasets:
        if infos[argument].sizes[0] < grid.training.batch_size:
            raise LincBenchError(
                f"{argument} has {infos[argument].sizes[0]} training samples, fewer than one batch of "
                f"{grid.training.batch_size}. Choose a smaller batch with --batch-size."
            )
    for detector in grid.detectors:
        _check_needs(detector)
    recipes = dict.fromkeys([*grid.recipes, *(detector.training for detector in grid.detectors)])
    noise_of = [
        (argument, noise) for argument in grid.datasets for noise in noises(grid, kinds[argument], infos[argument])
    ]
    axes, further = product(noise_of, grid.seeds, recipes), list[Unit]()
    for (argument, noise), (noise_seed, training_seed), recipe in axes:
        info = infos[argument]
        run = RunSettings(
            dataset=info.name,
            dataset_identity=info.identity,
            noise=replace(noise, seed=noise_seed if kinds[argument].takes_seed else 0),
            backbone=backbone,
            training=replace(grid.training, seed=training_seed),
            recipe=recipe,
        )
        detectors = tuple(detector for detector in grid.detectors if detector.training == recipe)
        needed = signals_for(recipe, detectors)
        of_all_epochs = [signal.whole for signal in needed] if study.by_epochs else []
        signals = tuple(dict.fromkeys((*needed, *of_all_epochs)))
        other = kinds[argument].foreign
        foreign = other[0] if other else None
        yield Unit(run, info, signals, detectors, grid.trainings, study.by_epochs, foreign)
        if detectors:
            further += [
                Unit(again, info, needed, detectors, 0, foreign=foreign) for again in run.repeated(grid.trainings)
            ]
    yield from further


def _check_needs(detector: Detector) -> None:
    """Before anything is trained: can the detector's recipe provide its signals?"""
    recipe = detector.training
    for signal in detector.needs:
        is_recorded = recipe.records and type(signal).recorder is not Signal.recorder
        if signal not in recipe.leaves and not is_recorded:
            raise LincBenchError(
                f"{detector.label} needs {signal.key}, but its recipe '{recipe.name}' neither leaves it behind nor "
                "lets it be recorded."
            )
