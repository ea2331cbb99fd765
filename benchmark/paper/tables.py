"""The paper's three tables in its own layout, with ours beside it."""

import numpy as np
import pandas as pd

from benchmark.display.tables import mean_and_spread
from benchmark.evaluation.comparisons import settings
from benchmark.paper import numbers as paper
from benchmark.wording import describe_setting, network_title, paper_dataset, varying_columns


def detection_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Table 1: a column per detector; the paper's row first, then one per setting of ours at its noise rate."""
    rows = [{"": "paper, organsmnist"} | {name: f"{value:.4f}" for name, value in paper.DETECTION.items()}]
    if metrics.empty:
        return pd.DataFrame()
    ours = metrics[np.isclose(metrics["rate"], paper.DETECTION_RATE) & (metrics["status"] == "ok")]
    for line_up in dict.fromkeys(ours["line_up"]):
        for name, group in settings(ours[ours["line_up"] == line_up]):
            names = group["detector"].str.partition(" (")[0]
            labels = {name: next(iter(group.loc[names == name, "detector"]), "") for name in paper.DETECTION}
            labels |= {name: name for name in paper.DETECTION if name in set(group["detector"])}  # else a variant's
            cells = {
                name: mean_and_spread(group.loc[group["detector"] == label, "auroc"]) for name, label in labels.items()
            }
            rows.append({"": f"ours ({line_up}), {name}"} | cells)
    return pd.DataFrame(rows) if len(rows) > 1 else pd.DataFrame()


def clean_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 2: the paper's columns, and ours where a data set was run without noise."""
    table, rows = paper.clean_accuracy(), []
    for name, cells in _protocols(accuracy[accuracy["rate"] == 0] if len(accuracy) else accuracy):
        for dataset in table.index:
            group = cells.get((dataset, 0.0, "standard"))
            if group is not None:
                theirs = {column: f"{value:.3f}" for column, value in table.loc[dataset].items()}
                ours = {"best epoch": mean_and_spread(group["best_test"], 3)}
                ours |= {"mean of batches": mean_and_spread(group["best_batch_mean"], 3), "setting": name}
                rows.append({"data set": dataset} | theirs | {f"ours, {title}": cell for title, cell in ours.items()})
    return pd.DataFrame(rows)


def noisy_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 3: a column per rate, recipe and epoch as in the paper; below its row ours, also as means of batches."""
    claimed = {(cell.dataset, cell.rate, cell.recipe): cell for cell in paper.noisy_accuracy().itertuples()}
    names, rows = {"standard": "No LiNC", "linc": "LiNC"}, []
    for name, cells in _protocols(accuracy):
        rates = [rate for rate in paper.RATES if any(key[1] == rate for key in cells)]
        columns = [(rate, recipe, epoch) for rate in rates for recipe in names for epoch in ("best", "last")]
        for dataset in dict.fromkeys(key[0] for key in claimed):
            if not any(key[0] == dataset and key[1] in rates for key in cells):
                continue
            sources = {"paper": None, f"ours, {name}": "test", "ours, means of batches": "batch_mean"}
            for source, measure in sources.items():
                row = {"data set": dataset, "source": source}
                for rate, recipe, epoch in columns:
                    group = cells.get((dataset, rate, recipe))
                    mine = mean_and_spread(group[f"{epoch}_{measure}"]) if group is not None and measure else "–"
                    theirs = f"{getattr(claimed[dataset, rate, recipe], epoch):.4f}"
                    row[f"{rate:.0%} {names[recipe]} {epoch}"] = mine if measure else theirs
                rows.append(row)
    return pd.DataFrame(rows).fillna("–")


def _protocols(accuracy: pd.DataFrame) -> list[tuple[str, dict[tuple[object, ...], pd.DataFrame]]]:
    """For each protocol its name and its runs by data set, rate and recipe; a rebuilt file stands for its data set."""
    found, told_of = [], ("batch_size", "learning_rate", "weight_decay")
    for _, group in accuracy.groupby("protocol", sort=True) if len(accuracy) else ():
        first = group.iloc[0]
        network = network_title(first["backbone"])
        name = f"{network} at {first['image_size']} px, {first['epochs']} epochs, {first['noise']} noise"
        told = varying_columns(accuracy, told_of)
        name += f", {describe_setting(first, told)}" if told else ""
        named = group.assign(dataset=group["dataset"].map(paper_dataset), rate=group["rate"].round(6))
        found.append((name, {tuple(key): cells for key, cells in named.groupby(["dataset", "rate", "recipe"])}))
    return found
