"""The runs of a pack: from the settings of their records to a plan that only scores, and whether their files agree.

Neither data set nor weights are needed: a record's settings name both by their digests.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmark.data.datasets import REPLACED, SPLITS, DatasetInfo
from benchmark.disk import (
    CHECKSUMS,
    ResultsFolder,
    check_unpacked_size,
    find_damage,
    open_array,
    open_arrays,
    read_json,
)
from benchmark.errors import LincBenchError
from benchmark.identity import Json, label_of, settings_of, value_of
from benchmark.names import is_name
from benchmark.networks import Backbone
from benchmark.noise import NoiseSettings, Samples, WrongLabels
from benchmark.noise.flips import content_of
from benchmark.record import Signal, open_record, read_history, read_metadata
from benchmark.runs import Grid, LineUp, Plan, RunSettings, Sources, Study, Unit, signals_for
from benchmark.training import Recipe, Standard, TrainingSettings
from detectors import LINE_UPS, Detector

RECIPES: dict[str, type[Recipe]] = {
    recipe.name: type(recipe)
    for recipe in (Standard(), *(detector.training for line_up in LINE_UPS.values() for detector in line_up))
}
REPEATED = ("settings", "num_classes", "epochs", "signals", "versions", "commit")  # of a record, in `pack.json`


@dataclass(frozen=True)
class PackedRun:
    run: RunSettings
    info: DatasetInfo
    about: Json

    @classmethod
    def of_record(cls, results: ResultsFolder, run_id: str) -> "PackedRun":
        folder = results.run(run_id)
        predictions = (open_array(folder / f"{split}_predictions.npy")[0] for split in SPLITS[1:])
        sizes = [len(labels) for labels in (open_array(folder / "given_labels.npy"), *predictions)]
        return cls.of_settings(run_id, {key: read_metadata(folder)[key] for key in REPEATED} | {"sizes": sizes})

    @classmethod
    def of_settings(cls, run_id: str, about: Json) -> "PackedRun":
        """Refuses those to which this version of the code would give another run id."""
        settings, sizes, signals = about["settings"], tuple(about["sizes"]), about["signals"]
        numbers = (*sizes, about["num_classes"], about["epochs"])
        if len(sizes) != len(SPLITS) or not all(type(number) is int and number > 0 for number in numbers):
            raise ValueError(f"{run_id} has sizes that are no numbers")
        if not isinstance(signals, dict) or not all(is_name(key.replace("=", "").replace(",", "")) for key in signals):
            raise ValueError(f"{run_id} has signals whose names cannot be those of files")
        recipe = settings["recipe"]["name"]
        if recipe not in RECIPES:
            raise LincBenchError(f"{run_id} was trained by the recipe '{recipe}', which is not one of the suite.")
        kinds = {"noise": NoiseSettings, "backbone": Backbone, "training": TrainingSettings, "recipe": RECIPES[recipe]}
        parts = {part: value_of(kind, settings[part]) for part, kind in kinds.items()}
        run = RunSettings(str(settings["dataset"]), str(settings["dataset_identity"]), **parts)
        if run.run_id != run_id or settings_of(run) != settings:
            raise LincBenchError(
                f"{run_id} has settings to which this version of the code gives another name: they were changed, or "
                f"another version made the run (commit {about['commit']}; use that one)."
            )
        return cls(run, DatasetInfo(run.dataset, run.dataset_identity, about["num_classes"], sizes), about)

    @cached_property
    def files(self) -> list[str]:
        """Of its record."""
        arrays = ["given_labels", *(f"{split}_predictions" for split in SPLITS[1:]), *self.about["signals"]]
        return sorted([CHECKSUMS, "history.json", "record.json", *(f"{name}.npy" for name in arrays)])

    def has(self, signals: Iterable[Signal]) -> bool:
        return all({source.key for source in signal.sources} & self.about["signals"].keys() for signal in signals)

    def can_score(self, detector: Detector) -> bool:
        return detector.training == self.run.recipe and self.has(detector.needs)


def study_of(runs: Iterable[PackedRun], name: str) -> Study:
    """With every detector of the suite that can score one of the runs."""
    runs = list(runs)
    line_ups = (
        LineUp(line_up, tuple(detector for detector in members if any(run.can_score(detector) for run in runs)))
        for line_up, members in LINE_UPS.items()
    )
    settings = [packed.run for packed in runs]
    grid = Grid(
        datasets=tuple(dict.fromkeys(run.dataset for run in settings)),
        rates=tuple(dict.fromkeys(run.noise.rate for run in settings)),
        training=settings[0].training,
        recipes=tuple(dict.fromkeys(run.recipe for run in settings if run.recipe.records)),
        line_ups=tuple(line_up for line_up in line_ups if line_up.detectors),
    )
    return Study(name, f"the runs of a pack, {name}", (grid,))


def plan_scoring(runs: Iterable[PackedRun], study: Study, sources: Sources) -> Plan:
    """Trains nothing; refuses a detector that none of the runs has the signals of."""
    runs = sorted(runs, key=lambda packed: packed.run.seeds)
    for detector in study.detectors:
        if not any(packed.can_score(detector) for packed in runs):
            has = {label_of(packed.run.recipe): ", ".join(sorted(packed.about["signals"])) for packed in runs}
            raise LincBenchError(
                f"{detector.label} reads {', '.join(signal.key for signal in detector.needs) or 'nothing'} from the "
                f"recipe '{label_of(detector.training)}', and no run of the pack has that. By recipe, the runs have: "
                f"{'; '.join(f'{recipe}: {keys}' for recipe, keys in has.items())}."
            )
    units = []
    for packed in runs:
        detectors = tuple(detector for detector in study.detectors if packed.can_score(detector))
        signals = signals_for(packed.run.recipe, detectors)
        if not packed.has(signals):
            raise LincBenchError(f"{packed.run.run_id} lacks what its recipe '{packed.run.recipe.name}' leaves behind.")
        units.append(Unit(packed.run, packed.info, signals, detectors))
    return Plan(study, tuple(units), {}, sources, {})


def check_files(results: ResultsFolder, runs: Iterable[PackedRun]) -> None:
    """Every byte of records, labels, answer keys and flip files, which have to be those of each other."""
    for packed in runs:
        run, folder = packed.run, results.run(packed.run.run_id)
        record, metadata, checksums = open_record(folder), read_metadata(folder), read_json(folder / CHECKSUMS)
        if sorted([CHECKSUMS, *checksums]) != packed.files:
            raise ValueError(f"the record {run.run_id} has other files than its signals say")
        if (problem := find_damage(folder)) is not None:
            raise ValueError(f"the record {run.run_id} is damaged: {problem}")
        sizes = dict(zip(SPLITS, packed.info.sizes, strict=True))
        shapes = [open_array(folder / f"{split}_predictions.npy").shape for split in SPLITS[1:]]
        is_same = {key: metadata[key] for key in REPEATED} == {key: packed.about[key] for key in REPEATED}
        if not is_same or shapes != [(record.epochs, sizes[split]) for split in SPLITS[1:]]:
            raise ValueError(f"the record {run.run_id} is that of another run")
        if not all(isinstance(row[f"{split}_accuracy"], float) for row in read_history(folder) for split in SPLITS[1:]):
            raise ValueError(f"the history of {run.run_id} has accuracies that are no numbers")
        given = _check_labels(results, packed, sizes)
        if not np.array_equal(record.given_labels, given):
            raise ValueError(f"the labels {run.noise_id} are not those that {run.run_id} was trained on")


def _check_labels(results: ResultsFolder, packed: PackedRun, sizes: dict[str, int]) -> np.ndarray:
    """Given, correct and flipped labels of a run; returns those given for training."""
    noise_id, classes = packed.run.noise_id, packed.info.num_classes
    labels: list[dict[str, np.ndarray]] = []
    for file in (results.given_labels(noise_id), results.answer_key(noise_id)):
        check_unpacked_size(file)
        with open_arrays(file) as arrays:
            labels.append({name: arrays[name] for name in arrays})
        for name, array in labels[-1].items():
            is_label = name in SPLITS
            size = sizes.get(name.partition("_")[0], sizes["train"])
            if array.shape != (size,) or (is_label and not 0 <= array.min() <= array.max() < classes):
                raise ValueError(f"{file.name} has labels that are none of the data set's")
    given, correct = labels
    if "test" not in given:
        raise ValueError(f"the labels {noise_id} lack those of the test split")
    splits = SPLITS[:2]
    replaced = {split: given[f"{split}{REPLACED}"] for split in splits if f"{split}{REPLACED}" in given}
    samples = Samples({split: sizes[split] for split in splits}, np.concatenate([correct[s] for s in splits]), classes)
    content = content_of(samples, WrongLabels({split: given[split] for split in splits}, replaced=replaced or None))
    flips = read_json(results.flips(noise_id))
    if {key: flips[key] for key in content} != content:
        raise ValueError(f"the flip file {noise_id} is not that of the labels")
    return given["train"]
