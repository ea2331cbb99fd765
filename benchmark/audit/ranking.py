"""Ranks the given labels, the most suspicious first, and estimates how many are wrong."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from benchmark.audit.audited_data import AuditedData
from benchmark.audit.planted import Planted as Planted
from benchmark.audit.planted import Scores, judge_by_planted_errors
from benchmark.audit.scoring import score_labels
from benchmark.audit.settings import AuditSettings
from benchmark.disk import ResultsFolder
from benchmark.execution.progress import Progress
from benchmark.reference import DETECTOR
from benchmark.statistics.error_count import ErrorCount, count_errors
from benchmark.statistics.held_out import held_out_probabilities
from benchmark.statistics.mixture import fit_mixture

HELD_OUT = "held-out"  # classifiers that have not seen a sample, as one more detector
COMPONENTS = ("noisy", "ambiguous", "clean")


@dataclass(frozen=True)
class Ranked:
    samples: pd.DataFrame  # a row per sample, the most suspicious first, as in audit.csv
    errors: ErrorCount
    embedding: np.ndarray  # of the pretrained network, in the order of the data
    groups: np.ndarray  # the same number for duplicates, in the order of the data
    probabilities: np.ndarray  # held out, in the order of the data
    planted: Planted | None  # what planted errors say of the list; None without any


def rank_labels(
    data: AuditedData, results: ResultsFolder, settings: AuditSettings, progress: Progress, say: Callable[[str], None]
) -> Ranked:
    scores, embedding, groups = score_labels(data, results, settings, progress, say)

    def with_held_out(scores: Scores, labels_N: np.ndarray) -> tuple[Scores, np.ndarray]:
        about = embedding, labels_N, len(data.class_names)
        of_seeds = []
        with progress.counting("held-out classifiers") as report:
            for number, seed in enumerate(settings.seeds):  # each has folds of its own

                def report_all(done: int, total: int, before: int = number) -> None:
                    report(before * total + done, len(settings.seeds) * total)

                of_seeds.append(held_out_probabilities(*about, seed, report_all, groups))
        probabilities_NK = np.mean(of_seeds, axis=0)
        return scores | {HELD_OUT: 1 - probabilities_NK[np.arange(len(labels_N)), labels_N]}, probabilities_NK

    def of_planted(copy: AuditedData) -> Scores:
        say("Trains again, with planted errors.")
        return with_held_out(score_labels(copy, results, settings, progress, lambda text: None)[0], copy.labels)[0]

    scores, probabilities_NK = with_held_out(scores, data.labels)
    about = data, scores, probabilities_NK
    planted = judge_by_planted_errors(*about, settings.seeds[0], of_planted) if settings.planted else None
    samples, errors = _table(*about, planted), count_errors(probabilities_NK, data.labels)
    return Ranked(samples, errors, embedding, groups, probabilities_NK, planted)


def _table(
    data: AuditedData, scores: Scores, probabilities_NK: np.ndarray, planted: Planted | None = None
) -> pd.DataFrame:
    """Ranked by what planted errors taught, or by the mean of all ranks."""
    trust = 1 - scores[DETECTOR]
    mixture = fit_mixture(trust, len(COMPONENTS))
    components = np.array(COMPONENTS, dtype=object)[mixture.assignment] if mixture else np.full(len(trust), "")
    mean_rank = np.mean([rankdata(-values) for values in scores.values()], axis=0)
    combined = rankdata(-planted.score if planted else mean_rank, method="ordinal")
    names, suggested = np.array(data.class_names, dtype=object), probabilities_NK.argmax(axis=1)
    columns = {
        "id": data.ids,
        "rank": combined,
        "p_wrong": planted.p_wrong if planted else (),
        "given": names[data.labels],
        "suggested": names[suggested],
        "confidence": probabilities_NK.max(axis=1),
        "trust": trust,
        "component": components,
        "path": data.paths,
        "group": data.groups,
    }
    for name, values in scores.items():
        columns |= {name: values, rank_column(name): rankdata(-values, method="min")}
    table = pd.DataFrame({name: values for name, values in columns.items() if len(values)})
    return table.sort_values("rank", ignore_index=True)


def rank_column(detector: str) -> str:
    return f"{detector} rank"
