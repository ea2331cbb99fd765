"""A small study that is made up: every table of it, in memory and as the CSV files of a results folder."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd

from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import ABOUT_RUNS, OF_STUDY, STUDY_TABLES, TABLES
from benchmark.disk.tables import merge_rows

Tables = dict[str, pd.DataFrame]
Row = dict[str, Any]
DATASETS, RATES, SEEDS = {"digits": 1259, "bloodmnist": 400}, (0.2, 0.5), (0, 1)
VOG = "VoG (at_epochs=(1, 3, 5), output=probability, per_class=False, high_is_clean=True)"
DETECTORS = {  # the recipe that each needs, and its AUROC
    "LiNC": ("linc", 0.97),
    "AUM": ("standard", 0.95),
    "EL2N": ("standard", 0.9),
    VOG: ("standard", 0.6),
    "confident learning": ("cross-validation", 0.93),
}
EPOCHS, WARM_UP, SOFT = 12, 3, 3
DRAWS = 20
STANDS_FOR = {str: "", int: 1, float: 0.5, bool: False}  # what a test does not look at


def made_up_study(
    datasets: dict[str, int] = DATASETS,
    rates: tuple[float, ...] = RATES,
    detectors: dict[str, tuple[str, float]] = DETECTORS,
    line_ups: tuple[str, ...] = ("original",),
) -> Tables:
    """All tables with all their columns, joined with what is known of the runs; averaged metrics apart."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[Row]] = {table.name: [] for table in STUDY_TABLES}
    for (dataset, samples), rate, seed in product(datasets.items(), rates, SEEDS):
        for recipe in ("standard", "linc", "cross-validation"):
            about = about_run(dataset, samples, rate, seed, recipe)
            for line_up, (name, (needs, level)) in product(line_ups, detectors.items()):
                if needs == recipe:
                    auroc = level - 0.2 * rate + rng.normal(0, 0.01)
                    _detector_rows(rows, about | {"line_up": line_up, "detector": name}, auroc, list(detectors))
            rows["runs"].append(about | {"seconds": 1800.0})
            if recipe != "cross-validation":
                _training_rows(rows, about, rng)
            if recipe == "linc":
                _trust_rows(rows, about, rng)
    tables = {table.name: _complete(pd.DataFrame(rows[table.name]), table.columns) for table in STUDY_TABLES}
    for name in ("duplicates", "label_errors", "wrong_labels"):
        tables[name] = _complete(pd.DataFrame({"dataset": list(datasets)}), TABLES[name].columns)
    better = tables["metrics"][["auroc", "auroc_low", "auroc_high"]].add(0.01).clip(upper=1)
    return tables | {"averaged": tables["metrics"].assign(runs_averaged=3, **better)}


def _complete(rows: pd.DataFrame, columns: dict[str, type]) -> pd.DataFrame:
    kinds = {**OF_STUDY, **ABOUT_RUNS, **columns}
    return rows.assign(**{name: STANDS_FOR[kind] for name, kind in kinds.items() if name not in rows})


def write_study(results: ResultsFolder, tables: Tables) -> None:
    together = {**tables, "metrics": pd.concat([tables["metrics"], tables["averaged"]])}
    for table in STUDY_TABLES:
        rows = together[table.name][list(table.columns)].to_dict("records")
        merge_rows(results, table.name, rows, lambda old: pd.Series(False, index=old.index))


def about_run(dataset: str, samples: int, rate: float, seed: int, recipe: str) -> Row:
    return {
        "study": "made-up", "run": f"{dataset}-{rate}-t{seed}-{recipe}", "dataset": dataset, "classes": 10,
        "samples": samples, "noise": "symmetric", "rate": rate, "noise_seed": 0, "training_seed": seed,
        "backbone": "tf_efficientnet_lite0", "image_size": 64, "epochs": EPOCHS, "batch_size": 64,
        "learning_rate": 5e-4, "weight_decay": 1e-4, "images": "cached", "head_init": "small",
        "warm_up_steps": 0, "clip_norm": 0, "recipe": recipe, "recipe_name": recipe,
        "recipe_options": "", "setting": f"{dataset}{rate}", "protocol": "p", "true_rate": rate,
    }  # fmt: skip


def _detector_rows(rows: dict[str, list[Row]], about: Row, auroc: float, detectors: list[str]) -> None:
    seed, name = about["training_seed"], about["detector"]
    numbers = {"auroc": auroc, "auroc_low": auroc - 0.01, "auroc_high": auroc + 0.01, "status": "ok", "reason": ""}
    named = {"detector_name": name.partition(" (")[0], "detector_options": '{"per_class": false}' * (name == VOG)}
    rows["metrics"].append(about | named | numbers)
    redrawn = np.random.default_rng(seed).normal(0, 0.005, DRAWS)  # the same samples for every detector
    rows["auroc_draws"] += [about | {"auroc": round(1e4 * (auroc + error))} for error in redrawn]
    if about["recipe"] != "cross-validation":
        rows["auc_by_epochs"] += [
            about | {"epochs_read": k, "auroc": 0.5 + (auroc - 0.5) * (1 - np.exp(-k / 2))}
            for k in range(1, EPOCHS + 1)
        ]
    if seed == 0:
        x = np.linspace(0, 1, 60)
        rows["roc"] += [
            about | {"false_positive_rate": a, "true_positive_rate": b}
            for a, b in zip(x, x ** ((1 - auroc) / auroc), strict=True)
        ]
        rows["agreement"] += [
            about
            | {"other": other, "rank_correlation": 0.9 - 0.08 * abs(detectors.index(name) - detectors.index(other))}
            for one, other in permutations(detectors, 2)
            if one == name
        ]


def _training_rows(rows: dict[str, list[Row]], about: Row, rng: np.random.Generator) -> None:
    epochs = np.arange(1, EPOCHS + 1)
    fall = 0.0 if about["recipe"] == "linc" else 0.4 * about["rate"]
    accuracy = 0.9 - 0.4 * np.exp(-epochs / 2) - fall * epochs / EPOCHS + rng.normal(0, 0.005, EPOCHS)
    rows["accuracy"].append(about | {"best_test": accuracy.max(), "last_test": accuracy[-1]})
    rows["curves"] += [about | {"epoch": k, "test_accuracy": a} for k, a in zip(epochs, accuracy, strict=True)]
    if about["recipe"] == "standard" and about["training_seed"] == 0:
        wrong = int(about["rate"] * about["samples"])
        for subset, count, centre in (("clean", about["samples"] - wrong, 0.85), ("mislabelled", wrong, 0.2)):
            confidence = rng.normal(centre, 0.12, count).clip(0, 0.999)
            variability = (0.4 * np.sqrt(confidence * (1 - confidence)) + rng.normal(0.05, 0.03, count)).clip(0, 0.499)
            counts, low, left = np.histogram2d(confidence, variability, 32, ((0, 1), (0, 0.5)))
            rows["data_maps"] += [
                about
                | {"subset": subset, "confidence_from": low[i], "variability_from": left[j], "count": int(counts[i, j])}
                for i, j in np.argwhere(counts)
            ]


def _trust_rows(rows: dict[str, list[Row]], about: Row, rng: np.random.Generator) -> None:
    wrong = int(about["rate"] * about["samples"])
    for subset, count, centre in (("clean", about["samples"] - wrong, 0.62), ("mislabelled", wrong, 0.42)):
        counts, edges = np.histogram(rng.normal(centre, 0.05, count), 40, (0.2, 0.8))
        rows["trust_histograms"] += [
            about | {"subset": subset, "from": edges[i], "to": edges[i + 1], "count": counts[i]} for i in range(40)
        ]
    rows["mixtures"] += [about | {"component": i, "mean": mean} for i, mean in enumerate((0.4, 0.52, 0.63))]
    rows["first_batches"] += [
        about | {"class": name, "batch": batch, "gradient": sign / batch}
        for name, sign in (("0", 1), ("1", -1))
        for batch in range(1, 6)
    ]
    rows["corrections"] += [
        about | {"warm_up": WARM_UP, "soft_epochs": SOFT, "class": name} for name in ("all", "0", "1")
    ]


def made_up_ablation() -> Tables:
    """One setting with three variants of LiNC, and with another batch size."""
    study = made_up_study({"digits": 1259}, (0.2,))
    for name in ("runs", "accuracy", "metrics"):
        rows = study[name]
        own = rows[rows["recipe"] == "linc"]
        variants = [_variant(own, epochs) for epochs in (2, 10, 20)]
        study[name] = pd.concat([rows, *variants])
    for name, rows in study.items():
        usual = rows[rows["recipe_options"] == ""]
        smaller = usual.assign(batch_size=32, setting=usual["setting"] + "-32", run=usual["run"] + "-32")
        study[name] = pd.concat([rows, smaller])
    return study


def _variant(rows: pd.DataFrame, epochs: int) -> pd.DataFrame:
    options = f'{{"warm_up": {epochs}}}'
    changed = rows.assign(recipe=f"linc (warm_up={epochs})", recipe_options=options, run=rows["run"] + f"-{epochs}")
    if "detector" in rows:
        changed = changed.assign(detector=f"LiNC (warm_up={epochs})", detector_options=options)
    return changed


def made_up_kinds() -> Tables:
    """Symmetric noise, noise under which the ranking of detectors turns over, and labels of people on one data set."""
    tables = made_up_study(DATASETS, (0.2,))
    kinds = {"symmetric": 1.0, "boundary": -1.0, "given:worse": 1.0}
    turned: dict[str, Any] = {}
    for name, rows in tables.items():
        if "noise" not in rows or name == "wrong_labels":
            continue
        parts = []
        for noise, sign in kinds.items():
            part = rows.assign(noise=noise, setting=rows["setting"] + noise, protocol=noise)
            part["run"] = part["run"] + noise
            if noise == "given:worse":
                part = part[part["dataset"] == "digits"].assign(dataset="cifar", rate=0.4)
            if "auroc" in part:
                scale = 10_000 if name == "auroc_draws" else 1
                part["auroc"] = (0.8 * scale + sign * (part["auroc"] - 0.8 * scale)).astype(part["auroc"].dtype)
            parts.append(part)
        turned[name] = pd.concat(parts, ignore_index=True)
    accuracy = turned["accuracy"]
    gain = np.where(accuracy["recipe_name"] == "linc", np.where(accuracy["noise"] == "boundary", -0.03, 0.05), 0.0)
    turned["accuracy"] = accuracy.assign(last_test=0.7 + gain, last_balanced=0.6 + gain, last_rarest=0.4 - gain)
    confusion = [(0, 0, 80), (1, 1, 70), (0, 1, 15), (1, 0, 5)]
    turned["wrong_labels"] = pd.DataFrame(
        {"dataset": "digits", "data": "d", "noise": noise, "rate": 0.2, "noise_seed": 0, "samples": 170, "classes": 2,
         "true_rate": 0.118, "chance_mean": 0.2, "chance_spread": 0.1, "in_hardest_tenth": 0.3,
         "correct": correct, "given": given, "count": count}
        for noise in ("symmetric", "boundary") for correct, given, count in confusion
    )  # fmt: skip
    return tables | turned
