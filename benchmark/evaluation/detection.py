"""How well detectors found the mislabelled samples: metrics with intervals, ROC curves, agreement, AUROC by epochs."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import rankdata

from benchmark.evaluation.run_rows import Rows, describe_run, options_text, run_key
from benchmark.identity import Json, label_of
from benchmark.reference import DETECTOR
from benchmark.runs import Outcome, Plan, Sources, Unit
from benchmark.runs.scores import read_auroc_by_epochs, read_scores
from benchmark.statistics.bootstrap import bootstrap_auroc, interval
from benchmark.statistics.comparisons import SCALE
from benchmark.statistics.metrics import detection_metrics, roc_points, why_undefined
from benchmark.training import Recipe
from detectors import Detector, detector_named

REFERENCE = detector_named(DETECTOR)  # others are compared with it
KEPT_DRAWS = 100  # of a run's bootstrap, since the files are committed
TRAINING = "training"  # in the place of a line-up: the failure of a run that no detector reads
Truths = Mapping[Unit, np.ndarray]  # which labels of a run are wrong


@dataclass(frozen=True)
class Entry:
    """A detector of a line-up on a run, or on it and further trainings with the same wrong labels: scores are means."""

    line_up: str
    detector: Detector
    units: tuple[Unit, ...]
    failure: str | None = None

    @property
    def unit(self) -> Unit:
        return self.units[0]

    def read_scores(self, sources: Sources) -> tuple[np.ndarray, float]:
        """Scores, and the seconds it took to score a run; means over the runs."""
        files = [sources.score_file(unit, self.detector) for unit in self.units]
        scores, seconds = zip(*map(read_scores, files), strict=True)
        return np.mean(scores, axis=0), float(np.mean(seconds))

    def key(self, plan: Plan) -> dict[str, Json]:
        return run_key(plan, self.unit) | {"line_up": self.line_up, "detector": self.detector.label}


def detection_rows(plan: Plan, outcome_of: Mapping[str, Outcome], truths: Truths) -> Rows:
    """Entries with the same wrong labels, training seed and number of trainings are compared in pairs."""
    rows: Rows = defaultdict(list)
    entries = _entries(plan, outcome_of)
    comparable: dict[object, list[Entry]] = defaultdict(list)
    for entry in entries:
        comparable[len(entry.units), entry.unit.run.setting_id, *entry.unit.run.seeds].append(entry)
    for group in comparable.values():
        _add_metrics(rows, plan, group, truths)
    for unit in plan.units:
        error = outcome_of[unit.run_id].error
        if error is not None and not unit.detectors:  # no detector's row would report it
            row = _described(plan, unit, truths, TRAINING, unit.run.recipe)
            rows["metrics"].append(row | {"runs_averaged": 0, "epochs_used": 0, "status": "failed", "reason": error})
    for entry in (entry for entry in entries if entry.failure is None and len(entry.units) == 1):
        label = entry.unit.label_by_epochs(entry.detector)
        is_known = label is not None and label not in outcome_of[entry.unit.run_id].failures
        if is_known and not why_undefined(truths[entry.unit]):
            file = plan.sources.score_file(entry.unit, entry.detector)
            points = read_auroc_by_epochs(file, entry.unit.shape.epochs)
            rows["auc_by_epochs"] += [entry.key(plan) | point for point in points if point["auroc"] is not None]
    return rows


def _described(plan: Plan, unit: Unit, truths: Truths, line_up: str, judged: Detector | Recipe) -> dict[str, Json]:
    return describe_run(plan, unit, truths.get(unit)) | {
        "line_up": line_up,
        "detector": label_of(judged),
        "detector_name": judged.name,
        "detector_options": options_text(judged),
    }


def _entries(plan: Plan, outcome_of: Mapping[str, Outcome]) -> list[Entry]:
    """One of each run, and one of each run with its further trainings; these have none of their own."""
    entries = []
    for unit, line_up in product(plan.units, plan.study.line_ups):
        for detector in (detector for detector in line_up.detectors if detector in unit.detectors):
            for units in plan.judged_together(unit, detector):
                failures = (outcome_of[unit.run_id].failure_of(detector) for unit in units)
                failure = next((reason for reason in failures if reason is not None), None)
                entries.append(Entry(line_up.name, detector, units, failure))
    return entries


def _add_metrics(rows: Rows, plan: Plan, group: list[Entry], truths: Truths) -> None:
    scores_of, seconds_of = {}, {}
    for entry in (entry for entry in group if entry.failure is None):
        scores_of[entry], seconds_of[entry] = entry.read_scores(plan.sources)
    truth = truths[next(iter(scores_of)).unit] if scores_of else None
    undefined = why_undefined(truth) if truth is not None else None
    draws_of = {} if truth is None or undefined else _draws(scores_of, truth)
    uncertainty = {} if truth is None else _uncertainty(scores_of, draws_of, truth)
    for entry in group:
        row = _described(plan, entry.unit, truths, entry.line_up, entry.detector) | {
            "runs_averaged": len(entry.units),
            "epochs_used": entry.detector.epochs_used_in(entry.unit.run.training),
            "seconds": seconds_of.get(entry),
        }
        if entry.failure is not None:
            row |= {"status": "failed", "reason": entry.failure}
        elif undefined:
            row |= {"status": "undefined", "reason": undefined}
        else:
            row |= uncertainty[entry] | {"status": "ok", "reason": ""}
        rows["metrics"].append(row)
    if len(group[0].units) > 1:
        return
    for entry, draws in draws_of.items():
        kept = (round(SCALE * auroc) for auroc in draws[:KEPT_DRAWS])
        rows["auroc_draws"] += [entry.key(plan) | {"auroc": auroc} for auroc in kept]
    if uncertainty and plan.is_first_seed(group[0].unit):
        assert truth is not None
        _add_comparison(rows, plan, scores_of, truth)


def _draws(scores_of: Mapping[Entry, np.ndarray], truth: np.ndarray) -> dict[Entry, np.ndarray]:
    """AUROCs of redrawn samples, the same ones for every entry."""
    return dict(zip(scores_of, bootstrap_auroc(truth, np.stack(list(scores_of.values()))), strict=True))


def _uncertainty(
    scores_of: Mapping[Entry, np.ndarray], draws_of: Mapping[Entry, np.ndarray], truth: np.ndarray
) -> dict[Entry, dict[str, float]]:
    """Each entry's metrics, with bootstrap intervals of the AUROC and of its difference to the reference's."""
    metrics_of = {entry: detection_metrics(truth, scores_of[entry]) for entry in draws_of}
    compared_with = next((entry for entry in draws_of if entry.detector == REFERENCE), None)
    for entry, metrics in metrics_of.items():
        metrics["auroc_low"], metrics["auroc_high"] = interval(draws_of[entry])
        if compared_with is not None and entry.detector != REFERENCE:
            low, high = interval(draws_of[entry] - draws_of[compared_with])
            difference = metrics["auroc"] - metrics_of[compared_with]["auroc"]
            metrics |= {"minus_linc": difference, "minus_linc_low": low, "minus_linc_high": high}
    return metrics_of


def _add_comparison(rows: Rows, plan: Plan, scores_of: Mapping[Entry, np.ndarray], truth: np.ndarray) -> None:
    """ROC curves and agreement of detectors, of the first seed only, since the files are committed."""
    for entry, scores in scores_of.items():
        rows["roc"] += [
            entry.key(plan) | {"false_positive_rate": round(float(x), 5), "true_positive_rate": round(float(y), 5)}
            for x, y in zip(*roc_points(truth, scores), strict=True)
        ]
    first = run_key(plan, next(iter(scores_of)).unit)
    for line_up in dict.fromkeys(entry.line_up for entry in scores_of):
        members = {entry.detector.label: scores for entry, scores in scores_of.items() if entry.line_up == line_up}
        rows["agreement"] += [first | {"line_up": line_up} | pair for pair in _agreement(members)]


def _agreement(scores_of: Mapping[str, np.ndarray]) -> list[Json]:
    """Spearman's rank correlation of every pair of detectors; 0 for constant scores."""
    with np.errstate(invalid="ignore"):
        correlation = np.atleast_2d(np.corrcoef([rankdata(scores) for scores in scores_of.values()]))
    return [
        {"detector": name, "other": other, "rank_correlation": round(float(value), 4)}
        for name, row in zip(scores_of, np.nan_to_num(correlation), strict=True)
        for other, value in zip(scores_of, row, strict=True)
    ]
