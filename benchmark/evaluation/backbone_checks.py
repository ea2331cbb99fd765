"""What the weights of runs are worth for their data sets: computed once from cached features and kept."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from benchmark.data.datasets import missing_file
from benchmark.disk import UNREADABLE, find_damage, open_arrays, slug
from benchmark.errors import LincBenchError
from benchmark.execution.progress import duration
from benchmark.identity import digest_of, settings_of
from benchmark.networks.backbone import weights_path
from benchmark.networks.check import (
    FEW_IMAGES,
    VERSION,
    BackboneCheck,
    check_backbone,
    check_features,
    read_check,
    write_check,
)
from benchmark.networks.feature_store import open_store
from benchmark.runs import Sources, Unit
from benchmark.runs.estimate import known_cost
from benchmark.runs.training_job import dataset_of

LONGEST = 30  # seconds for a check that nobody asked for


def check_file(unit: Unit, sources: Sources) -> Path:
    """Everything that its bytes depend on; seeds, noise and recipes are none of it."""
    info, backbone = unit.info, unit.run.backbone
    about = {"data set": info.identity, "backbone": settings_of(backbone), "features": unit.store_id}
    digest = digest_of(about | {"version": VERSION})
    return sources.results.backbone_check(slug(f"{info.name}-{backbone.name}-{backbone.image_size}px-{digest}"))


def keep_checks(units: Iterable[Unit], sources: Sources) -> None:
    """Of each data set and network with cached features; without them, or without the weights, nothing is known."""
    for file, unit in {check_file(unit, sources): unit for unit in units}.items():
        with suppress(
            LincBenchError, RuntimeError, *UNREADABLE
        ):  # rows are worth more than what is known of the weights
            if read_check(file) is None and unit.store_id is not None and find_damage(sources.store(unit)) is None:
                write_check(file, _check_of_features(unit, sources))


def _check_of_features(unit: Unit, sources: Sources) -> BackboneCheck:
    results, noise_id = sources.results, unit.run.noise_id
    train, _, test = open_store(sources.store(unit), unit.info)
    with open_arrays(results.answer_key(noise_id)) as clean:
        labels = clean["train"]
    with open_arrays(results.given_labels(noise_id)) as given:
        test_labels = given["test"]
    network = unit.info.num_classes, unit.run.backbone, sources.weights_file
    return check_features((train, labels), (test, test_labels), *network)


def check_columns(unit: Unit, sources: Sources) -> dict[str, float]:
    """Of a run, if that is known."""
    check = read_check(check_file(unit, sources))
    if check is None:
        return {}
    step = check.first_steps[unit.run.training.head_init]
    return {"neighbour_accuracy": check.neighbour_accuracy, "first_step": step}


def quick_check(unit: Unit, sources: Sources) -> BackboneCheck:
    """As it is kept, or from a few images; an error if something would have to be downloaded."""
    if (kept := read_check(check_file(unit, sources))) is not None:
        return kept
    backbone = unit.run.backbone
    how = f"linc-bench backbones check {backbone.name}"
    if missing_file(sources.dataset(unit), sources.data_root) is not None:
        raise LincBenchError("the data set is not here yet")
    if weights_path(backbone.name, sources.weights_file) is None:
        raise LincBenchError(f"the weights are on the hub ({how})")
    seconds = sum(FEW_IMAGES) * known_cost(sources.results, backbone, False).prefix_seconds
    if seconds > LONGEST:
        raise LincBenchError(f"that would take about {duration(seconds)} ({how})")
    return check_backbone(dataset_of(unit, sources), backbone, sources.weights_file, FEW_IMAGES)
