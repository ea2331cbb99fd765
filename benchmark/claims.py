"""The paper's claims beside our measurements: every number of its tables and text, and its sentences as measurements.

A claim that a study has nothing to say about is left out; what differs in the setting stands in the row.
"""

from typing import Any

import numpy as np
import pandas as pd

from benchmark import paper

COLUMNS = ["claim", "paper", "ours", "difference", "seeds", "what differs"]
REBUILT = "_rebuilt"  # files rebuilt from source images stand for the data set, and say so
PAPER_SETTING = {"backbone": "vit_small_patch8_224.dino", "image_size": 224, "epochs": 70, "batch_size": 128}


def claims_table(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """From a study's committed rows, by table name."""
    parts = [
        detection_claims(tables["metrics"]),
        accuracy_claims(tables["accuracy"]),
        aggregate_claims(tables["accuracy"]),
        sentence_claims(tables["trust_histograms"], tables["mixtures"]),
    ]
    rows = [row for part in parts for row in part]
    return pd.DataFrame(rows, columns=COLUMNS)


def detection_claims(metrics: pd.DataFrame) -> list[dict[str, object]]:
    """Table 1, for the original line-up of every setting at its noise rate."""
    if metrics.empty:
        return []
    rows = []
    measured = metrics[(metrics["line_up"] == "original") & (metrics["status"] == "ok")]
    measured = measured[np.isclose(measured["rate"], paper.DETECTION_RATE)]
    for _, setting in measured.groupby("setting", sort=True):
        for detector, claimed in paper.DETECTION.items():
            runs = setting[setting["detector"] == detector]
            if len(runs):
                what = f"AUC of {detector}, 20 % noise"
                rows.append(_row(what, claimed, runs["auroc"], runs, paper.DETECTION_DATASET))
    return rows


def accuracy_claims(accuracy: pd.DataFrame) -> list[dict[str, object]]:
    """Tables 2 and 3, for the data sets and rates that were run; beside ours the mean of batch accuracies."""
    if accuracy.empty:
        return []
    noisy: dict[tuple[object, ...], Any] = {
        (cell.dataset, cell.rate, cell.recipe): cell for cell in paper.noisy_accuracy().itertuples()
    }
    clean = paper.clean_accuracy()[paper.OWN_MODEL]
    rows = []
    for (dataset, rate, recipe, _), runs in accuracy.groupby(["dataset", "rate", "recipe", "setting"], sort=True):
        name = str(dataset).removesuffix(REBUILT)
        claimed = noisy.get((name, rate, recipe))
        if claimed is not None:
            for epoch in ("best", "last"):
                what = f"{name}, {rate:.0%} noise, {recipe}, accuracy at the {epoch} epoch"
                value, batch_mean = float(getattr(claimed, epoch)), runs[f"{epoch}_batch_mean"]
                rows.append(_row(what, value, runs[f"{epoch}_test"], runs, name))
                rows.append(_row(f"{what}, mean of batches", value, batch_mean, runs, name))
        if rate == 0 and recipe == "standard" and name in clean.index:
            what = f"{name}, no noise, standard, accuracy at the best epoch"
            rows.append(_row(what, clean[name], runs["best_test"], runs, name))
    return rows


def aggregate_claims(accuracy: pd.DataFrame) -> list[dict[str, object]]:
    """The text's averages, computed from our cells as the paper computes them from its own."""
    if accuracy.empty:
        return []
    cells = accuracy.assign(dataset=accuracy["dataset"].str.removesuffix(REBUILT), rate=accuracy["rate"].round(6))
    table = cells.rename(columns={"best_test": "best", "last_test": "last"})
    means = table.groupby(["dataset", "rate", "recipe"], as_index=False)[["best", "last"]].mean()
    means = means[means["rate"] > 0]
    where = f"over {', '.join(sorted(means['dataset'].unique()))} instead of ten data sets"
    return [
        {
            "claim": f"{aggregate.claim} ({aggregate.unit})",
            "paper": f"{aggregate.paper:.4g}",
            "ours": f"{aggregate.value:.4g}",
            "difference": f"{aggregate.value - aggregate.paper:+.4g}",
            "seeds": accuracy["training_seed"].nunique(),
            "what differs": f"{where}; {_differences(accuracy)}",
        }
        for aggregate in paper.aggregates(means)
    ]


def sentence_claims(histograms: pd.DataFrame, mixtures: pd.DataFrame) -> list[dict[str, object]]:
    """What the section on separation says of the trust distributions, where a data set has several rates."""
    rows = []
    if not histograms.empty:
        shape = histograms.groupby(["dataset", "rate", "run"], sort=True)[list(histograms.columns)].apply(_shape)
        per_rate = shape.groupby(["dataset", "rate"]).mean()
        for dataset, group in per_rate.groupby("dataset"):
            if len(group) < 2:
                continue
            runs = histograms[histograms["dataset"] == dataset]
            for column, says in (("spread", "is broader"), ("overlap", "overlaps more with that of the others")):
                values = group[column].to_numpy()
                path = ", ".join(f"{value:.3g}" for value in values)
                holds = "holds" if (np.diff(values) > 0).all() else "does not hold throughout"
                claim = f"{dataset!s}: with more noise the trust of mislabelled samples {says}"
                rows.append(_sentence(claim, f"{holds}: {path}", runs))
    if not mixtures.empty:
        means = mixtures.sort_values("component").groupby("run")["mean"].apply(list)
        ordered = [len(values) == 3 and bool((np.diff(values) > 0).all()) for values in means]
        text = f"in {sum(ordered)} of {len(ordered)} runs"
        rows.append(_sentence("the three means of the mixture stay apart and in order", text, mixtures))
    return rows


def _shape(run: pd.DataFrame) -> pd.Series:
    """Spread of the mislabelled samples' trust, and the area that the two densities share."""
    counts = {subset: part["count"].to_numpy(float) for subset, part in run.groupby("subset")}
    wrong, right = counts["mislabelled"], counts["clean"]
    if not wrong.sum() or not right.sum():
        return pd.Series({"spread": np.nan, "overlap": np.nan})
    centres = run[run["subset"] == "mislabelled"][["from", "to"]].mean(axis=1).to_numpy()
    mean = np.average(centres, weights=wrong)
    spread = np.sqrt(np.average((centres - mean) ** 2, weights=wrong))
    return pd.Series({"spread": spread, "overlap": np.minimum(wrong / wrong.sum(), right / right.sum()).sum()})


def _row(claim: str, claimed: float, ours: pd.Series, runs: pd.DataFrame, dataset: str) -> dict[str, object]:
    spread = f" ± {ours.std(ddof=1):.4f}" if len(ours) > 1 else ""
    return {
        "claim": claim,
        "paper": f"{claimed:.4f}",
        "ours": f"{ours.mean():.4f}{spread}",
        "difference": f"{ours.mean() - claimed:+.4f}",
        "seeds": len(ours),
        "what differs": _differences(runs, dataset),
    }


def _sentence(claim: str, text: str, runs: pd.DataFrame) -> dict[str, object]:
    seeds = runs["training_seed"].nunique()
    filled = {"claim": claim, "paper": "says so", "ours": text, "difference": "–", "seeds": seeds}
    return filled | {"what differs": _differences(runs)}


def _differences(runs: pd.DataFrame, dataset: str | None = None) -> str:
    """How the runs' setting departs from the paper's."""
    first = runs.iloc[0]
    found = []
    if dataset is not None and first["dataset"] != dataset:
        found.append(f"{first['dataset']} instead of {dataset}")
    if first["backbone"] != PAPER_SETTING["backbone"] or first["image_size"] != PAPER_SETTING["image_size"]:
        found.append(f"{first['backbone']} at {first['image_size']} px")
    found += [
        f"{first[column]} {what}"
        for column, what in (("epochs", "epochs"), ("batch_size", "per batch"))
        if first[column] != PAPER_SETTING[column]
    ]
    if first["noise"] != "symmetric":
        found.append(f"{first['noise']} noise")
    return ", ".join(found) or "nothing known"
