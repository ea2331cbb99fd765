"""The paper's claims beside our measurements: every number of its tables and text, and its sentences as measurements.

A claim that a study has nothing to say about is left out; what differs in the setting stands in the row.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from benchmark.paper import numbers as paper
from benchmark.wording import dataset_title, describe_setting, network_title, paper_dataset

COLUMNS = ["claim", "paper", "ours", "difference", "seeds", "what differs"]
PAPER_SETTING: dict[str, Any] = {
    "backbone": "vit_small_patch8_224.dino",
    "image_size": 224,
    "epochs": 70,
    "batch_size": 128,
    "learning_rate": 5e-4,
    "weight_decay": 1e-4,
}


def claims_table(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """From a study's committed rows, by table name."""
    parts = [
        detection_claims(tables["metrics"]),
        lead_claims(tables["metrics"]),
        accuracy_claims(tables["accuracy"]),
        clean_claims(tables["accuracy"]),
        aggregate_claims(tables["accuracy"]),
        sentence_claims(tables["trust_histograms"], tables["mixtures"]),
        hyper_parameter_claims(tables["accuracy"]),
        component_claims(tables["corrections"]),
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
        name = paper_dataset(str(dataset))
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
            rows.append(_row(f"{what}, mean of batches", clean[name], runs["best_batch_mean"], runs, name))
    return rows


def clean_claims(accuracy: pd.DataFrame) -> list[dict[str, object]]:
    """On how many clean data sets standard training beats every model that the paper quotes."""
    clean = accuracy[(accuracy["rate"] == 0) & (accuracy["recipe"] == "standard")] if len(accuracy) else accuracy
    rows: list[dict[str, object]] = []
    for _, group in clean.groupby("protocol", sort=True) if len(clean) else ():
        ours = group.assign(dataset=group["dataset"].map(paper_dataset)).groupby("dataset")["best_test"].mean()
        table = paper.clean_accuracy().assign(**{paper.OWN_MODEL: ours}).dropna()
        if len(table):
            text = f"{paper.best_on_clean(table)} of {len(table)}"
            row = _sentence("most accurate of all models without noise, number of data sets", text, group)
            rows.append(row | {"paper": f"{paper.best_on_clean(paper.clean_accuracy())} of 10"})
    return rows


def aggregate_claims(accuracy: pd.DataFrame) -> list[dict[str, object]]:
    """The text's averages, computed from our cells as the paper computes them from its own, for each protocol."""
    rows: list[dict[str, object]] = []
    for _, group in accuracy.groupby("protocol", sort=True) if len(accuracy) else ():
        cells = group.assign(dataset=group["dataset"].map(paper_dataset), rate=group["rate"].round(6))
        table = cells.rename(columns={"best_test": "best", "last_test": "last"})
        means = table.groupby(["dataset", "rate", "recipe"], as_index=False)[["best", "last"]].mean()
        means = means[means["rate"] > 0]
        over = ", ".join(dataset_title(name) for name in sorted(group["dataset"].unique()))
        where = f"over {over} instead of ten data sets; {_differences(group)}"
        seeds = group["training_seed"].nunique()
        for aggregate in paper.aggregates(means):
            numbers = aggregate.paper, aggregate.value, aggregate.value - aggregate.paper
            shown = [f"{numbers[0]:.4g}", f"{numbers[1]:.4g}", f"{numbers[2]:+.4g}"]
            rows.append(
                dict(zip(COLUMNS, [f"{aggregate.claim} ({aggregate.unit})", *shown, seeds, where], strict=True))
            )
        gains = [item.value for item in paper.aggregates(means) if item.claim in GAIN_BY_RATE]
        if len(gains) > 1:
            grows = "holds" if (np.diff(gains) > 0).all() else "does not hold"
            rows.append(
                _sentence("the gain at the last epoch grows with the noise rate", f"{grows}: {_list(gains)}", group)
            )
    return rows


GAIN_BY_RATE = {f"mean gain at the last epoch, {rate:.0%} noise" for rate in paper.RATES}


def sentence_claims(histograms: pd.DataFrame, mixtures: pd.DataFrame) -> list[dict[str, object]]:
    """What the section on separation says of the trust distributions, where a data set has several rates."""
    rows = []
    histograms, mixtures = (part[part["recipe"] == "linc"] if len(part) else part for part in (histograms, mixtures))
    noisy = histograms[histograms["rate"] > 0] if len(histograms) else histograms
    if len(noisy):
        by_run = ["protocol", "dataset", "rate", "run"]
        shape = noisy.groupby(by_run, sort=True)[list(noisy.columns)].apply(_shape)
        per_rate = shape.groupby(by_run[:-1]).mean()
        for (protocol, dataset), group in per_rate.groupby(["protocol", "dataset"]):
            if len(group) < 2:
                continue
            runs = noisy[(noisy["dataset"] == dataset) & (noisy["protocol"] == protocol)]
            for column, says in (("spread", "is broader"), ("overlap", "overlaps more with that of the others")):
                values = group[column].to_numpy()
                holds = "holds" if (np.diff(values) > 0).all() else "does not hold throughout"
                claim = f"{dataset!s}: with more noise the trust of mislabelled samples {says}"
                rows.append(_sentence(claim, f"{holds}: {_list(values)}", runs))
    if len(mixtures):
        gaps = mixtures.sort_values("component").groupby("run")[["mean", "standard_deviation"]].apply(_smallest_gap)
        text = f"smallest gap of neighbours, in their standard deviations: {gaps.min():.2g} to {gaps.max():.2g}"
        rows.append(_sentence("the mixture's three means stay apart", f"{text} ({len(gaps)} runs)", mixtures))
    return rows


def _smallest_gap(components: pd.DataFrame) -> float:
    means, deviations = components["mean"].to_numpy(), components["standard_deviation"].to_numpy()
    return float((np.diff(means) / ((deviations[1:] + deviations[:-1]) / 2)).min()) if len(means) > 1 else 0.0


def hyper_parameter_claims(accuracy: pd.DataFrame) -> list[dict[str, object]]:
    """That w and s matter little, and that what is best without LiNC is best with it."""
    rows: list[dict[str, object]] = []
    for _, group in accuracy.groupby("setting", sort=True) if len(accuracy) else ():
        variants = group[group["recipe"].str.fullmatch(r"linc( \((warm_up|soft_epochs)=\d+(, soft_epochs=\d+)?\))?")]
        means = variants.groupby("recipe")["last_test"].mean()
        if len(means) > 1:
            text = f"accuracy at the last epoch from {means.min():.4f} to {means.max():.4f} over {len(means)} choices"
            claim = f"{dataset_title(group['dataset'].iloc[0])}: the lengths of the soft phases matter little"
            rows.append(_sentence(claim, text, group[group["recipe"] == "linc"]))
    knobs = ["learning_rate", "weight_decay"]
    alike = ["dataset", "rate", "noise", "backbone", "image_size", "epochs", "batch_size"]
    for (dataset, rate, *_), group in accuracy.groupby(alike, sort=True) if len(accuracy) else ():
        both = group.groupby([*knobs, "recipe"])["best_test"].mean().unstack()
        both = both.reindex(columns=["standard", "linc"]).dropna()
        if len(both) > 1:
            tried = both.index.to_frame()
            best = {str(recipe): describe_setting(tried.iloc[int(both[recipe].argmax())], knobs) for recipe in both}
            verdict = "holds" if best["standard"] == best["linc"] else "does not hold"
            text = f"{verdict}: best without {best['standard']}; with {best['linc']} (by the best epoch)"
            claim = "learning rate and weight decay that are best without LiNC are best with it"
            usual = group[group["recipe"] == "linc"]
            rows.append(_sentence(f"{dataset_title(str(dataset))}, {rate:.0%} noise: {claim}", text, usual))
    return rows


def component_claims(corrections: pd.DataFrame) -> list[dict[str, object]]:
    """That a mixture of two components over-corrects."""
    rows: list[dict[str, object]] = []
    of_all = corrections[corrections["class"] == "all"] if len(corrections) else corrections
    for _, group in of_all.groupby("setting", sort=True) if len(of_all) else ():
        two, three = (group[group["recipe"] == recipe] for recipe in ("linc (components=2)", "linc"))
        if len(two) and len(three):
            touched = [(part["noisy_share"] * (1 - part["noisy_precision"])).mean() for part in (two, three)]
            after = [part["label_accuracy_after"].mean() for part in (two, three)]
            verdict = "holds" if touched[0] > touched[1] else "does not hold"
            text = (
                f"{verdict}: correctly labelled and in the noisy component {touched[0]:.1%} of the samples with two, "
                f"{touched[1]:.1%} with three; labels right after the correction {after[0]:.1%} and {after[1]:.1%}"
            )
            claim = f"{dataset_title(three['dataset'].iloc[0])}: two components over-correct, three do not"
            rows.append(_sentence(claim, text, three))
    return rows


def lead_claims(metrics: pd.DataFrame) -> list[dict[str, object]]:
    """LiNC's lead over the strongest of the paper's other detectors."""
    rows: list[dict[str, object]] = []
    measured = metrics[(metrics["line_up"] == "original") & (metrics["status"] == "ok")] if len(metrics) else metrics
    for _, setting in measured.groupby("setting", sort=True) if len(measured) else ():
        means = setting.groupby("detector")["auroc"].mean()
        others = means[means.index.isin(set(paper.DETECTION) - {"LiNC"})]
        if "LiNC" in means and len(others) and np.isclose(setting["rate"].iloc[0], paper.DETECTION_RATE):
            lead = means["LiNC"] - others.max()
            numbers = [f"{paper.AUC_LEAD:.4f}", f"{lead:+.4f} over {others.idxmax()}", f"{lead - paper.AUC_LEAD:+.4f}"]
            seeds, where = setting["training_seed"].nunique(), _differences(setting, paper.DETECTION_DATASET)
            claim = "LiNC's lead in AUC over the best of the seven others, 20 % noise"
            rows.append(dict(zip(COLUMNS, [claim, *numbers, seeds, where], strict=True)))
    return rows


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


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
        "seeds": int(runs["runs_averaged"].sum()) if "runs_averaged" in runs else len(ours),
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
        found.append(f"{dataset_title(first['dataset'])} instead of {dataset_title(dataset)}")
    if first["backbone"] != PAPER_SETTING["backbone"] or first["image_size"] != PAPER_SETTING["image_size"]:
        found.append(f"{network_title(first['backbone'])} at {first['image_size']} px")
    found += [
        f"{first[column]} {what}"
        for column, what in (("epochs", "epochs"), ("batch_size", "per batch"))
        if first[column] != PAPER_SETTING[column]
    ]
    found += [
        f"{what} {first[column]:g}"
        for column, what in (("learning_rate", "learning rate"), ("weight_decay", "weight decay"))
        if first[column] != PAPER_SETTING[column]
    ]
    if first["images"] == "augmented":
        found.append("flips and crops, of which the paper does not say")
    if str(first["recipe"]).startswith("linc ("):
        found.append(str(first["recipe"]))
    return ", ".join([*found, f"{first['noise']} noise"])
