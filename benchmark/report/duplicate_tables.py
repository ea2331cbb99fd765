"""The tables of what data sets have twice."""

import pandas as pd

from benchmark.display.tables import MISSING, Group, titled
from benchmark.wording import dataset_title

DUPLICATES = (
    "Copies have equal pixels; the pixels of near pairs correlate above {:g}. If two duplicates have different labels, "
    "one of the labels is wrong (label_errors.csv lists them). A test image that has a duplicate in training measures "
    "memory, not generalisation. Look-alikes: the pretrained network takes two images for each other's nearest by far, "
    "which is a hint and no proof; besides near: of these, pairs whose pixels do not correlate as much."
)
MOST_PAIRS = 10  # of a data set


def duplicates_group(duplicates: pd.DataFrame, label_errors: pd.DataFrame) -> Group:
    """A row per data set, and its most similar pairs with two labels."""
    heads = {
        "images": "images",
        "exact_groups": "groups of copies",
        "near_pairs": "near pairs",
        "pairs_with_two_labels": "pairs with two labels",
        "test_twins_in_training": "test images also in training",
        "alike_pairs": "look-alikes",
        "alike_besides_near": "besides near",
        "alike_with_two_labels": "look-alikes with two labels",
    }
    counts = duplicates[[*heads, "test_images"]].map(_count).astype(str)
    counts["test_twins_in_training"] += " (of " + counts.pop("test_images") + ")"
    counts.insert(0, "data set", duplicates["dataset"].map(dataset_title))
    listed = label_errors.groupby(["dataset", "data"], sort=False).head(MOST_PAIRS)
    pairs = {
        "data set": listed["dataset"].map(dataset_title),
        "image": listed["split"] + " " + listed["index"].astype(str),
        "label": listed["label"],
        "duplicate": listed["other_split"] + " " + listed["other_index"].astype(str),
        "its label": listed["other_label"],
        "correlation": listed["correlation"].map("{:.4f}".format),
    }
    title = f"Duplicates with different labels, up to {MOST_PAIRS} pairs of a data set"
    tables = titled("Images that a data set has twice", counts.rename(columns=heads))
    return Group(
        "Duplicates", tables + titled(title, pd.DataFrame(pairs)), [DUPLICATES.format(duplicates["threshold"].min())]
    )


def _count(number: float) -> str:
    return f"{int(number):,}" if number == number else MISSING
