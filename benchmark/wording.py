"""Names of data sets, networks and settings for titles and captions; files, commands and rows have the short names."""

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
}


def network_title(name: str) -> str:
    return _NETWORKS.get(name, name)


def dataset_title(name: str) -> str:
    """`dermamnist_rebuilt` → DermaMNIST (rebuilt)."""
    flag, is_rebuilt = name.removesuffix(REBUILT), name.endswith(REBUILT)
    title = medmnist_facts()["INFO"].get(flag, {}).get("python_class", flag)
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
    "images": "{}".format,
    "device": "on {}".format,
}


def describe_setting(row: "pd.Series", columns: Sequence[str]) -> str:
    return ", ".join(_WORDS[column](row[column]) for column in columns)


def varying_columns(rows: "pd.DataFrame", columns: Sequence[str], always: Sequence[str] = ()) -> list[str]:
    """Those of these columns in which rows differ, and those that are always wanted."""
    return [column for column in columns if column in always or rows[column].nunique() > 1]
