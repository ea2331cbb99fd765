"""The settings of a study's rows and their names, and detectors compared with each other over them."""

import pandas as pd

from benchmark.wording import dataset_title, describe_setting, network_title, varying_columns

SETTING = ["dataset", "noise", "rate", "backbone", "image_size", "epochs", "setting"]  # runs alike but for seed, recipe

IN_TITLES = (
    "dataset", "rate", "noise", "backbone", "image_size", "epochs", "batch_size", "learning_rate", "weight_decay",
    "images",
)  # fmt: skip


def setting_name(row: pd.Series) -> str:
    return (
        f"{dataset_title(row['dataset'])}, {row['rate']:.0%} {row['noise']} noise, {network_title(row['backbone'])} at "
        f"{row['image_size']} px, "
        f"{row['epochs']} epochs, batch {row['batch_size']}{'' if row['images'] == 'cached' else ', ' + row['images']}"
    )


def in_common(rows: pd.DataFrame) -> str:
    """What all of these rows have in common, for the title of a table that has the rest in its cells."""
    varying = varying_columns(rows, IN_TITLES)
    return describe_setting(rows.iloc[0], [column for column in IN_TITLES if column not in varying])


def settings(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each setting under its name, in a fixed order; names that would be the same get a suffix."""
    told = varying_columns(rows, ("learning_rate", "weight_decay"))
    groups = [group for _, group in rows.groupby(SETTING, sort=True)]
    names = [
        ", ".join(filter(None, (setting_name(one.iloc[0]), describe_setting(one.iloc[0], told)))) for one in groups
    ]
    return list(zip(_told_apart(names, groups), groups, strict=True))


def _told_apart(names: list[str], groups: list[pd.DataFrame]) -> list[str]:
    return [
        name if names.count(name) == 1 else f"{name}, setting {group['setting'].iloc[0]}"
        for name, group in zip(names, groups, strict=True)
    ]


def short_titles(rows: pd.DataFrame) -> dict[str, str]:
    """For each setting its data set, and whatever else tells it from the others."""
    told = varying_columns(rows, IN_TITLES, always=("dataset",))
    groups = [group for _, group in rows.groupby(SETTING, sort=True)]
    names = _told_apart([describe_setting(group.iloc[0], told) for group in groups], groups)
    return dict(zip((str(group["setting"].iloc[0]) for group in groups), names, strict=True))


def mean_ranks(measured: pd.DataFrame) -> pd.Series:
    """Over settings, by the mean AUROC over seeds, of detectors that were measured in all of them; the best first."""
    means = measured.groupby(["detector", "setting"])["auroc"].mean().unstack().dropna()
    return means.rank(ascending=False).mean(axis=1).sort_values(kind="stable")


def against_reference(rows: pd.DataFrame) -> str:
    """A detector's mean AUROC minus the reference's in the same runs, and whether that is clear."""
    difference = rows["minus_linc"].mean()
    return "–" if pd.isna(difference) else f"{difference:+.4f}, {better_or_worse(rows)}"


def better_or_worse(rows: pd.DataFrame) -> str:
    """Better or worse than the reference only if the paired interval says so in every run that has one."""
    compared = rows.dropna(subset=["minus_linc"])
    if (compared["minus_linc_low"] > 0).all():
        return "better"
    return "worse" if (compared["minus_linc_high"] < 0).all() else "unclear"
