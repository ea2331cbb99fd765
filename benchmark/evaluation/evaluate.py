"""From records and scores to the small committed files; the only reader of the answer keys."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.data.noise import AnswerKey
from benchmark.disk.schema import ABOUT_RUNS, STUDY_TABLES
from benchmark.disk.tables import merge_rows, read_table
from benchmark.evaluation import figure_data
from benchmark.evaluation.figure_data import Judged
from benchmark.identity import Json, options_of
from benchmark.record import TRAIN_LOGITS
from benchmark.record.run_record import open_record, read_history, read_metadata
from benchmark.runs.pipeline import Outcome
from benchmark.runs.plan import Plan, Unit
from benchmark.runs.scores import read_scores
from benchmark.statistics.bootstrap import bootstrap_auroc, interval
from benchmark.statistics.metrics import accuracy_metrics, batch_mean_accuracy, detection_metrics, why_undefined
from benchmark.training import Recipe
from detectors import Detector
from detectors.linc import LiNC, LiNCRecipe

TABLES = tuple(table.name for table in STUDY_TABLES)
REFERENCE = LiNC()  # differences are taken to it
JUDGEMENT = (
    "auroc", "auroc_low", "auroc_high", "auprc", "auprc_chance", "precision_at_rate", "recall_1", "recall_5",
    "recall_10", "recall_20", "ties", "minus_linc", "minus_linc_low", "minus_linc_high", "seconds",
)  # fmt: skip
Rows = dict[str, list[Json]]
Truths = dict[Unit, np.ndarray]  # which labels of a run are wrong


def evaluate(plan: Plan, outcomes: list[Outcome]) -> None:
    """Writes this plan's rows into the results folder's tables, in the place of older rows of the same runs."""
    outcome_of = {outcome.run_id: outcome for outcome in outcomes}
    rows: Rows = {table: [] for table in TABLES}
    truths: Truths = {}
    entries = _entries(plan, outcome_of)
    for unit in (unit for unit in plan.units if outcome_of[unit.run.run_id].error is None):
        run = _judged(unit)  # one at a time: a system lets a process have so many files open
        truths[unit] = run.is_mislabelled
        rows["runs"].append(_about(plan, unit, truths) | _origin(unit))
        _add_run(rows, plan, unit, run, truths)
    for race in _races(entries):
        _add_race(rows, plan, race, truths)
    rows["metrics"] += [_unscored(plan, unit, outcome_of) for unit in plan.units if _is_lost(unit, outcome_of)]
    for entry in entries:
        _add_epochs(rows, plan, entry, truths)
    place = {unit.run.run_id: number for number, unit in enumerate(plan.units)}
    rows["metrics"].sort(key=lambda row: place[row["run"]])
    stale = _stale_runs(plan)
    for table, new in rows.items():
        merge_rows(plan.sources.results, table, new, lambda old: _is_replaced(plan, old) | old["run"].isin(stale))


@dataclass(frozen=True)
class Entry:
    """A detector of a line-up on a run, or on several runs whose scores are averaged."""

    line_up: str
    detector: Detector
    runs: tuple[Unit, ...]
    failure: str | None = None

    @property
    def unit(self) -> Unit:
        return self.runs[0]

    def read(self) -> tuple[np.ndarray, float]:
        """Scores, and seconds of scoring a run."""
        read = [read_scores(run.score_file(self.detector)) for run in self.runs]
        return np.mean([scores for scores, _ in read], axis=0), float(np.mean([seconds for _, seconds in read]))


def _entries(plan: Plan, outcome_of: dict[str, Outcome]) -> list[Entry]:
    """Scores that are averaged over runs make one entry, with the first run that has any."""
    averaged: dict[tuple[object, Detector], list[Unit]] = defaultdict(list)
    for unit in plan.units:
        for detector in unit.detectors:
            if detector.averages_runs and _failure(unit, detector, outcome_of) is None:
                averaged[unit.run.all_but_training_seed, detector].append(unit)
    entries = []
    for unit in plan.units:
        for line_up in plan.study.line_ups:
            for detector in (detector for detector in line_up.detectors if detector in unit.detectors):
                failure = _failure(unit, detector, outcome_of)
                runs = (averaged[unit.run.all_but_training_seed, detector] if failure is None else []) or [unit]
                if unit is runs[0]:
                    entries.append(Entry(line_up.name, detector, tuple(runs), failure))
    return entries


def _failure(unit: Unit, detector: Detector, outcome_of: dict[str, Outcome]) -> str | None:
    """Why the detector has no scores of this run."""
    outcome = outcome_of[unit.run.run_id]
    return outcome.error if outcome.error is not None else outcome.failures.get(detector.label)


def _races(entries: list[Entry]) -> Iterable[list[Entry]]:
    """Entries that faced the same wrong labels with the same training seed, so that they can be compared in pairs."""
    races: dict[tuple[str, int, int], list[Entry]] = defaultdict(list)
    for entry in entries:
        run = entry.unit.run
        races[run.setting_id, run.noise.seed, run.training.seed].append(entry)
    return races.values()


def _add_race(rows: Rows, plan: Plan, race: list[Entry], truths: Truths) -> None:
    scored = [entry for entry in race if entry.failure is None]
    read = {entry: entry.read() for entry in scored}
    truth = truths[scored[0].unit] if scored else np.empty(0, dtype=bool)
    undefined = why_undefined(truth) if scored else None
    drawn = _drawn({entry.detector: read[entry][0] for entry in scored}, truth) if scored and not undefined else {}
    observed = next((_auroc(truth, read[entry][0]) for entry in scored if entry.detector == REFERENCE and drawn), None)
    for entry in race:
        row = _about(plan, entry.unit, truths) | {
            "line_up": entry.line_up,
            **_named(entry.detector),
            "runs_averaged": len(entry.runs),
            "epochs_used": entry.detector.epochs_used(entry.unit.run.training.epochs),
            **dict.fromkeys(JUDGEMENT),
            "status": "ok",
            "reason": "",
        }
        if entry.failure is not None:
            rows["metrics"].append(row | _failed(entry.failure))
            continue
        scores, seconds = read[entry]
        row["seconds"] = seconds
        if undefined:
            rows["metrics"].append(row | {"status": "undefined", "reason": undefined})
        else:
            judged = detection_metrics(truth, scores)
            rows["metrics"].append(row | judged | _uncertainty(entry.detector, judged["auroc"], drawn, observed))
    if scored and not undefined and plan.is_first_seed(scored[0].unit):
        _add_comparison(rows, plan, scored, {entry: read[entry][0] for entry in scored}, truth)


def _failed(reason: str | None) -> dict[str, Json]:
    return {"status": "failed", "reason": reason}


def _is_lost(unit: Unit, outcome_of: dict[str, Outcome]) -> bool:
    """It failed, and no detector's row would say so."""
    return outcome_of[unit.run.run_id].error is not None and not unit.detectors


def _unscored(plan: Plan, unit: Unit, outcome_of: dict[str, Outcome]) -> dict[str, Json]:
    """A row for a run that was to be trained for its accuracy alone."""
    about = _about(plan, unit, {}) | {"line_up": "training", "detector": unit.run.recipe_label}
    about |= {"detector_name": unit.run.recipe.name, "detector_options": _options(unit.run.recipe)}
    nothing = {"runs_averaged": 0, "epochs_used": 0, **dict.fromkeys(JUDGEMENT)}
    return about | nothing | _failed(outcome_of[unit.run.run_id].error)


def _drawn(scores_of: dict[Detector, np.ndarray], truth: np.ndarray) -> dict[Detector, np.ndarray]:
    """Each detector's AUROC in every bootstrap draw."""
    return dict(zip(scores_of, bootstrap_auroc(truth, np.stack(list(scores_of.values()))), strict=True))


def _auroc(truth: np.ndarray, scores: np.ndarray) -> float:
    return detection_metrics(truth, scores)["auroc"]


def _uncertainty(
    detector: Detector, auroc: float, drawn: dict[Detector, np.ndarray], of_linc: float | None
) -> dict[str, float]:
    """Within the run: the interval of the AUROC, and its difference to LiNC's with a paired interval."""
    low, high = interval(drawn[detector])
    columns = {"auroc_low": low, "auroc_high": high}
    if of_linc is not None and detector != REFERENCE:
        low, high = interval(drawn[detector] - drawn[REFERENCE])
        columns |= {"minus_linc": auroc - of_linc, "minus_linc_low": low, "minus_linc_high": high}
    return columns


def _add_comparison(
    rows: Rows,
    plan: Plan,
    entries: list[Entry],
    scores: dict[Entry, np.ndarray],
    truth: np.ndarray,
) -> None:
    """ROC curves, and how far detectors agree: of the first seed only, since the files are committed."""
    for entry in entries:
        of_entry = _key(plan, entry.unit) | {"line_up": entry.line_up, "detector": entry.detector.label}
        rows["roc"] += [of_entry | point for point in figure_data.roc(truth, scores[entry])]
    for line_up in dict.fromkeys(entry.line_up for entry in entries):
        members = {entry.detector.label: scores[entry] for entry in entries if entry.line_up == line_up}
        of_line_up = _key(plan, entries[0].unit) | {"line_up": line_up}
        rows["agreement"] += [of_line_up | pair for pair in figure_data.agreement(members)]


def _add_run(rows: Rows, plan: Plan, unit: Unit, run: Judged, truths: Truths) -> None:
    """What is known of a run beside detection; recipes that only serve a detector have no accuracy of their own."""
    recipe, key = unit.run.recipe, _key(plan, unit)
    if recipe not in plan.study.recipes:
        return
    rows["accuracy"].append(_about(plan, unit, truths) | _accuracy(unit, run.key))
    rows["curves"] += [key | row for row in read_history(unit.folder)]
    if isinstance(recipe, LiNCRecipe):
        rows["trust_histograms"] += [key | row for row in figure_data.trust_histogram(run, recipe)]
        rows["mixtures"] += [key | row for row in figure_data.mixture_components(run)]
        rows["corrections"] += [key | row for row in figure_data.corrections(run, recipe)]
    if TRAIN_LOGITS in run.record and plan.is_first_seed(unit):
        rows["data_maps"] += [key | row for row in figure_data.data_map(run)]


def _named(detector: Detector) -> dict[str, Json]:
    return {"detector": detector.label, "detector_name": detector.name, "detector_options": _options(detector)}


def _options(value: Detector | Recipe) -> str:
    """What differs from its defaults, as JSON; empty if nothing does."""
    options = options_of(value)
    return json.dumps(options) if options else ""


def _add_epochs(rows: Rows, plan: Plan, entry: Entry, truths: Truths) -> None:
    """AUROC by epochs read."""
    if entry.failure is not None or not figure_data.reads_a_history(entry.detector):
        return
    if why_undefined(truths[entry.unit]):
        return
    points = figure_data.auc_by_epochs([_judged(unit) for unit in entry.runs], entry.detector)
    of_entry = _key(plan, entry.unit) | {"line_up": entry.line_up, "detector": entry.detector.label}
    rows["auc_by_epochs"] += [of_entry | point for point in points]


def _judged(unit: Unit) -> Judged:
    with np.load(unit.sources.results.answer_key(unit.run.noise_id), allow_pickle=False) as labels:
        return Judged(open_record(unit.folder), AnswerKey(labels["train"], labels["validation"]))


def _stale_runs(plan: Plan) -> set[str]:
    """Runs of this study that stand for the same thing as one of the plan's, but were made by another version of it."""
    runs = read_table(plan.sources.results, "runs")
    alike = ["setting", "noise_seed", "training_seed", "recipe"]
    planned = {(u.run.setting_id, u.run.noise.seed, u.run.training.seed, u.run.recipe_label) for u in plan.units}
    own = runs[runs["study"] == plan.study.name]
    same = [tuple(row) in planned for row in own[alike].itertuples(index=False)]
    return set(own.loc[same, "run"]) - {unit.run.run_id for unit in plan.units}


def _is_replaced(plan: Plan, old: pd.DataFrame) -> pd.Series:
    """All rows of a study that was run as it is; of a modified one, those of its runs and detectors."""
    of_plan = old["run"].isin([unit.run.run_id for unit in plan.units])
    if "study" not in old:
        return of_plan
    replaced = old["study"] == plan.study.name
    if plan.study.is_modified:
        replaced &= of_plan
        if "detector" in old:
            replaced &= old["detector"].isin([detector.label for detector in plan.study.detectors])
    return replaced


def _key(plan: Plan, unit: Unit) -> dict[str, Json]:
    """Rows that are many say only which run they are of; the table of runs says the rest (`join_runs`)."""
    return {"study": plan.study.name, "run": unit.run.run_id}


def _about(plan: Plan, unit: Unit, truths: Truths) -> dict[str, Json]:
    run = unit.run
    values = {
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
        "recipe_options": _options(run.recipe),
        "setting": run.setting_id,
        "protocol": run.protocol_id,
        "true_rate": float(truths[unit].mean()) if unit in truths else None,
    }
    return _key(plan, unit) | {column: values[column] for column in ABOUT_RUNS}


def _origin(unit: Unit) -> dict[str, Json]:
    """With what a run was made: the settings that are not in every table, the code, the libraries, the time."""
    about = read_metadata(unit.folder)
    settings, versions = about["settings"], about["versions"]
    return {
        "weights": settings["backbone"]["weights"],
        "path": about["path"],
        "seconds": round(about["seconds"]["whole run"], 1),
        "commit": about["commit"],
        "machine": about["machine"],
        **{library: versions[library] for library in ("python", "torch", "timm", "numpy", "scikit-learn", "medmnist")},
    }


def _accuracy(unit: Unit, key: AnswerKey) -> dict[str, float]:
    history = pd.DataFrame(read_history(unit.folder))
    with np.load(unit.sources.results.given_labels(unit.run.noise_id), allow_pickle=False) as given:
        test = given["test"]
    predicted = {
        split: np.load(unit.folder / f"{split}_predictions.npy", allow_pickle=False) for split in ("validation", "test")
    }
    batch_means = batch_mean_accuracy(predicted["test"] == test, unit.run.training.batch_size)
    return accuracy_metrics(
        history["test_accuracy"].to_numpy(),
        history["validation_accuracy"].to_numpy(),
        (predicted["validation"] == key.clean_validation_labels).mean(axis=1),
    ) | {"best_batch_mean": float(batch_means.max()), "last_batch_mean": float(batch_means[-1])}
