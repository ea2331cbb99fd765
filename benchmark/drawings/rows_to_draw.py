"""Which rows a figure shows, under which titles, and what its caption says of them."""

import json

import pandas as pd

from benchmark import reference
from benchmark.wording import IN_TITLES, by_setting, dataset_title, describe_setting, network_title, varying_columns

PROTOCOL = tuple(column for column in IN_TITLES if column not in ("dataset", "rate", "images"))
FAMILY = ("dataset", *PROTOCOL)  # settings that differ in nothing but the rate


def titled_settings(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each setting under a short title: the caption says the rest.

    A setting with one pair of seeds beside settings with several says so.
    """
    groups = [group for _, group in by_setting(rows)]
    pairs = [len(group[["noise_seed", "training_seed"]].drop_duplicates()) for group in groups]
    one_run = [" (one run)" if number == 1 < max(pairs, default=0) else "" for number in pairs]
    titles = [
        f"{dataset_title(row['dataset'])}, {percent(row['rate'])} {row['noise']} noise{note}"
        for row, note in zip((group.iloc[0] for group in groups), one_run, strict=True)
    ]
    return [
        (title if titles.count(title) == 1 else f"{title}\n(setting {group['setting'].iloc[0]})", group)
        for title, group in zip(titles, groups, strict=True)
    ]


def few_settings(rows: pd.DataFrame) -> pd.DataFrame:
    """Every data set at one noise rate; of a single data set, every rate."""
    if rows["dataset"].nunique() < 2:
        return rows
    rates = sorted(rows["rate"].unique(), key=lambda rate: abs(rate - reference.RATE))
    return rows[rows["rate"] == rates[0]]


def first_setting(rows: pd.DataFrame) -> pd.DataFrame:
    rows = few_settings(rows)
    return rows[rows["setting"] == rows["setting"].iloc[0]] if len(rows) else rows


def percent(rate: float) -> str:
    return f"{100 * rate:g}%"


def families(rows: pd.DataFrame, columns: tuple[str, ...], named: tuple[str, ...] = ()) -> dict[str, pd.DataFrame]:
    """Rows that agree in these columns, under the columns that are always named and those that vary."""
    shown = varying_columns(rows, columns, named)
    return {describe_setting(family.iloc[0], shown): family for _, family in rows.groupby(list(columns))}


def one_setting_per_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Without rates at which a family has several settings: their numbers must not be averaged."""
    return rows[rows.groupby([*FAMILY, "rate"])["setting"].transform("nunique") == 1]


def first_seed(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["noise_seed"] == rows["noise_seed"].min()]
    return rows[rows["training_seed"] == rows["training_seed"].min()]


def of_plain_recipes(rows: pd.DataFrame) -> pd.DataFrame:
    """The reference recipe and its baseline, without variants."""
    return rows[rows["recipe_name"].isin(reference.RECIPE_TITLES) & (rows["recipe_options"] == "")]


def detectors(rows: pd.DataFrame) -> dict[str, bool]:
    """Every detector, and whether it reads the reference's training; those that do come first, then by name."""
    recipes = rows.groupby("detector")["recipe_name"]
    reads = {str(name): bool((names == reference.RECIPE).any()) for name, names in recipes}
    return dict(sorted(reads.items(), key=lambda item: (not item[1], item[0].lower())))


def detector_options(metrics: pd.DataFrame) -> dict[str, dict[str, object]]:
    """By the detectors' labels."""
    labels = metrics[["detector", "detector_options"]].drop_duplicates()
    return {label: json.loads(options or "{}") for label, options in labels.itertuples(index=False)}


def about(rows: pd.DataFrame) -> str:
    """What a caption says of the runs behind a figure."""
    sizes = rows.groupby("dataset")["samples"].first()
    datasets = [f"{dataset_title(str(name))} (n = {samples:,})" for name, samples in sizes.items()]
    rates = ", ".join(percent(rate) for rate in sorted(rows["rate"].unique()))
    parts = [*datasets, f"{rates} {' and '.join(sorted(rows['noise'].unique()))} noise"]
    for column, name in (("training_seed", "training seed"), ("noise_seed", "noise seed")):
        seeds = rows[column].unique()
        parts.append(f"{name} {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} {name}s")
    for backbone, size in sorted(set(zip(rows["backbone"], rows["image_size"], strict=True))):
        parts.append(f"{network_title(backbone)} at {size} px")
    for column, words in (("epochs", "{} epochs"), ("batch_size", "batch {}")):
        parts.append(words.format(" or ".join(map(str, sorted(rows[column].unique())))))
    return ", ".join(parts) + "."
