"""From records and scores to the small committed files; the only reader of the answer keys."""

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
from benchmark.scores import has_scores, read_scores
from benchmark.storage import locked, write_text
from detectors.linc import TRUST, TRUST_MIXTURE, LiNCRecipe

TABLES = ("metrics", "accuracy", "curves", "trust_histograms", "mixtures")
HISTOGRAM_BINS = 40


def evaluate(plan: Plan, outcomes: list[Outcome]) -> None:
    """Writes this plan's rows into the results folder's tables, in the place of older rows of the same runs."""
    outcome_of = {outcome.run_id: outcome for outcome in outcomes}
    rows: dict[str, list[Json]] = {table: [] for table in TABLES}
    trained = [unit for unit in plan.units if outcome_of[unit.run.run_id].error is None]
    for unit in plan.units:
        outcome, about = outcome_of[unit.run.run_id], {"study": plan.study.name, **_describe(unit)}
        if outcome.error is not None:
            failed = {detector.label: outcome.error for detector in unit.detectors}
            rows["metrics"] += _metrics_rows(plan, unit, about, failed)
            continue
        record, key = open_record(unit.folder), _answer_key(unit)
        about["true_rate"] = float(key.is_mislabelled(record.given_labels).mean())
        siblings = [other for other in trained if _differ_in_training_seed_only(unit, other)]
        rows["metrics"] += _metrics_rows(plan, unit, about, outcome.failures, record, key, siblings)
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
        merge_rows(plan.sources.results, table, new, None if plan.study.is_modified else plan.study.name)


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
    plan: Plan,
    unit: Unit,
    about: dict[str, Json],
    failed: dict[str, str],
    record: RunRecord | None = None,
    key: AnswerKey | None = None,
    siblings: list[Unit] | None = None,
) -> list[Json]:
    """A row per line-up and detector; scores that are averaged over runs get one row, with the first run."""
    rows = []
    for line_up in plan.study.line_ups:
        for detector in (detector for detector in line_up.detectors if detector in unit.detectors):
            runs = siblings if detector.averages_runs and siblings else [unit]
            if unit is not runs[0]:
                continue
            row = about | {
                "line_up": line_up.name,
                "detector": detector.label,
                "runs_averaged": len(runs),
                "epochs_used": detector.epochs_used(unit.run.training.epochs),
                "auroc": None,
                "auprc": None,
                "seconds": None,
                "status": "ok",
                "reason": "",
            }
            if detector.label in failed or record is None or key is None:
                rows.append(row | {"status": "failed", "reason": failed[detector.label]})
                continue
            read = [read_scores(run.score_file(detector)) for run in runs if has_scores(run, detector)]
            scores, row["seconds"] = np.mean([one for one, _ in read], axis=0), float(np.mean([s for _, s in read]))
            is_mislabelled = key.is_mislabelled(record.given_labels)
            undefined = why_undefined(is_mislabelled)
            outcome = {"status": "undefined", "reason": undefined} if undefined else None
            rows.append(row | (outcome or detection_metrics(is_mislabelled, scores)))
    return rows


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


def merge_rows(results: ResultsFolder, table: str, rows: list[Json], renewed_study: str | None) -> None:
    """Rows of other runs, studies and detectors stay; the same ones, and all of a study run as it is, are replaced."""
    if not rows:
        return
    path = results.table_data(table)
    new = _as_text(pd.DataFrame(rows).to_csv(index=False))
    key = [column for column in ("study", "run", "line_up", "detector") if column in new]
    with locked(results.locks, "tables"):
        old = _as_text(path.read_text()) if path.exists() and path.stat().st_size else new[:0]
        old = old[old["study"] != renewed_study] if set(key) <= set(old) else old[:0]
        kept = old[~old.set_index(key).index.isin(new.set_index(key).index)]
        merged = pd.concat([kept, new]).fillna("").sort_values(["study", "run"], kind="stable")
        write_text(path, merged.to_csv(index=False, lineterminator="\n"))


def _as_text(csv: str) -> pd.DataFrame:
    """Numbers as they are written, so that merging changes no byte of a row it keeps."""
    return pd.read_csv(StringIO(csv), dtype=str, keep_default_na=False)


def read_table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() and path.stat().st_size else pd.DataFrame()
