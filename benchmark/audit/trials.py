"""How good is an audit? Labels are flipped before it sees them, and its list is compared with the truth.

On the same embeddings it is compared with cleanlab and with a random order. With the audit's held-out probabilities
cleanlab's ranking would be that of *held-out*, so there only its count is new. Each detector of the audit is evaluated
by itself, too. The truth is what the data said before; errors that they had already count as right.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmark.audit.audited_data import AuditedData, read_audited_data, write_digits
from benchmark.audit.cleanlab_comparison import cleanlab, out_of_sample_probabilities
from benchmark.audit.ranking import HELD_OUT, Ranked, rank_column, rank_labels
from benchmark.audit.settings import DETECTORS, AuditSettings
from benchmark.audit.trial_tables import AUDIT, CLEANLAB, CLEANLAB_HELD_OUT, COUNTS, PRECISIONS, RANDOM
from benchmark.data import NoiseSettings
from benchmark.disk import ResultsFolder, locked, provenance_columns
from benchmark.disk.tables import matches, merge_rows, read_as_text
from benchmark.execution.progress import Progress
from benchmark.seeds import numpy_generator

RATES = (0.05, 0.1, 0.2)
FIRST = (0.01, 0.05, 0.1)  # shares of the list
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
    work = ResultsFolder(results.root / "audit_trials")
    paths, noises = paths or [write_digits(work.root)], list(product(rates, seeds))
    done, total = 0, len(paths) * len(noises)
    with progress.counting("audits of flipped labels") as report:
        report(done, total)
        for path in paths:
            data = read_audited_data(path)
            for rate, seed in noises:
                with locked(results.locks, "audit trials"):  # they share a folder
                    _try(data, NoiseSettings(rate=rate, seed=seed), settings, work, results)
                done += 1
                report(done, total)


def _try(
    data: AuditedData, noise: NoiseSettings, settings: AuditSettings, work: ResultsFolder, results: ResultsFolder
) -> None:
    """Unless it was done with the same code."""
    trial = _describe(data, noise, settings)
    now = trial | provenance_columns()
    is_known_code = not str(now["commit"]).endswith("-dirty")
    if is_known_code and matches((*TRIAL, "commit"), [now], read_as_text(results, COUNTS)).any():
        return
    precisions, count = _run(data, noise, settings, work)
    for table, rows in ((PRECISIONS, precisions), (COUNTS, [count])):
        new = [trial | row for row in rows]
        merge_rows(results, table, new, partial(matches, TRIAL, new))


def _describe(data: AuditedData, noise: NoiseSettings, settings: AuditSettings) -> Row:
    return {
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


def _run(
    truth: AuditedData, noise: NoiseSettings, settings: AuditSettings, work: ResultsFolder
) -> tuple[list[Row], Row]:
    """Rows of precision among the first of the list, and the row that counts wrong labels."""
    labels = noise.corrupt(truth.labels, len(truth.class_names), "audit")
    identity = f"{truth.identity}, {noise.kind} {noise.rate:g}, seed {noise.seed}"
    flipped, is_wrong = replace(truth, labels=labels, identity=identity), labels != truth.labels
    trainings = len(settings.seeds)
    own = replace(settings, seeds=tuple(range(noise.seed * trainings, (noise.seed + 1) * trainings)))
    ranked = rank_labels(flipped, work, own, Progress(Console(quiet=True)), lambda text: None)
    probabilities_NK = out_of_sample_probabilities(ranked.embedding, labels, len(truth.class_names), noise.seed)
    for folder in work.all_runs():  # hundreds of megabytes; features are kept for the next trial
        shutil.rmtree(folder)
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
