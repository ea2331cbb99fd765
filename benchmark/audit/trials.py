"""How well does an audit do? Labels are made wrong before it sees them, and what it finds is held against the truth.

Beside it, on the same embeddings: cleanlab, and chance. As in cleanlab's tutorials it is given logistic regression's
out-of-sample probabilities and ranks by its label quality; how strongly to regularise is chosen on the given labels.
With the audit's held-out probabilities cleanlab's ranking would be that of *held-out*, so there only its count is new.
Each detector of the audit is judged by itself, too. The truth is what the data said before; errors that they had
already count as right.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.audit.audited import Audited, read_audited
from benchmark.audit.ranking import DETECTORS, HELD_OUT, Means, Ranked, rank_labels, rank_of
from benchmark.audit.trial_tables import AUDIT, CLEANLAB, CLEANLAB_HELD_OUT, COUNTS, PRECISIONS, RANDOM
from benchmark.data.datasets import load_dataset
from benchmark.data.noise import NoiseSettings
from benchmark.data.npz_files import KEY_OF_SPLIT
from benchmark.disk.files import locked
from benchmark.disk.provenance import provenance_columns
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import matches, merge_rows, read_as_text
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.identity import Json
from benchmark.seeds import numpy_generator
from benchmark.statistics.held_out import Regression, cross_validated

RATES = (0.05, 0.1, 0.2)
FIRST = (0.01, 0.05, 0.1)  # shares of the list
STRENGTHS, TUNED_ON = (1e-4, 1e-3, 1e-2, 0.1, 1.0), 2000  # of cleanlab's classifier: scikit-learn's C; samples
TRIAL = ("dataset", "data", "rate", "seed", "backbone", "image_size", "trainings")


def try_audit(
    paths: Sequence[Path],
    rates: Sequence[float],
    seeds: Sequence[int],
    means: Means,
    results: ResultsFolder,
    progress: Progress,
) -> None:
    """Adds a trial of every data set, rate and seed to the tables of the results folder, each when it is done.

    Without a path, digits are tried. A trial that the same code has made already is not made again.
    """
    _cleanlab()  # rather than after the first trial
    work = ResultsFolder(results.root / "audit_trials")
    paths = paths or [_digits(work.root)]
    noises = [NoiseSettings(rate=rate, seed=seed) for rate, seed in product(rates, seeds)]
    with progress.counting("audits of flipped labels") as report:
        for at, path in enumerate(paths):
            data = read_audited(path)
            for number, noise in enumerate(noises):
                report(at * len(noises) + number, len(paths) * len(noises))
                with locked(results.locks, "audit trials"):  # they share a folder
                    if not _is_made(results, _trial_of(data, noise, means)):
                        _make(data, noise, means, work, results)
        report(len(paths) * len(noises), len(paths) * len(noises))


def _digits(folder: Path) -> Path:
    """scikit-learn's, as a file."""
    path, splits = folder / "digits.npz", load_dataset("digits").splits
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for key, split in zip(KEY_OF_SPLIT.values(), splits, strict=True):
        arrays |= {f"{key}_images": np.asarray(split.images), f"{key}_labels": split.labels[:, None]}
    np.savez(path, allow_pickle=False, **arrays)
    return path


def _trial_of(data: Audited, noise: NoiseSettings, means: Means) -> Json:
    return {
        "dataset": data.name,
        "data": data.identity[-12:],
        "samples": len(data.labels),
        "classes": len(data.class_names),
        "rate": noise.rate,
        "seed": noise.seed,
        "backbone": means.backbone.name,
        "image_size": means.backbone.image_size,
        "trainings": len(means.seeds),
    }


def _is_made(results: ResultsFolder, trial: Json) -> bool:
    made, now = read_as_text(results, COUNTS), trial | provenance_columns()
    is_known_code = not now["commit"].endswith("-dirty")
    return is_known_code and len(made) > 0 and bool(matches((*TRIAL, "commit"), [now], made).any())


def _make(truth: Audited, noise: NoiseSettings, means: Means, work: ResultsFolder, results: ResultsFolder) -> None:
    labels = noise.corrupt(truth.labels, len(truth.class_names), "audit")
    identity = f"{truth.identity}, {noise.kind} {noise.rate:g}, seed {noise.seed}"
    seen, is_wrong = replace(truth, labels=labels, identity=identity), labels != truth.labels
    trainings = len(means.seeds)
    own = replace(means, seeds=tuple(range(noise.seed * trainings, (noise.seed + 1) * trainings)))
    found = rank_labels(seen, work, own, Progress(Console(quiet=True)), lambda text: None)
    probabilities_NK = _logistic_regression(found.embedding, labels, len(truth.class_names), noise.seed)
    trial = _trial_of(truth, noise, means)
    _add(results, PRECISIONS, trial, [
        {"method": method, "first": first, "precision": is_wrong[order[: max(1, round(first * len(order)))]].mean()}
        for method, order in _orders(found, seen, probabilities_NK, noise.seed).items()
        for first in FIRST
        if is_wrong.any()
    ])  # fmt: skip
    errors = found.errors
    count = {"share": is_wrong.mean(), "estimate": errors.share, "low": errors.low, "high": errors.high}
    said = {"is_known": errors.is_known, "is_evidence": errors.is_evidence}
    others = {CLEANLAB: probabilities_NK, CLEANLAB_HELD_OUT: found.probabilities}
    counted = {name: _cleanlab().count.num_label_issues(labels, some) / len(labels) for name, some in others.items()}
    made_by = provenance_columns() | {"cleanlab version": _cleanlab().__version__}
    _add(results, COUNTS, trial, [count | said | counted | made_by])
    for folder in work.all_runs():  # hundreds of megabytes; features are kept for the next
        shutil.rmtree(folder)


def _add(results: ResultsFolder, table: str, trial: Json, rows: list[Json]) -> None:
    new = [trial | row for row in rows]
    merge_rows(results, table, new, lambda old: matches(TRIAL, new, old))


def _orders(found: Ranked, data: Audited, probabilities_NK: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Sample numbers, the most suspicious first."""
    rows = found.samples.set_index("id").loc[list(data.ids)]
    columns = {AUDIT: "rank"} | {name: rank_of(name) for name in (HELD_OUT, *(one.name for one in DETECTORS))}
    quality = _cleanlab().rank.get_label_quality_scores(data.labels, probabilities_NK)
    return {name: np.argsort(rows[column].to_numpy(), kind="stable") for name, column in columns.items()} | {
        CLEANLAB: np.argsort(quality, kind="stable"),
        RANDOM: numpy_generator(seed, "random order").permutation(len(rows)),
    }


def _logistic_regression(embedding_ND: np.ndarray, labels_N: np.ndarray, num_classes: int, seed: int) -> np.ndarray:
    """Out of sample, with the strength of regularisation that foretells given labels best in a part of the samples."""
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        scaled, generator = StandardScaler().fit_transform(embedding_ND), numpy_generator(seed, "cleanlab")
        some = generator.permutation(len(labels_N))[:TUNED_ON]

        def loss(strength: float) -> float:
            model = Regression(C=strength, max_iter=400)
            folds = numpy_generator(seed, "folds of cleanlab")
            found_NK = cross_validated([(model, scaled[some])], labels_N[some], num_classes, folds)
            return float(-np.log(np.maximum(found_NK[np.arange(len(some)), labels_N[some]], 1e-6)).mean())

        best, least = STRENGTHS[0], loss(STRENGTHS[0])
        for strength in STRENGTHS[1:]:  # from the strongest on, as long as less of it helps: the weakest are slow
            if (its := loss(strength)) >= least:
                break
            best, least = strength, its
        model = Regression(C=best, max_iter=400)
        return cross_validated([(model, scaled)], labels_N, num_classes, generator)


def _cleanlab() -> Any:
    try:
        import cleanlab.count
        import cleanlab.rank
    except ImportError as error:
        raise LincBenchError("The audit is compared with cleanlab, which is not here: pip install cleanlab") from error
    return cleanlab
