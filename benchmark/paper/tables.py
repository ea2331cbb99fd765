"""The paper's three tables in its own layout, with ours beside it."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmark.display.tables import MISSING, mean_and_spread
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.wording import FULL_TITLE, by_setting, describe_setting, network_title, varying_columns

TITLES = {BASELINE_RECIPE: f"No {DETECTOR}", RECIPE: DETECTOR}  # as in the paper
Cells = dict[Any, pd.DataFrame]  # runs by data set, rate and recipe


def detection_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Table 1: a column per detector; the paper's row first, then one per line-up and setting of ours."""
    theirs = {name: f"{auc:.4f}" for name, auc in paper.DETECTION.items()}
    rows: list[dict[Any, str]] = [{"": f"paper, {paper.DETECTION_DATASET}"} | theirs]
    ours = select.at_the_papers_rate(metrics[metrics["status"] == "ok"])
    for line_up, of_line_up in ours.groupby("line_up", sort=False):
        for setting, runs in by_setting(of_line_up, FULL_TITLE):
            # The default options come first: they are an empty string.
            first = runs.groupby("detector_name")["detector_options"].transform("min")
            aurocs = runs[runs["detector_options"] == first].groupby("detector_name")["auroc"].apply(mean_and_spread)
            cells = aurocs.reindex(list(paper.DETECTION), fill_value=MISSING).to_dict()
            rows.append({"": f"ours ({line_up}), {setting}"} | cells)
    return pd.DataFrame(rows if len(rows) > 1 else [])


def clean_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 2: the paper's columns, and ours where a data set was run without noise."""
    rows = []
    for name, cells in _protocols(accuracy[accuracy["rate"] == 0]):
        for dataset, claimed in paper.clean_accuracy().iterrows():
            runs = cells.get((str(dataset), 0.0, BASELINE_RECIPE))
            if runs is not None:
                ours = {"ours, best epoch": mean_and_spread(runs["best_test"], 3)}
                ours |= {"ours, mean of batches": mean_and_spread(runs["best_batch_mean"], 3), "ours, setting": name}
                rows.append({"data set": dataset} | claimed.map("{:.3f}".format).to_dict() | ours)
    return pd.DataFrame(rows)


def noisy_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 3: a column per rate, recipe and epoch as in the paper; below its row ours, also as means of batches."""
    claimed: Cells = dict(iter(paper.noisy_accuracy().groupby(["dataset", "rate", "recipe"], sort=False)))
    rows = []
    for name, cells in _protocols(accuracy):
        rates = [rate for rate in paper.RATES if any(cell[1] == rate for cell in cells)]
        datasets = dict.fromkeys(dataset for dataset, _, _ in claimed)
        sources = {"paper": (claimed, ""), f"ours, {name}": (cells, "_test")}
        sources |= {"ours, means of batches": (cells, "_batch_mean")}
        for dataset in (name for name in datasets if any((name, rate) == cell[:2] for rate in rates for cell in cells)):
            rows += [
                {"data set": dataset, "source": source}
                | {
                    f"{rate:.0%} {title} {epoch}": mean_and_spread(of[dataset, rate, recipe][f"{epoch}{measure}"])
                    if (dataset, rate, recipe) in of
                    else MISSING
                    for rate in rates
                    for recipe, title in TITLES.items()
                    for epoch in ("best", "last")
                }
                for source, (of, measure) in sources.items()
            ]
    return pd.DataFrame(rows).fillna(MISSING)


def _protocols(accuracy: pd.DataFrame) -> Iterator[tuple[str, Cells]]:
    """Each protocol's name and runs; a rebuilt file stands for its data set."""
    accuracy = select.with_default_recipe(select.with_paper_dataset(accuracy), *TITLES)
    varying = varying_columns(accuracy, ("batch_size", "learning_rate", "weight_decay"))
    for _, runs in accuracy.groupby("protocol"):
        first = runs.iloc[0]
        name = f"{network_title(first['backbone'])} at {first['image_size']} px, {first['epochs']} epochs"
        name += f", {first['noise']} noise{', ' if varying else ''}{describe_setting(first, varying)}"
        yield name, dict(iter(runs.groupby(["stands_for", "rate", "recipe_name"])))
