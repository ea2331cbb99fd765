"""The paper's three tables in its own layout, with ours beside it."""

import numpy as np
import pandas as pd

from benchmark import paper
from benchmark.claims import REBUILT
from benchmark.tables import mean_and_spread, settings


def detection_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Table 1: a column per detector; the paper's row first, then one per setting of ours at its noise rate."""
    rows = [{"": "paper, organsmnist"} | {name: f"{value:.4f}" for name, value in paper.DETECTION.items()}]
    if metrics.empty:
        return pd.DataFrame()
    ours = metrics[np.isclose(metrics["rate"], paper.DETECTION_RATE) & (metrics["status"] == "ok")]
    for line_up in dict.fromkeys(ours["line_up"]):
        for name, group in settings(ours[ours["line_up"] == line_up]):
            by_name = group.assign(name=group["detector"].str.partition(" (")[0])
            cells = {
                detector: mean_and_spread(by_name.loc[by_name["name"] == detector, "auroc"])
                for detector in paper.DETECTION
            }
            rows.append({"": f"ours ({line_up}), {name}"} | cells)
    return pd.DataFrame(rows) if len(rows) > 1 else pd.DataFrame()


def clean_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 2: the paper's columns, and ours where a data set was run without noise."""
    ours = _cells(accuracy[(accuracy["rate"] == 0) & (accuracy["recipe"] == "standard")]) if len(accuracy) else {}
    table = paper.clean_accuracy()
    there = [dataset for dataset in table.index if (dataset, 0.0, "standard") in ours]
    if not there:
        return pd.DataFrame()
    shown = table.loc[there].map("{:.3f}".format)
    shown["ours, best epoch"] = [ours[dataset, 0.0, "standard"]["best"] for dataset in there]
    return shown.rename_axis("data set").reset_index()


def noisy_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Table 3: for each data set and rate the paper's four numbers, and below them ours."""
    ours = _cells(accuracy) if len(accuracy) else {}
    rows = []
    claimed = {(cell.dataset, cell.rate, cell.recipe): cell for cell in paper.noisy_accuracy().itertuples()}
    for dataset, rate in dict.fromkeys((dataset, rate) for dataset, rate, _ in claimed):
        if (dataset, rate, "standard") not in ours and (dataset, rate, "linc") not in ours:
            continue
        names = {"standard": "no LiNC", "linc": "LiNC"}
        for source in ("paper", "ours"):
            row = {"data set": dataset, "noise": f"{rate:.0%}", "source": source}
            for recipe, title in names.items():
                for epoch in ("best", "last"):
                    mine = ours.get((dataset, rate, recipe), {}).get(epoch, "–")
                    theirs = f"{getattr(claimed[dataset, rate, recipe], epoch):.4f}"
                    row[f"{title}, {epoch}"] = theirs if source == "paper" else mine
            rows.append(row)
    return pd.DataFrame(rows)


def _cells(accuracy: pd.DataFrame) -> dict[tuple[object, ...], dict[str, str]]:
    """Ours by data set, rate and recipe; a rebuilt file stands for its data set."""
    named = accuracy.assign(dataset=accuracy["dataset"].str.removesuffix(REBUILT), rate=accuracy["rate"].round(6))
    return {
        tuple(key): {epoch: mean_and_spread(group[f"{epoch}_test"]) for epoch in ("best", "last")}
        for key, group in named.groupby(["dataset", "rate", "recipe"])
    }
