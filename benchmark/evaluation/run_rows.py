"""The rows of one run: its settings, accuracy and curves, and the histograms of what its recipe leaves behind."""

import json
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd

from benchmark.data.duplicates import TRAIN, Duplicates, duplicates_file, read_duplicates
from benchmark.disk import open_array, open_arrays, provenance_columns
from benchmark.evaluation.trust import first_batches_share, first_gradients, log_mixture
from benchmark.identity import Json, label_of, options_of
from benchmark.noise import AnswerKey
from benchmark.record import TRAIN_SUMMARY, RunRecord, open_record, read_history, read_metadata
from benchmark.runs import Plan, Sources, Unit
from benchmark.statistics.metrics import accuracy_metrics, batch_mean_accuracy, correction_metrics
from benchmark.training import Recipe
from detectors import Detector
from detectors.linc import COMPONENT, CORRECTED_LABELS, TRUST, TRUST_MIXTURE, LiNCRecipe
from detectors.logits import given_probability

Rows = dict[str, list[Json]]  # by table
BINS, MAP_BINS = 40, 32


@dataclass(frozen=True)
class JudgedRun:
    """A run with its answer key."""

    record: RunRecord
    key: AnswerKey

    @property
    def is_mislabelled(self) -> np.ndarray:
        return self.key.is_mislabelled(self.record.given_labels)

    @property
    def subsets(self) -> dict[str, np.ndarray]:
        return {"clean": ~self.is_mislabelled, "mislabelled": self.is_mislabelled}


def judged_run(unit: Unit, sources: Sources) -> JudgedRun:
    return JudgedRun(open_record(sources.record(unit)), AnswerKey.read(sources.results.answer_key(unit.run.noise_id)))


def run_rows(plan: Plan, unit: Unit, run: JudgedRun) -> Rows:
    """Recipes that only serve a detector, and trainings that only serve an average, have no accuracy of their own."""
    recipe, about = unit.run.recipe, describe_run(plan, unit, run.is_mislabelled)
    rows: Rows = {"runs": [about | _origin(unit, plan.sources)]}
    if recipe not in plan.study.recipes or not unit.trainings:
        return rows
    history = read_history(plan.sources.record(unit))
    rows["accuracy"] = [about | _accuracy(unit, plan.sources, history, run.key)]
    long_tables = {"curves": history}
    if TRUST in recipe.leaves:
        trusting = cast(LiNCRecipe, recipe)
        long_tables["trust_histograms"] = _trust_histogram(run, trusting)
        long_tables["mixtures"] = _mixture_components(run)
        long_tables["corrections"] = _corrections(run, trusting, unit)
        if plan.is_first_seed(unit):
            long_tables["first_batches"] = first_gradients(run.record, trusting, unit.run.training)
    if TRAIN_SUMMARY in run.record and plan.is_first_seed(unit):
        long_tables["data_maps"] = _data_map(run)
    key = run_key(plan, unit)
    return rows | {table: [key | row for row in long_rows] for table, long_rows in long_tables.items()}


def run_key(plan: Plan, unit: Unit) -> dict[str, Json]:
    """Tables with many rows only name the run; the table of runs describes it (`join_runs`)."""
    return {"study": plan.study.name, "run": unit.run_id}


def describe_run(plan: Plan, unit: Unit, is_mislabelled: np.ndarray | None) -> dict[str, Json]:
    run = unit.run
    return run_key(plan, unit) | {
        "dataset": run.dataset,
        "classes": unit.info.num_classes,
        "samples": unit.info.sizes[0],
        "noise": run.noise.title,
        "rate": run.noise.rate,
        "noise_seed": run.noise.seed,
        "training_seed": run.training.seed,
        "backbone": run.backbone.name,
        "image_size": run.backbone.image_size,
        "epochs": run.training.epochs,
        "batch_size": run.training.batch_size,
        "learning_rate": run.training.learning_rate,
        "weight_decay": run.training.weight_decay,
        "head_init": run.training.head_init,
        "warm_up_steps": run.training.warm_up_steps,
        "clip_norm": run.training.clip_norm,
        "images": "augmented" if run.training.augment else "plain path" if run.training.plain else "cached",
        "recipe": label_of(run.recipe),
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
        "date": about.get("date", ""),
    }


def _accuracy(unit: Unit, sources: Sources, history: Json, key: AnswerKey) -> dict[str, float]:
    by_epoch, folder = pd.DataFrame(history), sources.record(unit)
    with open_arrays(sources.results.given_labels(unit.run.noise_id)) as given:
        test = given["test"]
    predicted = {split: open_array(folder / f"{split}_predictions.npy") for split in ("validation", "test")}
    is_correct_EN = predicted["test"] == test
    batch_means = batch_mean_accuracy(is_correct_EN, unit.run.training.batch_size)
    return accuracy_metrics(
        by_epoch["test_accuracy"].to_numpy(),
        by_epoch["validation_accuracy"].to_numpy(),
        (predicted["validation"] == key.clean_validation_labels).mean(axis=1),
    ) | {
        "best_batch_mean": float(batch_means.max()),
        "last_batch_mean": float(batch_means[-1]),
        **_by_class(is_correct_EN[-1], test, key.clean_labels),
        **_without_twins(is_correct_EN, read_duplicates(duplicates_file(sources.results, unit.info), unit.info.sizes)),
    }


def _by_class(is_correct_N: np.ndarray, test_N: np.ndarray, training_N: np.ndarray) -> dict[str, float]:
    """Mean recall over the classes of the test split, and that of the one with the fewest training samples."""
    recall = {label: float(is_correct_N[test_N == label].mean()) for label in np.unique(test_N)}
    rarest = min(recall, key=lambda label: int((training_N == label).sum()))
    return {"last_balanced": float(np.mean(list(recall.values()))), "last_rarest": recall[rarest]}


def _without_twins(is_correct_EN: np.ndarray, found: Duplicates | None) -> dict[str, float]:
    """Test accuracy on images that have no duplicate in training; missing if that is not known or there are none."""
    if found is None or (has_twin := found.test_twins(TRAIN)).all():
        return {}
    accuracy_E = is_correct_EN[:, ~has_twin].mean(axis=1)
    return {"best_test_without_twins": float(accuracy_E.max()), "last_test_without_twins": float(accuracy_E[-1])}


def _corrections(run: JudgedRun, recipe: LiNCRecipe, unit: Unit) -> list[Json]:
    """What the recipe corrected, over all samples and for each true class; empty if training ended before that.

    Where it abstained, the rows say that nothing was corrected.
    """
    if (np.asarray(run.record[COMPONENT]) < 0).all() and not recipe.may_abstain:
        return []
    record, clean = run.record, run.key.labels_that_are_right
    arrays = record.given_labels, clean, np.asarray(record[CORRECTED_LABELS]), np.asarray(record[COMPONENT])
    phases = {"warm_up": recipe.warm_up, "soft_epochs": recipe.soft_epochs}
    groups = {"all": np.ones(len(clean), dtype=bool)} | {
        str(label): clean == label for label in np.unique(clean[clean >= 0])
    }
    rows: list[Json] = [
        phases | {"class": name, "in_class": int(members.sum())} | correction_metrics(*(a[members] for a in arrays))
        for name, members in groups.items()
    ]
    rows[0] |= first_batches_share(record, unit.run.training) | log_mixture(record, recipe, run.is_mislabelled)
    return rows


def _trust_histogram(run: JudgedRun, recipe: LiNCRecipe) -> list[Json]:
    """Trust after the warm-up, binned, for truly clean and truly mislabelled samples."""
    trust = run.record[TRUST][min(recipe.warm_up, run.record.epochs) - 1]
    edges = np.histogram_bin_edges(trust.astype(np.float64), bins=BINS)
    return [
        {"subset": subset, "from": float(low), "to": float(high), "count": int(count)}
        for subset, members in run.subsets.items()
        for low, high, count in zip(edges[:-1], edges[1:], np.histogram(trust[members], edges)[0], strict=True)
    ]


def _mixture_components(run: JudgedRun) -> list[Json]:
    return [
        {"component": index, "mean": mean, "standard_deviation": deviation, "weight": weight}
        for index, (mean, deviation, weight) in enumerate(np.asarray(run.record[TRUST_MIXTURE]).tolist())
        if weight
    ]


def _data_map(run: JudgedRun) -> list[Json]:
    """Mean and spread over epochs of the given label's probability, binned; cells without samples are left out."""

    def moments(labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
        probability_EB = given_probability(summary_EB)
        return np.stack([probability_EB.mean(axis=0), probability_EB.std(axis=0)], axis=1)

    confidence_N, variability_N = run.record.map_samples(moments, TRAIN_SUMMARY).T
    edges = np.linspace(0, 1, MAP_BINS + 1), np.linspace(0, 0.5, MAP_BINS + 1)
    rows: list[Json] = []
    for subset, members in run.subsets.items():
        counts = np.histogram2d(confidence_N[members], variability_N[members], edges)[0].astype(int)
        rows += [
            {"subset": subset, "confidence_from": low, "variability_from": left, "count": int(count)}
            for low, counts_of_row in zip(edges[0].tolist(), counts, strict=False)
            for left, count in zip(edges[1].tolist(), counts_of_row, strict=False)
            if count
        ]
    return rows
