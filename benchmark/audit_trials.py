"""How well does an audit do? Labels are made wrong before it sees them, and what it finds is held against the truth.

Beside it, on the same embeddings: cleanlab with logistic regression, as its tutorials have it, cleanlab with the
held-out classifiers of the audit, and chance. Each detector of the audit is judged by itself, too. The truth is what
the data said before; errors that they had already count as right.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.audit_tables import AUDIT, CLEANLAB, CLEANLAB_HELD_OUT, COUNTS, PRECISIONS, RANDOM
from benchmark.audited import Audited, read_audited
from benchmark.errors import LincBenchError
from benchmark.identity import Json
from benchmark.layout import ResultsFolder
from benchmark.noise import NoiseSettings
from benchmark.progress import Progress
from benchmark.provenance import origin
from benchmark.seeds import numpy_generator
from benchmark.suspicion import DETECTORS, HELD_OUT, Means, Ranked, rank_labels, rank_of
from benchmark.table_files import merge_rows, read_as_text, same_in

RATES = (0.05, 0.1, 0.2)
FIRST = (0.01, 0.05, 0.1)  # shares of the list
TRIAL = ("dataset", "rate", "seed", "backbone", "image_size", "trainings")


def try_audit(
    paths: Sequence[Path],
    rates: Sequence[float],
    seeds: Sequence[int],
    means: Means,
    results: ResultsFolder,
    progress: Progress,
) -> None:
    """Adds a trial of every data set, rate and seed to the tables of the results folder, each when it is done.

    One that the same code has made already is not made again.
    """
    _cleanlab()  # rather than after the first trial
    work = ResultsFolder(results.root / "audit_trials")
    noises = [NoiseSettings(rate=rate, seed=seed) for rate, seed in product(rates, seeds)]
    with progress.counting("audits of flipped labels") as report:
        for at, path in enumerate(paths):
            data = read_audited(path)
            for number, noise in enumerate(noises):
                report(at * len(noises) + number, len(paths) * len(noises))
                if not _is_made(results, _trial_of(data, noise, means)):
                    counts, precisions = _made(data, noise, means, work)
                    _add(results, PRECISIONS, precisions)
                    _add(results, COUNTS, counts)
                    for folder in work.all_runs():  # hundreds of megabytes; features are kept for the next
                        shutil.rmtree(folder)
        report(len(paths) * len(noises), len(paths) * len(noises))


def _trial_of(data: Audited, noise: NoiseSettings, means: Means) -> Json:
    return {
        "dataset": data.name,
        "samples": len(data.labels),
        "classes": len(data.class_names),
        "rate": noise.rate,
        "seed": noise.seed,
        "backbone": means.backbone.name,
        "image_size": means.backbone.image_size,
        "trainings": len(means.seeds),
    }


def _is_made(results: ResultsFolder, trial: Json) -> bool:
    made = read_as_text(results.table_data(COUNTS))
    return len(made) > 0 and bool(same_in((*TRIAL, "commit"), [trial | origin()], made).any())


def _add(results: ResultsFolder, table: str, rows: list[Json]) -> None:
    merge_rows(results, table, rows, lambda old: same_in(TRIAL, rows, old), TRIAL)


def _made(truth: Audited, noise: NoiseSettings, means: Means, work: ResultsFolder) -> tuple[list[Json], list[Json]]:
    """A row of the table of counts, and those of precisions."""
    labels = noise.corrupt(truth.labels, len(truth.class_names), "audit")
    identity = f"{truth.identity}, {noise.kind} {noise.rate:g}, seed {noise.seed}"
    seen, is_wrong = replace(truth, labels=labels, identity=identity), labels != truth.labels
    own = replace(means, seeds=tuple(noise.seed + step for step in range(len(means.seeds))))
    found = rank_labels(seen, work, own, Progress(Console(quiet=True)), lambda text: None)
    probabilities_of = {
        CLEANLAB: _logistic_regression(found.embedding, labels),
        CLEANLAB_HELD_OUT: found.probabilities,
    }
    trial = _trial_of(truth, noise, means)
    errors = found.errors
    count = {"share": is_wrong.mean(), "estimate": errors.share, "low": errors.low, "high": errors.high}
    others = {
        name: _cleanlab().count.num_label_issues(labels, probabilities) / len(labels)
        for name, probabilities in probabilities_of.items()
    }
    versions = {"cleanlab": _cleanlab().__version__}
    counts = [trial | count | {"is_evidence": errors.is_evidence} | others | origin() | versions]
    orders = _orders(found, seen) | {name: _cleanlab_order(labels, some) for name, some in probabilities_of.items()}
    orders[RANDOM] = numpy_generator(noise.seed, "random order").permutation(len(labels))
    precisions = [
        trial | {"method": method, "first": first, "precision": is_wrong[order[: round(first * len(labels))]].mean()}
        for method, order in orders.items()
        for first in FIRST
    ]
    return counts, precisions if is_wrong.any() else []


def _orders(found: Ranked, data: Audited) -> dict[str, np.ndarray]:
    """Sample numbers, the most suspicious first, for the audit and each of its detectors."""
    rows = found.samples.set_index("id").loc[list(data.ids)]
    columns = {AUDIT: "rank"} | {name: rank_of(name) for name in (HELD_OUT, *(one.name for one in DETECTORS))}
    return {name: np.argsort(rows[column].to_numpy(), kind="stable") for name, column in columns.items()}


def _logistic_regression(embedding_ND: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """Out of sample, with scikit-learn's defaults."""
    with threadpool_limits(limits=1), catch_warnings():  # libraries' own threads change bytes
        simplefilter("ignore")  # a hundred iterations are its default, converged or not
        scaled = StandardScaler().fit_transform(embedding_ND)
        return cross_val_predict(LogisticRegression(), scaled, labels_N, cv=5, method="predict_proba")


def _cleanlab_order(labels_N: np.ndarray, probabilities_NK: np.ndarray) -> np.ndarray:
    """What cleanlab calls issues, then the others, each from the lowest quality."""
    is_issue = _cleanlab().filter.find_label_issues(labels_N, probabilities_NK, n_jobs=1)
    quality = _cleanlab().rank.get_label_quality_scores(labels_N, probabilities_NK)
    return np.lexsort((quality, ~is_issue))


def _cleanlab() -> Any:
    try:
        import cleanlab.count
        import cleanlab.filter
        import cleanlab.rank
    except ImportError as error:
        raise LincBenchError("The audit is compared with cleanlab, which is not here: pip install cleanlab") from error
    return cleanlab
