"""Which labels of a run are wrong: planned for each data set of a grid, written once for all runs that share them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmark.data.datasets import REPLACED, STAYS, Dataset, DatasetInfo
from benchmark.disk import ResultsFolder, atomic_file
from benchmark.noise import NoiseKind, NoiseSettings, Samples, WrongLabels, noise_named
from benchmark.noise.flips import write_flips
from benchmark.noise.settings import IS_REPLACED
from benchmark.runs.studies import Grid, Study
from benchmark.runs.units import RunSettings

CHANCE = "chance"  # of being wrong, sample by sample of training, beside the correct labels


Kinds = Mapping[str, NoiseKind]


def kinds_of(study: Study, data_root: Path | None) -> Iterator[Kinds]:
    """What makes the labels wrong in each grid, by data set; what a kind reads from a data set's file is read once."""
    known: dict[tuple[str, str], NoiseKind] = {}
    for grid in study.grids:
        for argument in grid.datasets:
            if (grid.noise, argument) not in known:
                known[grid.noise, argument] = noise_named(grid.noise).of_dataset(argument, data_root)
        yield {argument: known[grid.noise, argument] for argument in grid.datasets}


def noises(grid: Grid, kind: NoiseKind, info: DatasetInfo) -> Iterator[NoiseSettings]:
    """At each rate of the grid, or at the kind's own; with the first seed."""
    for rate in grid.rates if kind.own_rate is None else (kind.own_rate,):
        noise = NoiseSettings(kind.name, kind.version, rate, source=kind.source)
        noise.check(info.sizes[0], f"training labels of {info.name}")
        kind.check_rate(rate)
        yield noise


def samples_of(dataset: Dataset) -> Samples:
    """Those that get wrong labels; what is found out about their images is found out once."""
    splits = {"train": dataset.train, "validation": dataset.validation}
    sizes = {name: len(split.labels) for name, split in splits.items()}
    labels = np.concatenate([split.labels for split in splits.values()])
    return Samples(sizes, labels, dataset.info.num_classes, tuple(split.images for split in splits.values()))


def write_labels(
    run: RunSettings, wrong: WrongLabels, samples: Samples, test_labels: np.ndarray, results: ResultsFolder
) -> None:
    """The labels that training is given, the correct ones in a file that it never opens, and the flip file."""
    correct = samples.by_split(samples.labels)
    given, answers = {**wrong.given, "test": test_labels}, dict(correct)
    if wrong.replaced is not None:
        given |= {f"{split}{REPLACED}": number_N for split, number_N in wrong.replaced.items()}
        answers |= {f"{split}{IS_REPLACED}": number_N != STAYS for split, number_N in wrong.replaced.items()}
    if wrong.chances is not None:
        answers[CHANCE] = wrong.chances[: samples.sizes["train"]].astype(np.float32)
    for path, labels in ((results.answer_key(run.noise_id), answers), (results.given_labels(run.noise_id), given)):
        with atomic_file(path) as file:
            np.savez(file, **labels)  # type: ignore[arg-type]  # its stub takes them for allow_pickle
    noise = run.noise
    about = {"dataset": run.dataset, "noise": noise.title, "rate": noise.rate, "seed": noise.seed}
    write_flips(results.flips(run.noise_id), samples, about, wrong)
