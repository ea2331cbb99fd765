"""The data of a trial and its wrong labels: as a kind of noise makes them, or as people did."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmark.audit.audited_data import AuditedData, read_audited_data
from benchmark.data.npz_files import KEY_OF_SPLIT, read_npz
from benchmark.data.other_labels import LABELLED
from benchmark.disk import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.noise import Given, NoiseKind, NoiseSettings, Samples, noise_named


def trials_of(
    path: Path, names: Sequence[str], rates: Sequence[float], seeds: Sequence[int], work: ResultsFolder
) -> Iterator[tuple[AuditedData, NoiseKind, NoiseSettings]]:
    """Refuses what cannot be done before anything is trained."""
    for name in names:
        kind = noise_named(name).of_dataset(str(path), None)
        if kind.foreign is not None:
            raise LincBenchError(f"'{name}' replaces images, and an audit is of the images as they are.")
        data = read_audited_data(_labelled_twice(path, work) if isinstance(kind, Given) else path)
        for rate, seed in product([kind.own_rate] if kind.own_rate is not None else rates, seeds):
            kind.check_rate(rate)
            noise = NoiseSettings(kind.name, rate=rate, seed=seed, source=kind.source)
            noise.check(len(data.labels), f"labels of {data.name}")
            yield data, kind, noise


def _labelled_twice(path: Path, work: ResultsFolder) -> Path:
    """An .npz without the split that people did not label, which is the test split; of the same name."""
    splits = read_npz(path)
    arrays: dict[str, np.ndarray] = {}
    for split, (images, labels) in splits.items():
        count = len(labels) if split in LABELLED else 0
        images, labels = images[:count], labels[:count]
        arrays |= {f"{KEY_OF_SPLIT[split]}_images": images, f"{KEY_OF_SPLIT[split]}_labels": labels}
    work.root.mkdir(parents=True, exist_ok=True)
    np.savez(work.root / path.name, **arrays)  # type: ignore[arg-type]  # its stub takes them for allow_pickle
    return work.root / path.name


def given_labels(truth: AuditedData, kind: NoiseKind, noise: NoiseSettings) -> np.ndarray:
    """In the order of the data."""
    if isinstance(kind, Given):
        return np.concatenate([kind.labels[split] for split in LABELLED])
    samples = Samples({"audit": len(truth.labels)}, truth.labels, len(truth.class_names), (truth.images,))
    return kind.corrupt(samples, noise.rate, noise.seed).given["audit"]
