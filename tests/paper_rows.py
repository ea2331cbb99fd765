"""Made-up rows of studies on the paper's data sets, for the tests of what is said about the paper."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import join_runs, read_table
from benchmark.paper import numbers as paper

Row = dict[str, Any]
Named = str | tuple[str, str]  # a recipe or detector, and its changed options as JSON

SETTING = {
    "study": "ablation", "noise": "symmetric", "classes": 2, "samples": 546, "learning_rate": 5e-4,
    "weight_decay": 1e-4, "batch_size": 128, "image_size": 64, "backbone": "tf_efficientnet_lite0", "epochs": 70,
    "noise_seed": 0, "images": "cached", "head_init": "small", "warm_up_steps": 0, "clip_norm": 0,
}  # fmt: skip
AUROCS: dict[Named, float] = {
    "LiNC": 0.93, "AUM": 0.96, "DataMaps": 0.9, "EL2N": 0.91, "forgetting": 0.6, "post-hoc trust": 0.935,
}  # fmt: skip


def changed(name: str, **options: object) -> Named:
    return name, json.dumps(options)


def _parts(name: Named) -> tuple[str, str, str]:
    """Name, options and label."""
    plain, options = (name, "") if isinstance(name, str) else name
    return plain, options, f"{plain} ({options})" if options else plain


def run(dataset: str, rate: float, recipe: Named, seed: int = 0, **setting: Any) -> Row:
    about = SETTING | setting
    name, options, label = _parts(recipe)
    where = f"{dataset}-{rate}-{about['noise']}-{about['batch_size']}-{about['learning_rate']}"
    recipes = {"recipe": label, "recipe_name": name, "recipe_options": options}
    names = {"dataset": dataset, "run": f"{where}-{label}-{seed}", "setting": where, "protocol": str(about["noise"])}
    return {"rate": rate, "training_seed": seed} | names | recipes | about


def accuracy(dataset: str, rate: float, recipe: Named, best: float, last: float, seed: int = 0, **setting: Any) -> Row:
    values = {"best_test": best, "last_test": last, "best_batch_mean": best, "last_batch_mean": last}
    values |= {"test_by_noisy_validation": best, "true_rate": rate / 2}
    return run(dataset, rate, recipe, seed, **setting) | values


def like_the_paper(dataset: str, name: str | None = None, **setting: Any) -> list[Row]:
    """Two seeds in which every accuracy is the paper's own."""
    cells = paper.noisy_accuracy().query(f"dataset == '{name or dataset}'").itertuples()
    return [
        accuracy(dataset, cell.rate, cell.recipe, cell.best, cell.last, seed, **setting)
        for cell, seed in product(cells, (0, 1))
    ]


def detection(dataset: str, aurocs: dict[Named, float], seeds: tuple[int, ...] = (0, 1), **setting: Any) -> list[Row]:
    rows = []
    for (named, auroc), seed in product(aurocs.items(), seeds):
        name, options, label = _parts(named)
        recipe = ("linc", options) if name == "LiNC" and options else "linc" if name == "LiNC" else "standard"
        scores = {"detector": label, "detector_name": name, "detector_options": options, "line_up": "original"}
        lead = auroc - aurocs["LiNC"]
        differences = {"minus_linc": lead, "minus_linc_low": lead - 0.01, "minus_linc_high": lead + 0.01}
        numbers = {"status": "ok", "reason": "", "runs_averaged": 1, "auroc": auroc, "precision_at_rate": 0.8}
        rows.append(run(dataset, 0.2, recipe, seed, **setting) | scores | differences | numbers)
    return rows


def redrawn(metrics: list[Row]) -> list[Row]:
    """The AUROCs of rows of metrics, as if every draw of samples had given the same."""
    return [row | {"auroc": round(1e4 * row["auroc"])} for row in metrics for _ in range(3)]


def by_epochs(dataset: str, detector: str, aurocs: dict[int, float]) -> list[Row]:
    about = run(dataset, 0.2, "standard") | {"line_up": "original", "detector": detector}
    about |= {"detector_name": detector, "detector_options": ""}
    return [about | {"epochs_read": epochs, "auroc": auroc} for epochs, auroc in aurocs.items()]


def tables(**rows: list[Row]) -> dict[str, pd.DataFrame]:
    """The tables that are read, joined with their runs; without rows a table is empty and has its columns."""
    nowhere = ResultsFolder(Path("there are no results here"))
    runs = read_table(nowhere, "runs")
    names = ("runs", "metrics", "accuracy", "auc_by_epochs", "auroc_draws", "curves", "corrections")
    found = {name: join_runs(read_table(nowhere, name), runs) for name in names}
    named = ("auc_by_epochs", "auroc_draws")
    found |= {name: found[name].assign(detector_name="", detector_options="") for name in named}
    return found | {
        name: pd.DataFrame(some).reindex(columns=[*found[name].columns]) for name, some in rows.items() if some
    }
