"""From records and scores to the small committed files; the only reader of the answer keys."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.identity import Json
from benchmark.layout import ResultsFolder
from benchmark.metrics import accuracy_metrics, detection_metrics, why_undefined
from benchmark.noise import AnswerKey
from benchmark.pipeline import Outcome
from benchmark.plan import Plan, Unit
from benchmark.record import RunRecord, open_record, read_history
from benchmark.scores import read_scores
from benchmark.storage import locked, write_text
from detectors import Detector
from detectors.linc import TRUST, TRUST_MIXTURE, LiNCRecipe

TABLES = ("metrics", "accuracy", "curves", "trust_histograms", "mixtures")
HISTOGRAM_BINS = 40


def evaluate(plan: Plan, outcomes: list[Outcome]) -> None:
    """Writes this plan's rows into the results folder's tables, in the place of older rows of the same runs."""
    outcome_of = {outcome.run_id: outcome for outcome in outcomes}
    failed = {unit.run.run_id: _failed(unit, outcome_of[unit.run.run_id]) for unit in plan.units}
    rows: dict[str, list[Json]] = {table: [] for table in TABLES}
    for unit in plan.units:
        about = {"study": plan.study.name, **_describe(unit)}
        if outcome_of[unit.run.run_id].error is not None:
            rows["metrics"] += _metrics_rows(plan, unit, about, failed, np.empty(0, dtype=bool))
            continue
        record, key = open_record(unit.folder), _answer_key(unit)
        is_mislabelled = key.is_mislabelled(record.given_labels)
        about["true_rate"] = float(is_mislabelled.mean())
        rows["metrics"] += _metrics_rows(plan, unit, about, failed, is_mislabelled)
        if unit.run.recipe not in plan.study.recipes:
            continue
        rows["accuracy"].append(about | _accuracy(unit, key))
        rows["curves"] += [about | row for row in read_history(unit.folder)]
        if isinstance(unit.run.recipe, LiNCRecipe):
            rows["trust_histograms"] += _trust_histogram(unit.run.recipe, record, key, about)
            rows["mixtures"] += [
                about | {"component": index, "mean": mean, "standard_deviation": deviation, "weight": weight}
                for index, (mean, deviation, weight) in enumerate(np.asarray(record[TRUST_MIXTURE]).tolist())
                if weight
            ]
    for table, new in rows.items():
        merge_rows(plan.sources.results, table, new, lambda old: _is_replaced(plan, old))


def _failed(unit: Unit, outcome: Outcome) -> dict[str, str]:
    """Why detectors have no scores, by their labels."""
    if outcome.error is not None:
        return {detector.label: outcome.error for detector in unit.detectors}
    return outcome.failures


def _is_replaced(plan: Plan, old: pd.DataFrame) -> pd.Series:
    """All rows of a study that was run as it is; of a modified one, those of its runs and detectors."""
    replaced = old["study"] == plan.study.name
    if plan.study.is_modified:
        replaced &= old["run"].isin([unit.run.run_id for unit in plan.units])
        if "detector" in old:
            replaced &= old["detector"].isin([detector.label for detector in plan.study.detectors])
    return replaced


def _differ_in_training_seed_only(one: Unit, other: Unit) -> bool:
    a, b = one.run, other.run
    return (a.setting_id, a.noise.seed, a.recipe) == (b.setting_id, b.noise.seed, b.recipe)


def _describe(unit: Unit) -> dict[str, Json]:
    run = unit.run
    return {
        "run": run.run_id,
        "dataset": run.dataset,
        "classes": unit.info.num_classes,
        "samples": unit.info.sizes[0],
        "noise": run.noise.kind,
        "rate": run.noise.rate,
        "noise_seed": run.noise.seed,
        "training_seed": run.training.seed,
        "backbone": run.backbone.name,
        "image_size": run.backbone.image_size,
        "epochs": run.training.epochs,
        "batch_size": run.training.batch_size,
        "recipe": run.recipe.name,
        "setting": run.setting_id,
        "true_rate": None,
    }


def _answer_key(unit: Unit) -> AnswerKey:
    with np.load(unit.sources.results.answer_key(unit.run.noise_id), allow_pickle=False) as labels:
        return AnswerKey(labels["train"], labels["validation"])


def _metrics_rows(
    plan: Plan, unit: Unit, about: dict[str, Json], failed: dict[str, dict[str, str]], is_mislabelled: np.ndarray
) -> list[Json]:
    """A row per line-up and detector; scores that are averaged over runs get one, with the first run that has any."""
    rows = []
    for line_up in plan.study.line_ups:
        for detector in (detector for detector in line_up.detectors if detector in unit.detectors):
            row = about | {
                "line_up": line_up.name,
                "detector": detector.label,
                "runs_averaged": 1,
                "epochs_used": detector.epochs_used(unit.run.training.epochs),
                "auroc": None,
                "auprc": None,
                "seconds": None,
                "status": "ok",
                "reason": "",
            }
            if detector.label in failed[unit.run.run_id]:
                rows.append(row | {"status": "failed", "reason": failed[unit.run.run_id][detector.label]})
                continue
            siblings = [other for other in plan.units if _differ_in_training_seed_only(unit, other)]
            scored = [other for other in siblings if detector.label not in failed[other.run.run_id]]
            runs = scored if detector.averages_runs else [unit]
            if unit is runs[0]:
                rows.append(row | {"runs_averaged": len(runs)} | _judged(detector, runs, is_mislabelled))
    return rows


def _judged(detector: Detector, runs: list[Unit], is_mislabelled: np.ndarray) -> dict[str, Json]:
    """The metrics of a detector's scores, averaged over the runs."""
    read = [read_scores(run.score_file(detector)) for run in runs]
    seconds = {"seconds": float(np.mean([seconds for _, seconds in read]))}
    undefined = why_undefined(is_mislabelled)
    if undefined:
        return seconds | {"status": "undefined", "reason": undefined}
    return seconds | detection_metrics(is_mislabelled, np.mean([scores for scores, _ in read], axis=0))


def _accuracy(unit: Unit, key: AnswerKey) -> dict[str, float]:
    history = pd.DataFrame(read_history(unit.folder))
    predicted_EN = np.load(unit.folder / "validation_predictions.npy", allow_pickle=False)
    clean_validation = (predicted_EN == key.clean_validation_labels).mean(axis=1)
    return accuracy_metrics(
        history["test_accuracy"].to_numpy(), history["validation_accuracy"].to_numpy(), clean_validation
    )


def _trust_histogram(recipe: LiNCRecipe, record: RunRecord, key: AnswerKey, about: dict[str, Json]) -> list[Json]:
    """Trust after the warm-up, binned, for truly clean and truly mislabelled samples."""
    trust = record[TRUST][min(recipe.warm_up, record.epochs) - 1]
    edges = np.histogram_bin_edges(trust.astype(np.float64), bins=HISTOGRAM_BINS)
    is_mislabelled = key.is_mislabelled(record.given_labels)
    counts = {
        "clean": np.histogram(trust[~is_mislabelled], edges)[0],
        "mislabelled": np.histogram(trust[is_mislabelled], edges)[0],
    }
    return [
        about | {"subset": subset, "from": float(edges[i]), "to": float(edges[i + 1]), "count": int(counts[subset][i])}
        for subset in counts
        for i in range(HISTOGRAM_BINS)
    ]


def merge_rows(
    results: ResultsFolder, table: str, rows: list[Json], is_replaced: Callable[[pd.DataFrame], pd.Series]
) -> None:
    """Adds rows to a table of the results folder, in the place of those that `is_replaced` picks."""
    if not rows:
        return
    path = results.table_data(table)
    new = _as_text(pd.DataFrame(rows).to_csv(index=False))
    with locked(results.locks, "tables"):
        old = _as_text(path.read_text()) if path.exists() and path.stat().st_size else new[:0]
        kept = old[~is_replaced(old)] if {"study", "run"} <= set(old) else old[:0]
        merged = pd.concat([kept, new]).fillna("").sort_values(["study", "run"], kind="stable")
        write_text(path, merged.to_csv(index=False, lineterminator="\n"))


def _as_text(csv: str) -> pd.DataFrame:
    """Numbers as they are written, so that merging changes no byte of a row it keeps."""
    return pd.read_csv(StringIO(csv), dtype=str, keep_default_na=False)


def read_table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() and path.stat().st_size else pd.DataFrame()
