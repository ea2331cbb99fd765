"""How good is an audit? Labels are flipped before it sees them, and its list is compared with the truth.

On the same embeddings it is compared with a random order and with cleanlab as its tutorials use it: given out-of-sample
probabilities of logistic regression, it ranks by its label quality. With the audit's held-out probabilities cleanlab's
ranking would be that of *held-out*, so there only its count is new. Each detector of the audit is evaluated by itself,
too. The truth is what the data said before; errors that they had already count as right.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.audit.audited_data import AuditedData, read_audited_data, write_digits
from benchmark.audit.ranking import HELD_OUT, Ranked, rank_column, rank_labels
from benchmark.audit.settings import DETECTORS, AuditSettings
from benchmark.audit.trial_tables import AUDIT, CLEANLAB, CLEANLAB_HELD_OUT, COUNTS, PRECISIONS, RANDOM
from benchmark.disk import ResultsFolder, locked, provenance_columns, remove
from benchmark.disk.tables import matches, merge_rows, read_as_text
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.noise import NoiseSettings, Samples, noise_named
from benchmark.seeds import numpy_generator
from benchmark.statistics.held_out import FOLDS, cross_validated, stratified_folds

RATES = (0.05, 0.1, 0.2)
FIRST = (0.01, 0.05, 0.1)  # shares of the list
STRENGTHS, TUNED_ON = (1e-4, 1e-3, 1e-2, 0.1, 1.0), 2000  # scikit-learn's C for cleanlab's classifier; samples
TRIAL = ("dataset", "data", "rate", "seed", "backbone", "image_size", "trainings")
Row = dict[str, object]


def try_audit(
    paths: Sequence[Path],
    rates: Sequence[float],
    seeds: Sequence[int],
    settings: AuditSettings,
    results: ResultsFolder,
    progress: Progress,
) -> None:
    """Adds a trial of every data set, rate and seed to the tables of the results folder, each when it is done.

    Without a path, digits are used. A trial that was done with the same code is not repeated.
    """
    cleanlab()  # fails now rather than after the first trial
    provenance_columns()  # asks git now, before anything can change
    work = ResultsFolder(results.root / "audit_trials")
    paths = paths or [write_digits(work.root)]
    noises = [NoiseSettings(rate=rate, seed=seed) for rate, seed in product(rates, seeds)]
    trials = ((data, noise) for data in map(read_audited_data, paths) for noise in noises)
    with progress.counting("audits of flipped labels") as report:
        report(0, len(paths) * len(noises))
        for done, (data, noise) in enumerate(trials, 1):
            noise.check(len(data.labels), f"labels of {data.name}")
            with locked(results.locks, "audit trials"):  # they share a folder
                _try(data, noise, settings, work, results)
            report(done, len(paths) * len(noises))


def _try(
    data: AuditedData, noise: NoiseSettings, settings: AuditSettings, work: ResultsFolder, results: ResultsFolder
) -> None:
    """Unless it was done with the same code."""
    trial: Row = {
        "dataset": data.name,
        "data": data.identity[-12:],
        "samples": len(data.labels),
        "classes": len(data.class_names),
        "rate": noise.rate,
        "seed": noise.seed,
        "backbone": settings.backbone.name,
        "image_size": settings.backbone.image_size,
        "trainings": len(settings.seeds),
    }
    now = trial | provenance_columns()
    is_known_code = not str(now["commit"]).endswith("-dirty")
    if is_known_code and matches((*TRIAL, "commit"), [now], read_as_text(results, COUNTS)).any():
        return
    precisions, count = _run(data, noise, settings, work)
    for table, rows in ((PRECISIONS, precisions), (COUNTS, [count])):
        new = [trial | row for row in rows]
        merge_rows(results, table, new, partial(matches, TRIAL, new))


def _run(
    truth: AuditedData, noise: NoiseSettings, settings: AuditSettings, work: ResultsFolder
) -> tuple[list[Row], Row]:
    """Rows of precision among the first of the list, and the row that counts wrong labels."""
    samples = Samples.of_labels(truth.labels, len(truth.class_names), "audit")
    labels = noise_named(noise.kind).corrupt(samples, noise.rate, noise.seed).given["audit"]
    identity = f"{truth.identity}, {noise.kind} {noise.rate:g}, seed {noise.seed}"
    flipped, is_wrong = replace(truth, labels=labels, identity=identity), labels != truth.labels
    trainings = len(settings.seeds)
    own = replace(settings, seeds=tuple(range(noise.seed * trainings, (noise.seed + 1) * trainings)))
    ranked = rank_labels(flipped, work, own, Progress(Console(quiet=True)), lambda text: None)
    about = ranked.embedding, labels, ranked.groups, len(truth.class_names)
    probabilities_NK = out_of_sample_probabilities(*about, noise.seed)
    for folder in work.all_runs():  # hundreds of megabytes; features are kept for the next trial
        remove(folder)
    precisions: list[Row] = [
        {"method": method, "first": first, "precision": is_wrong[order[: max(1, round(first * len(order)))]].mean()}
        for method, order in _orders(ranked, flipped, probabilities_NK, noise.seed).items()
        for first in FIRST
        if is_wrong.any()
    ]
    errors, count = ranked.errors, cleanlab().count.num_label_issues
    return precisions, {
        "share": is_wrong.mean(),
        "estimate": errors.share,
        "low": errors.low,
        "high": errors.high,
        "is_known": errors.is_known,
        "is_evidence": errors.is_evidence,
        CLEANLAB: count(labels, probabilities_NK) / len(labels),
        CLEANLAB_HELD_OUT: count(labels, ranked.probabilities) / len(labels),
        "cleanlab version": cleanlab().__version__,
    } | provenance_columns()


def _orders(ranked: Ranked, data: AuditedData, probabilities_NK: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Sample numbers by method, the most suspicious first."""
    rows = ranked.samples.set_index("id").loc[list(data.ids)]
    columns = {AUDIT: "rank"} | {name: rank_column(name) for name in (HELD_OUT, *(one.name for one in DETECTORS))}
    quality = cleanlab().rank.get_label_quality_scores(data.labels, probabilities_NK)
    return {name: np.argsort(rows[column].to_numpy(), kind="stable") for name, column in columns.items()} | {
        CLEANLAB: np.argsort(quality, kind="stable"),
        RANDOM: numpy_generator(seed, "random order").permutation(len(rows)),
    }


def cleanlab() -> Any:
    try:
        import cleanlab.count
        import cleanlab.rank
    except ImportError as error:
        raise LincBenchError("Trials compare the audit with cleanlab. Install it: pip install cleanlab") from error
    return cleanlab


def out_of_sample_probabilities(
    embedding_ND: np.ndarray, labels_N: np.ndarray, groups_N: np.ndarray | None, num_classes: int, seed: int
) -> np.ndarray:
    """Of logistic regression, with the regularisation that predicts the given labels of some samples best."""
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        scaled, generator = StandardScaler().fit_transform(embedding_ND), numpy_generator(seed, "cleanlab")
        fold_N = stratified_folds(labels_N, groups_N, FOLDS, generator)
        some = generator.permutation(len(labels_N))[:TUNED_ON]

        def loss(strength: float) -> float:
            classifiers = [(LogisticRegression(C=strength, max_iter=400), scaled[some])]
            probabilities_NK = cross_validated(classifiers, labels_N[some], num_classes, fold_N[some])
            return float(-np.log(np.maximum(probabilities_NK[np.arange(len(some)), labels_N[some]], 1e-6)).mean())

        best, least = STRENGTHS[0], loss(STRENGTHS[0])
        for strength in STRENGTHS[1:]:  # stops when the loss no longer falls, since weak regularisation is slow
            if (current := loss(strength)) >= least:
                break
            best, least = strength, current
        return cross_validated([(LogisticRegression(C=best, max_iter=400), scaled)], labels_N, num_classes, fold_N)
