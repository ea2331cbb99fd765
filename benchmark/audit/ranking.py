"""Ranks the given labels, the most suspicious first, and estimates how many are wrong."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from benchmark.audit.audited_data import AuditedData
from benchmark.audit.planted import Planted as Planted
from benchmark.audit.planted import Scores, judge_by_planted_errors
from benchmark.audit.scoring import score_labels
from benchmark.audit.settings import AuditSettings
from benchmark.counting.error_count import ErrorCount as ErrorCount
from benchmark.counting.error_count import count_errors
from benchmark.data.contradictions import (
    DuplicateCounts,
    Twin,
    contradicting_twins,
    contradictions_first,
    count_duplicates,
    fold_groups,
)
from benchmark.data.duplicates import Duplicates
from benchmark.disk import ResultsFolder
from benchmark.execution.progress import Progress
from benchmark.reference import DETECTOR
from benchmark.statistics.held_out import held_out_probabilities
from benchmark.statistics.mixture import fit_mixture

HELD_OUT = "held-out"  # classifiers that have not seen a sample, as one more detector
COMPONENTS = ("noisy", "ambiguous", "clean")


@dataclass(frozen=True)
class Ranked:
    samples: pd.DataFrame  # a row per sample, the most suspicious first, as in audit.csv
    errors: ErrorCount
    embedding: np.ndarray  # of the pretrained network, in the order of the data
    groups: np.ndarray  # the same number for what folds keep together, such as duplicates, in the order of the data
    probabilities: np.ndarray  # held out, in the order of the data
    duplicates: DuplicateCounts
    twins: dict[str, list[Twin]]  # by id: duplicates with another label, numbered in the order of the data
    planted: Planted | None  # what planted errors say of the list; None without any


def rank_labels(
    data: AuditedData, results: ResultsFolder, settings: AuditSettings, progress: Progress, say: Callable[[str], None]
) -> Ranked:
    scores, embedding, duplicates = score_labels(data, results, settings, progress, say)
    probabilities_NK, groups = held_out(data, embedding, duplicates, settings, progress)
    scores = _with_held_out(scores, probabilities_NK, data.labels)

    def of_planted(copy: AuditedData) -> Scores:
        say("Trains again, on a copy with some labels made wrong.")
        own = score_labels(copy, results, settings, progress, lambda text: None)[0]
        return _with_held_out(own, held_out(copy, embedding, duplicates, settings, progress)[0], copy.labels)

    about = data, scores, probabilities_NK
    planted = judge_by_planted_errors(*about, settings.seeds[0], of_planted) if settings.planted else None
    return ranked_by_scores(*about, embedding, duplicates, groups, planted)


def _with_held_out(scores: Scores, probabilities_NK: np.ndarray, labels: np.ndarray) -> Scores:
    return scores | {HELD_OUT: 1 - probabilities_NK[np.arange(len(labels)), labels]}


def held_out(
    data: AuditedData, embedding: np.ndarray, duplicates: Duplicates, settings: AuditSettings, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, the mean over seeds, and a number per sample, the same for what folds keep together."""
    groups, of_seeds = fold_groups(duplicates, data.kept_together, data.name), []
    with progress.counting("held-out classifiers") as report:
        for number, seed in enumerate(settings.seeds):  # each has folds of its own

            def report_all(done: int, total: int, before: int = number) -> None:
                report(before * total + done, len(settings.seeds) * total)

            about = embedding, data.labels, len(data.class_names)
            of_seeds.append(held_out_probabilities(*about, seed, report_all, groups))
    return np.mean(of_seeds, axis=0), groups


def ranked_by_scores(
    data: AuditedData,
    scores: dict[str, np.ndarray],
    probabilities_NK: np.ndarray,
    embedding: np.ndarray,
    duplicates: Duplicates,
    groups: np.ndarray,
    planted: Planted | None = None,
) -> Ranked:
    """By what planted errors taught, or else the mean rank; images whose copies have other labels come first."""
    twins = contradicting_twins(duplicates, data.labels)
    scores = _with_held_out(scores, probabilities_NK, data.labels)
    mean_rank = np.mean([rankdata(-values) for values in scores.values()], axis=0)
    combined = rankdata(-planted.score if planted else mean_rank, method="ordinal")
    ranks = contradictions_first(combined, duplicates, data.labels, twins)
    samples = _table(data, ranks, scores, probabilities_NK, twins, planted)
    counts = count_duplicates(duplicates, data.labels, data.splits, data.kept_together, data.fold_column)
    errors = replace(count_errors(probabilities_NK, data.labels), provable=counts.provable_errors)
    by_id = {data.ids[number]: of_image for number, of_image in twins.items()}
    return Ranked(samples, errors, embedding, groups, probabilities_NK, counts, by_id, planted)


def _table(
    data: AuditedData,
    ranks: np.ndarray,
    scores: dict[str, np.ndarray],
    probabilities_NK: np.ndarray,
    twins: dict[int, list[Twin]],
    planted: Planted | None,
) -> pd.DataFrame:
    """Without columns that the audit has nothing for."""
    trust = 1 - scores[DETECTOR] if DETECTOR in scores else np.empty(0)
    mixture = fit_mixture(trust, len(COMPONENTS)) if len(trust) else None
    components = np.array(COMPONENTS, dtype=object)[mixture.assignment] if mixture else np.full(len(trust), "")
    names, suggested = np.array(data.class_names, dtype=object), probabilities_NK.argmax(axis=1)
    others = ["|".join(data.ids[twin.number] for twin in twins.get(number, ())) for number in range(len(ranks))]
    columns = {
        "id": data.ids,
        "rank": ranks,
        "p_wrong": planted.p_wrong if planted else (),
        "given": names[data.labels],
        "suggested": names[suggested],
        "confidence": probabilities_NK.max(axis=1),
        "trust": trust,
        "component": components,
        "path": data.paths,
        "group": data.groups,
        "duplicate_of": others if twins else (),
    }
    for name, values in scores.items():
        columns |= {name: values, rank_column(name): rankdata(-values, method="min")}
    table = pd.DataFrame({name: values for name, values in columns.items() if len(values)})
    return table.sort_values("rank", ignore_index=True)


def rank_column(detector: str) -> str:
    return f"{detector} rank"


def ranked_detectors(samples: pd.DataFrame) -> list[str]:
    """The detectors that have scores in a ranked list."""
    return [str(name) for name in samples if rank_column(str(name)) in samples]
