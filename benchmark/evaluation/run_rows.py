"""The rows of one run beside detection: its settings, accuracy, curves, and what its recipe leaves behind."""

import json
from typing import cast

import numpy as np
import pandas as pd

from benchmark.data import AnswerKey
from benchmark.disk import provenance_columns
from benchmark.evaluation.figure_data import JudgedRun, corrections, data_map, mixture_components, trust_histogram
from benchmark.identity import Json, options_of
from benchmark.record import TRAIN_LOGITS, open_record, read_history, read_metadata
from benchmark.runs import Plan, Sources, Unit
from benchmark.statistics.metrics import accuracy_metrics, batch_mean_accuracy
from benchmark.training import Recipe
from detectors import Detector
from detectors.linc import TRUST, LiNCRecipe

Rows = dict[str, list[Json]]  # by table


def judged_run(unit: Unit, sources: Sources) -> JudgedRun:
    with np.load(sources.results.answer_key(unit.run.noise_id), allow_pickle=False) as labels:
        return JudgedRun(open_record(sources.record(unit)), AnswerKey(labels["train"], labels["validation"]))


def run_rows(plan: Plan, unit: Unit, run: JudgedRun) -> Rows:
    """Recipes that only serve a detector have no accuracy of their own."""
    recipe, key, about = unit.run.recipe, run_key(plan, unit), describe_run(plan, unit, run.is_mislabelled)
    rows: Rows = {"runs": [about | _origin(unit, plan.sources)]}
    if recipe not in plan.study.recipes:
        return rows
    history = read_history(plan.sources.record(unit))
    rows["accuracy"] = [about | _accuracy(unit, plan.sources, history, run.key)]
    rows["curves"] = [key | row for row in history]
    if TRUST in recipe.leaves:
        trusting = cast(LiNCRecipe, recipe)
        rows["trust_histograms"] = [key | row for row in trust_histogram(run, trusting)]
        rows["mixtures"] = [key | row for row in mixture_components(run)]
        rows["corrections"] = [key | row for row in corrections(run, trusting)]
    if TRAIN_LOGITS in run.record and plan.is_first_seed(unit):
        rows["data_maps"] = [key | row for row in data_map(run)]
    return rows


def run_key(plan: Plan, unit: Unit) -> dict[str, Json]:
    """Tables with many rows only name the run; the table of runs describes it (`join_runs`)."""
    return {"study": plan.study.name, "run": unit.run_id}


def describe_run(plan: Plan, unit: Unit, is_mislabelled: np.ndarray | None) -> dict[str, Json]:
    run = unit.run
    return run_key(plan, unit) | {
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
        "learning_rate": run.training.learning_rate,
        "weight_decay": run.training.weight_decay,
        "images": "augmented" if run.training.augment else "plain path" if run.training.plain else "cached",
        "recipe": run.recipe_label,
        "recipe_name": run.recipe.name,
        "recipe_options": options_text(run.recipe),
        "setting": run.setting_id,
        "protocol": run.protocol_id,
        "true_rate": None if is_mislabelled is None else float(is_mislabelled.mean()),
    }


def options_text(value: Detector | Recipe) -> str:
    """The fields that differ from their defaults, as JSON; empty if none does."""
    options = options_of(value)
    return json.dumps(options) if options else ""


def _origin(unit: Unit, sources: Sources) -> dict[str, Json]:
    """Weights, code, libraries, machine and time of a run."""
    about = read_metadata(sources.record(unit))
    return {
        "weights": about["settings"]["backbone"]["weights"],
        "path": about["path"],
        "seconds": round(about["seconds"]["whole run"], 1),
        **provenance_columns(about),
    }


def _accuracy(unit: Unit, sources: Sources, history: Json, key: AnswerKey) -> dict[str, float]:
    by_epoch, folder = pd.DataFrame(history), sources.record(unit)
    with np.load(sources.results.given_labels(unit.run.noise_id), allow_pickle=False) as given:
        test = given["test"]
    predicted = {
        split: np.load(folder / f"{split}_predictions.npy", allow_pickle=False) for split in ("validation", "test")
    }
    batch_means = batch_mean_accuracy(predicted["test"] == test, unit.run.training.batch_size)
    return accuracy_metrics(
        by_epoch["test_accuracy"].to_numpy(),
        by_epoch["validation_accuracy"].to_numpy(),
        (predicted["validation"] == key.clean_validation_labels).mean(axis=1),
    ) | {"best_batch_mean": float(batch_means.max()), "last_batch_mean": float(batch_means[-1])}
