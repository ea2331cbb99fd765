"""Ranks the given labels, the most suspicious first, and estimates how many are wrong."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from benchmark.audit.audited_data import AuditedData
from benchmark.audit.scoring import score_labels
from benchmark.audit.settings import AuditSettings
from benchmark.counting.error_count import ErrorCount, count_errors
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
    groups: np.ndarray  # the same number for duplicates, in the order of the data
    probabilities: np.ndarray  # held out, in the order of the data


def rank_labels(
    data: AuditedData, results: ResultsFolder, settings: AuditSettings, progress: Progress, say: Callable[[str], None]
) -> Ranked:
    scores, embedding, groups = score_labels(data, results, settings, progress, say)
    of_seeds = []
    with progress.counting("held-out classifiers") as report:
        for number, seed in enumerate(settings.seeds):  # each has folds of its own

            def report_all(done: int, total: int, before: int = number) -> None:
                report(before * total + done, len(settings.seeds) * total)

            about = embedding, data.labels, len(data.class_names)
            of_seeds.append(held_out_probabilities(*about, seed, report_all, groups))
    probabilities_NK = np.mean(of_seeds, axis=0)
    of_given_label = probabilities_NK[np.arange(len(data.labels)), data.labels]
    samples = _table(data, scores | {HELD_OUT: 1 - of_given_label}, probabilities_NK)
    return Ranked(samples, count_errors(probabilities_NK, data.labels), embedding, groups, probabilities_NK)


def _table(data: AuditedData, scores: dict[str, np.ndarray], probabilities_NK: np.ndarray) -> pd.DataFrame:
    """Ranked by the mean of all ranks."""
    trust = 1 - scores[DETECTOR]
    mixture = fit_mixture(trust, len(COMPONENTS))
    components = np.array(COMPONENTS, dtype=object)[mixture.assignment] if mixture else np.full(len(trust), "")
    combined = rankdata(np.mean([rankdata(-values) for values in scores.values()], axis=0), method="ordinal")
    names, suggested = np.array(data.class_names, dtype=object), probabilities_NK.argmax(axis=1)
    columns = {
        "id": data.ids,
        "rank": combined,
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
