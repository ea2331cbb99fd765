"""How good is an audit? Labels are made wrong before it sees them, and its list is compared with the truth.

They are wrong as a kind of noise makes them, or as people did (`given:KEY`).

On the same embeddings it is compared with a random order and with cleanlab as its tutorials use it: given out-of-sample
probabilities of logistic regression, it ranks by its label quality. With the audit's held-out probabilities cleanlab's
ranking would be that of *held-out*, so there only its count is new. Each detector of the audit is evaluated by itself,
too. The truth is what the data said before; errors that they had already count as right.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmark.audit.audited_data import AuditedData, write_digits
from benchmark.audit.ranking import HELD_OUT, Ranked, rank_column, rank_labels
from benchmark.audit.settings import DETECTORS, AuditSettings
from benchmark.disk import ResultsFolder, locked, provenance_columns, remove
from benchmark.disk.tables import matches, merge_rows, read_as_text
from benchmark.execution.progress import Progress
from benchmark.noise import NoiseKind, NoiseSettings
from benchmark.seeds import numpy_generator
from benchmark.trials.peers import cleanlab, out_of_sample_probabilities
from benchmark.trials.reviewers import review_rows
from benchmark.trials.tables import AUDIT, CLEANLAB, CLEANLAB_HELD_OUT, COUNTS, PRECISIONS, RANDOM, REVIEWS
from benchmark.trials.wrong_labels import given_labels, trials_of

RATES = (0.05, 0.1, 0.2)
FLIPPED = ("symmetric",)
FIRST = (0.01, 0.05, 0.1)  # shares of the list
TRIAL = ("dataset", "data", "noise", "rate", "seed", "backbone", "image_size", "trainings")
Row = dict[str, object]


def try_audit(
    paths: Sequence[Path],
    kinds: Sequence[str],
    rates: Sequence[float],
    seeds: Sequence[int],
    settings: AuditSettings,
    results: ResultsFolder,
    progress: Progress,
) -> None:
    """Adds a trial of every data set, kind of noise, rate and seed to the tables of the results folder, one by one.

    Without a path, digits are used. A trial that was done with the same code is not repeated.
    """
    cleanlab()  # fails now rather than after the first trial
    provenance_columns()  # asks git now, before anything can change
    work = ResultsFolder(results.root / "audit_trials")
    trials = [
        trial for path in paths or [write_digits(work.root)] for trial in trials_of(path, kinds, rates, seeds, work)
    ]
    with progress.counting("audits of wrong labels") as report:
        report(0, len(trials))
        for done, (data, kind, noise) in enumerate(trials, 1):
            with locked(results.locks, "audit trials"):  # they share a folder
                _try(data, kind, noise, settings, work, results)
            report(done, len(trials))


def _try(
    data: AuditedData,
    kind: NoiseKind,
    noise: NoiseSettings,
    settings: AuditSettings,
    work: ResultsFolder,
    results: ResultsFolder,
) -> None:
    """Unless it was done with the same code."""
    trial: Row = {
        "dataset": data.name,
        "data": data.identity[-12:],
        "samples": len(data.labels),
        "classes": len(data.class_names),
        "noise": noise.title,
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
    precisions, reviews, count = _run(data, kind, noise, settings, work)
    for table, rows in ((PRECISIONS, precisions), (REVIEWS, reviews), (COUNTS, [count])):
        new = [trial | row for row in rows]
        merge_rows(results, table, new, partial(matches, TRIAL, new))


def _run(
    truth: AuditedData, kind: NoiseKind, noise: NoiseSettings, settings: AuditSettings, work: ResultsFolder
) -> tuple[list[Row], list[Row], Row]:
    """Rows of precision among the first of the list and of simulated reviews, and the row that counts wrong labels."""
    labels = given_labels(truth, kind, noise)
    identity = f"{truth.identity}, {noise.kind} {noise.source} {noise.rate:g}, seed {noise.seed}"
    flipped, is_wrong = replace(truth, labels=labels, identity=identity), labels != truth.labels
    trainings = len(settings.seeds)
    own = replace(settings, seeds=tuple(range(noise.seed * trainings, (noise.seed + 1) * trainings)))
    ranked = rank_labels(flipped, work, own, Progress(Console(quiet=True)), lambda text: None)
    about = ranked.embedding, labels, ranked.groups, len(truth.class_names)
    probabilities_NK = out_of_sample_probabilities(*about, noise.seed)
    for folder in work.all_runs():  # hundreds of megabytes; features are kept for the next trial
        remove(folder)
    orders = _orders(ranked, flipped, probabilities_NK, noise.seed)
    precisions: list[Row] = [
        {"method": method, "first": first, "precision": is_wrong[order[: max(1, round(first * len(order)))]].mean()}
        for method, order in orders.items()
        for first in FIRST
        if is_wrong.any()
    ]
    errors, count = ranked.errors, cleanlab().count.num_label_issues
    return (
        precisions,
        list(review_rows(is_wrong[orders[AUDIT]], noise.seed)),
        {
            "share": is_wrong.mean(),
            "estimate": errors.share,
            "low": errors.at_least / errors.samples,
            "is_known": errors.is_known,
            "is_evidence": errors.is_evidence,
            CLEANLAB: count(labels, probabilities_NK) / len(labels),
            CLEANLAB_HELD_OUT: count(labels, ranked.probabilities) / len(labels),
            "cleanlab version": cleanlab().__version__,
        }
        | provenance_columns(),
    )


def _orders(ranked: Ranked, data: AuditedData, probabilities_NK: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Sample numbers by method, the most suspicious first."""
    rows = ranked.samples.set_index("id").loc[list(data.ids)]
    columns = {AUDIT: "rank"} | {name: rank_column(name) for name in (HELD_OUT, *(one.name for one in DETECTORS))}
    quality = cleanlab().rank.get_label_quality_scores(data.labels, probabilities_NK)
    return {name: np.argsort(rows[column].to_numpy(), kind="stable") for name, column in columns.items()} | {
        CLEANLAB: np.argsort(quality, kind="stable"),
        RANDOM: numpy_generator(seed, "random order").permutation(len(rows)),
    }
