"""Which rows can be compared with the paper, and with each other."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmark.disk.tables import join_runs
from benchmark.paper import numbers as paper
from benchmark.reference import BASELINE_RECIPE, RECIPE
from benchmark.wording import dataset_title, network_title, paper_dataset
from detectors import DETECTORS

Tables = Mapping[str, pd.DataFrame]
READ = ("runs", "metrics", "accuracy", "auc_by_epochs", "curves", "corrections")  # tables of all studies
SEEDS = ["noise_seed", "training_seed"]
EARLY = (5, 10)  # epochs: the length of LiNC's warm-up, and that with its soft correction
FEWEST_DETECTORS = 5  # that make a comparison of detectors
HYPER_PARAMETERS: dict[str, Any] = {"epochs": 70, "batch_size": 128, "learning_rate": 5e-4, "weight_decay": 1e-4}
NETWORK: dict[str, Any] = {"backbone": "vit_small_patch8_224.dino", "image_size": 224}
_KEYS = ("run", "line_up", "detector", "epochs_read", "class", "epoch", "component")


def of_the_paper(tables: Tables, studies: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The rows of these studies on the paper's data sets, or on files that stand for them; every run once."""
    found = {name: _on_its_datasets(join_runs(tables[name], tables["runs"]), studies) for name in READ}
    detectors = tables["metrics"][["detector", "detector_name", "detector_options"]].drop_duplicates("detector")
    return found | {"auc_by_epochs": found["auc_by_epochs"].merge(detectors, on="detector", how="left")}


def _on_its_datasets(rows: pd.DataFrame, studies: Sequence[str]) -> pd.DataFrame:
    rows = with_paper_dataset(rows)
    rows = rows[rows["stands_for"].isin(paper.clean_accuracy().index) & rows["study"].isin(studies)]
    in_order = rows.sort_values("study", key=lambda names: names.map(list(studies).index), kind="stable")
    return in_order.drop_duplicates([column for column in _KEYS if column in rows])


def with_paper_dataset(rows: pd.DataFrame) -> pd.DataFrame:
    """With the paper's data set that each row's stands for; noise rates without floating-point residue."""
    return rows.assign(stands_for=rows["dataset"].map(paper_dataset), rate=rows["rate"].round(6))


def as_in_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Those with the paper's hyper-parameters and the largest images, so that means are over equal settings."""
    is_same = rows[list(HYPER_PARAMETERS)].eq(pd.Series(HYPER_PARAMETERS)).all(axis=1)
    rows = rows[is_same & (rows["images"] == "cached")]
    return rows[rows["image_size"] == rows["image_size"].max()]


def at_the_papers_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """At the noise rate of the paper's detection table."""
    return rows[np.isclose(rows["rate"], paper.DETECTION_RATE)]


def with_default_recipe(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Of trainings with these recipes, without a changed option."""
    return rows[rows["recipe_name"].isin(names) & (rows["recipe_options"] == "")]


def options(column: pd.Series) -> pd.Series:
    """The options of recipes or detectors that differ from their defaults, as dictionaries."""
    return column.map(lambda text: json.loads(text or "{}"))


def mean_cells(accuracy: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Means over seeds with noise, as a table like `noisy_accuracy()`."""
    names = {"stands_for": "dataset", "recipe_name": "recipe", f"best_{measure}": "best", f"last_{measure}": "last"}
    cells = accuracy.loc[accuracy["rate"] > 0, ["rate", *names]].rename(columns=names)
    return cells.groupby(["dataset", "rate", "recipe"], as_index=False).mean()


def original_line_up(rows: pd.DataFrame) -> pd.DataFrame:
    """Detectors as their authors describe them, with default options, that could be scored."""
    scored = rows["status"] == "ok" if "status" in rows else True
    return rows[(rows["line_up"] == "original") & (rows["detector_options"] == "") & scored]


def single_and_averaged(metrics: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of single runs, and of several averaged; `fields` and `changed` say which other options were changed."""
    options_of = options(metrics["detector_options"])
    averages = {detector.name: detector.averages_runs for detector in DETECTORS}
    named = zip(metrics["detector_name"], options_of, strict=True)
    averaged = np.array([given.pop("average_runs", averages.get(name)) for name, given in named], dtype=bool)
    rows = metrics.assign(changed=options_of.map(as_text), fields=options_of.map(" ".join))
    is_scored, is_several = rows["status"] == "ok", rows["runs_averaged"] > 1
    return rows[is_scored & ~averaged & ~is_several], rows[is_scored & is_several]


def as_text(changed: dict[str, Any]) -> str:
    """Changed options as text."""
    return ", ".join(f"{name}={value}" for name, value in changed.items())


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """The settings in which detectors were compared, not only a few of them tried."""
    return rows[rows.groupby("setting")["detector"].transform("nunique") >= FEWEST_DETECTORS]


def what_differs(runs: pd.DataFrame, dataset: str | None = None) -> str:
    """How the runs' setting differs from the paper's, and their data set from the one that a claim is about."""
    first = runs.iloc[0]
    found = []
    if dataset is not None and first["dataset"] != dataset:
        found.append(f"{dataset_title(first['dataset'])} instead of {dataset_title(dataset)}")
    if any(first[column] != value for column, value in NETWORK.items()):
        found.append(f"{network_title(first['backbone'])} at {first['image_size']} px")
    words = {"epochs": "{} epochs", "batch_size": "batch size {}"}
    words |= {"learning_rate": "learning rate {:g}", "weight_decay": "weight decay {:g}"}
    found += [
        words[column].format(first[column]) for column, value in HYPER_PARAMETERS.items() if first[column] != value
    ]
    if first["images"] == "augmented":
        found.append("flips and crops, which the paper does not mention")
    return ", ".join([*found, f"{first['noise']} noise"])


def without_coin_tosses(rows: pd.DataFrame) -> pd.DataFrame:
    """Symmetric noise, in which a wrong label is never the true one, but no labels that are coin tosses."""
    is_coin_toss = (rows["classes"] == 2) & np.isclose(rows["rate"], 0.5)
    return rows[(rows["noise"] == "symmetric") & ~is_coin_toss]


def accuracy_cells(accuracy: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, noise and rate: means over the seeds that both recipes have; differences in points."""
    keys, names = ["dataset", "noise", "classes", "rate"], {"last_test": "last", "best_test": "best"}
    names |= {"test_by_noisy_validation": "stopped"}
    standard, reference = (
        with_default_recipe(accuracy, recipe).rename(columns=names).groupby([*keys, *SEEDS])[[*names.values()]].mean()
        for recipe in (BASELINE_RECIPE, RECIPE)
    )
    both = standard.add_suffix(" standard").join(reference.add_suffix(" reference"), how="inner").dropna()
    cells = both.assign(
        last=100 * (both["last reference"] - both["last standard"]),
        best=100 * (both["best reference"] - both["best standard"]),
        stopped_minus_last=100 * (both["stopped standard"] - both["last reference"]),
        both_stopped=100 * (both["stopped standard"] - both["stopped reference"]),
    ).groupby(keys)
    hurts = (cells["last"].max() < 0) & (cells.size() > 1)
    return cells.mean().assign(seeds=cells.size(), hurts=hurts).reset_index()
