"""Which rows can be compared with the paper, and with each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmark import reference
from benchmark.paper import numbers as paper
from benchmark.runs import MAIN, STUDIES
from benchmark.wording import IN_TITLES, paper_dataset

Tables = Mapping[str, pd.DataFrame]
READ = ("runs", "metrics", "accuracy", "auc_by_epochs", "auroc_draws", "curves", "corrections")  # of all studies
SEEDS = ["noise_seed", "training_seed"]
TRAINING = tuple(column for column in IN_TITLES if column not in ("dataset", "rate"))
FEWEST = 3  # variants of the reference on one data set; more make an ablation
EARLY = (5, 10)  # epochs: the length of LiNC's warm-up, and that with its soft correction
HYPER_PARAMETERS: dict[str, Any] = {
    **{"epochs": 70, "batch_size": 128, "learning_rate": 5e-4, "weight_decay": 1e-4},
    **{"head_init": "small", "warm_up_steps": 0, "clip_norm": 0},
}
NETWORK: dict[str, Any] = {"backbone": "vit_small_patch8_224.dino", "image_size": 224}
OURS: dict[str, Any] = {"backbone": MAIN.backbone.name, "image_size": MAIN.backbone.image_size}
_KEYS = ("run", "line_up", "detector")


def of_the_paper(tables: Tables) -> dict[str, pd.DataFrame]:
    """The rows of our studies on the paper's data sets, or on files that stand for them; every run once."""
    found = {name: _on_its_datasets(tables[name]) for name in READ}
    detectors = tables["metrics"][["detector", "detector_name", "detector_options"]].drop_duplicates("detector")
    named = ("auc_by_epochs", "auroc_draws")
    return found | {name: found[name].merge(detectors, on="detector", how="left") for name in named}


def _on_its_datasets(rows: pd.DataFrame) -> pd.DataFrame:
    studies = [study.name for study in STUDIES]
    rows = with_paper_dataset(rows)
    rows = rows[rows["stands_for"].isin(paper.clean_accuracy().index) & rows["study"].isin(studies)]
    order, keys = rows["study"].map(studies.index), [column for column in _KEYS if column in rows]
    return rows[order == order.groupby([rows[column] for column in keys]).transform("min")]


def with_paper_dataset(rows: pd.DataFrame) -> pd.DataFrame:
    """With the paper's data set that each row's stands for; noise rates without floating-point residue."""
    return rows.assign(stands_for=rows["dataset"].map(paper_dataset), rate=rows["rate"].round(6))


def as_in_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Those with the paper's hyper-parameters and its network, or that of our main study if the paper's was not run.

    Means are then over equal settings.
    """
    is_same = rows[list(HYPER_PARAMETERS)].eq(pd.Series(HYPER_PARAMETERS)).all(axis=1)
    rows = rows[is_same & (rows["images"] == "cached")]
    papers, ours = (rows[rows[list(network)].eq(pd.Series(network)).all(axis=1)] for network in (NETWORK, OURS))
    return papers if len(papers) else ours


def have_its_network(rows: pd.DataFrame) -> bool:
    """Whether all were trained with the paper's network and image size."""
    return bool(rows[list(NETWORK)].eq(pd.Series(NETWORK)).all(axis=None))


def at_the_papers_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """At the noise rate of the paper's detection table."""
    return rows[np.isclose(rows["rate"], paper.DETECTION_RATE)]


def with_default_recipe(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Of trainings with these recipes, without a changed option."""
    return rows[rows["recipe_name"].isin(names) & (rows["recipe_options"] == "")]


def original_line_up(rows: pd.DataFrame) -> pd.DataFrame:
    """Detectors as their authors describe them, with default options, that could be scored."""
    scored = rows["status"] == "ok" if "status" in rows else True
    return rows[(rows["line_up"] == reference.LINE_UP) & (rows["detector_options"] == "") & scored]


def like(rows: pd.DataFrame, example: pd.Series) -> pd.DataFrame:
    """Rows that agree with the example in all that it has."""
    return rows[(rows[list(example.index)] == example).all(axis=1)]


def is_ablation(rows: pd.DataFrame) -> bool:
    """Whether the reference recipe was tried with several options or trainings on the same data."""
    tried = rows[rows["recipe_name"] == reference.RECIPE][["dataset", *TRAINING, "recipe_options"]].drop_duplicates()
    return bool((tried.groupby("dataset").size() > FEWEST).any())
