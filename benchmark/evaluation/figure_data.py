"""Small rows that figures are drawn from, computed from a run's record, scores and answer key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from scipy.stats import rankdata

from benchmark.data import AnswerKey
from benchmark.identity import Json
from benchmark.record import TRAIN_LOGITS, RunRecord
from benchmark.statistics.metrics import correction_metrics, roc_points
from detectors.linc import COMPONENT, CORRECTED_LABELS, TRUST, TRUST_MIXTURE, LiNCRecipe
from detectors.logits import given_class

BINS, MAP_BINS = 40, 32


@dataclass(frozen=True)
class JudgedRun:
    """A run with its answer key."""

    record: RunRecord
    key: AnswerKey

    @property
    def is_mislabelled(self) -> np.ndarray:
        return self.key.is_mislabelled(self.record.given_labels)


def corrections(run: JudgedRun, recipe: LiNCRecipe) -> list[Json]:
    """What the recipe corrected, over all samples and for each true class; empty if training ended before that.

    Where it abstained, the rows say that nothing was corrected.
    """
    if (np.asarray(run.record[COMPONENT]) < 0).all() and not recipe.may_abstain:
        return []
    record, clean = run.record, run.key.clean_labels
    arrays = record.given_labels, clean, np.asarray(record[CORRECTED_LABELS]), np.asarray(record[COMPONENT])
    phases = {"warm_up": recipe.warm_up, "soft_epochs": recipe.soft_epochs}
    groups = {"all": np.ones(len(clean), dtype=bool)} | {str(label): clean == label for label in np.unique(clean)}
    return [
        phases | {"class": name, "in_class": int(members.sum())} | correction_metrics(*(a[members] for a in arrays))
        for name, members in groups.items()
    ]


def trust_histogram(run: JudgedRun, recipe: LiNCRecipe) -> list[Json]:
    """Trust after the warm-up, binned, for truly clean and truly mislabelled samples."""
    trust = run.record[TRUST][min(recipe.warm_up, run.record.epochs) - 1]
    edges = np.histogram_bin_edges(trust.astype(np.float64), bins=BINS)
    return [
        {"subset": subset, "from": float(low), "to": float(high), "count": int(count)}
        for subset, members in _subsets(run).items()
        for low, high, count in zip(edges[:-1], edges[1:], np.histogram(trust[members], edges)[0], strict=True)
    ]


def mixture_components(run: JudgedRun) -> list[Json]:
    return [
        {"component": index, "mean": mean, "standard_deviation": deviation, "weight": weight}
        for index, (mean, deviation, weight) in enumerate(np.asarray(run.record[TRUST_MIXTURE]).tolist())
        if weight
    ]


def data_map(run: JudgedRun) -> list[Json]:
    """Mean and spread over epochs of the given label's probability, binned; cells without samples are left out."""

    def moments(labels_B: np.ndarray, logits_EBK: np.ndarray) -> np.ndarray:
        probability_EB = given_class(softmax(logits_EBK.astype(np.float64), axis=2), labels_B)
        return np.stack([probability_EB.mean(axis=0), probability_EB.std(axis=0)], axis=1)

    confidence_N, variability_N = run.record.map_samples(moments, TRAIN_LOGITS).T
    edges = np.linspace(0, 1, MAP_BINS + 1), np.linspace(0, 0.5, MAP_BINS + 1)
    rows: list[Json] = []
    for subset, members in _subsets(run).items():
        counts = np.histogram2d(confidence_N[members], variability_N[members], edges)[0].astype(int)
        for i, j in zip(*np.nonzero(counts), strict=True):
            rows.append(
                {
                    "subset": subset,
                    "confidence_from": float(edges[0][i]),
                    "variability_from": float(edges[1][j]),
                    "count": int(counts[i, j]),
                }
            )
    return rows


def roc(is_mislabelled: np.ndarray, scores: np.ndarray) -> list[Json]:
    return [
        {"false_positive_rate": round(float(x), 5), "true_positive_rate": round(float(y), 5)}
        for x, y in zip(*roc_points(is_mislabelled, scores), strict=True)
    ]


def agreement(scores_of: Mapping[str, np.ndarray]) -> Iterable[Json]:
    """Spearman's rank correlation of every pair of detectors; 0 for constant scores."""
    names = list(scores_of)
    with np.errstate(invalid="ignore"):
        correlation = np.atleast_2d(np.corrcoef([rankdata(scores_of[name]) for name in names]))
    return [
        {"detector": name, "other": other, "rank_correlation": round(float(np.nan_to_num(correlation[i, j])), 4)}
        for i, name in enumerate(names)
        for j, other in enumerate(names)
    ]


def _subsets(run: JudgedRun) -> dict[str, np.ndarray]:
    return {"clean": ~run.is_mislabelled, "mislabelled": run.is_mislabelled}
