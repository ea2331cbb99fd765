"""The numbers of the LiNC paper: its tables as data, and the averages in its text as one function of a table.

The function takes the paper's own table or ours, so that both are computed in the same way.
"""

from dataclasses import dataclass
from io import StringIO
from typing import Any

import pandas as pd

from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE, RECIPE_TITLES

# Table 1: AUC for finding mislabelled samples, OrganSMNIST, 20 % symmetric noise.
DETECTION = {
    "AUM": 0.8652,
    "DataMaps": 0.8351,
    "Data-IQ": 0.8013,
    "EL2N": 0.8547,
    "forgetting": 0.6034,
    "CNLCU-S": 0.7878,
    "VoG": 0.9126,
    DETECTOR: 0.9837,
}
DETECTION_DATASET, DETECTION_RATE = "organsmnist", 0.2
OTHERS = [name for name in DETECTION if name != DETECTOR]
AUC_LEAD = 0.0711  # of LiNC over VoG, the best of the others (section on separation)
OWN_MODEL = "ViT-S/8-224"

# Table 2: test accuracy without noise. All columns but the last are the MedMNIST authors' own.
_CLEAN = """
dataset,ResNet-18 (28),ResNet-18 (224),ResNet-50 (28),ResNet-50 (224),auto-sklearn,AutoKeras,Google AutoML,ViT-S/8-224
pathmnist,0.907,0.909,0.911,0.892,0.716,0.834,0.728,0.966
dermamnist,0.735,0.754,0.735,0.731,0.719,0.749,0.768,0.864
octmnist,0.743,0.763,0.762,0.776,0.601,0.763,0.771,0.891
pneumoniamnist,0.854,0.864,0.854,0.884,0.855,0.878,0.946,0.934
breastmnist,0.863,0.833,0.812,0.842,0.803,0.831,0.861,0.917
bloodmnist,0.958,0.963,0.956,0.950,0.878,0.961,0.966,0.989
tissuemnist,0.676,0.681,0.680,0.680,0.532,0.703,0.673,0.665
organamnist,0.935,0.951,0.935,0.947,0.762,0.905,0.886,0.953
organcmnist,0.900,0.920,0.905,0.911,0.829,0.879,0.877,0.926
organsmnist,0.782,0.778,0.770,0.785,0.672,0.813,0.749,0.807
"""

# Table 3: test accuracy; for each rate standard training's best and last epoch, then LiNC's.
_NOISY = """
pathmnist 0.9670 0.9536 0.9676 0.9154 0.9650 0.7960 0.9654 0.9331 0.9627 0.7055 0.9629 0.9055 0.9529 0.5864 0.9526 0.8852 0.9487 0.5057 0.9489 0.8033
dermamnist 0.8430 0.8430 0.8530 0.8501 0.8154 0.7922 0.8342 0.8342 0.7988 0.7201 0.8266 0.8266 0.7790 0.6569 0.8132 0.8132 0.7529 0.5646 0.7934 0.7934
octmnist 0.9189 0.8155 0.9357 0.8399 0.9062 0.7363 0.9266 0.8724 0.8742 0.6777 0.9191 0.8350 0.8470 0.6642 0.8620 0.8386 0.8021 0.5953 0.8380 0.8217
pneumoniamnist 0.9010 0.8833 0.9355 0.9033 0.8717 0.8623 0.9183 0.9054 0.8690 0.7884 0.9386 0.8908 0.8496 0.8174 0.9194 0.8989 0.8493 0.7884 0.9013 0.8685
breastmnist 0.9353 0.8979 0.9135 0.9135 0.9018 0.8583 0.8956 0.8956 0.8605 0.8331 0.8862 0.8566 0.7974 0.7500 0.8092 0.7952 0.7640 0.7148 0.8169 0.7913
bloodmnist 0.9832 0.9681 0.9881 0.9881 0.9829 0.9315 0.9844 0.9844 0.9761 0.8845 0.9818 0.9818 0.9757 0.8011 0.9769 0.9769 0.9673 0.7092 0.9739 0.9739
tissuemnist 0.6652 0.5475 0.6635 0.6532 0.6558 0.4992 0.6536 0.6441 0.6403 0.4359 0.6424 0.6339 0.6367 0.3979 0.6307 0.6307 0.6203 0.3445 0.6182 0.6145
organamnist 0.9399 0.9150 0.9422 0.9422 0.9422 0.8444 0.9420 0.9342 0.9401 0.7596 0.9402 0.9169 0.9276 0.6488 0.9280 0.8938 0.9127 0.5602 0.9138 0.8769
organcmnist 0.9016 0.8880 0.9086 0.9086 0.8879 0.8424 0.8954 0.8927 0.8780 0.7743 0.8804 0.8690 0.8521 0.6875 0.8597 0.8366 0.8363 0.5896 0.8376 0.7945
organsmnist 0.7884 0.7774 0.7941 0.7941 0.7819 0.7282 0.7825 0.7802 0.7616 0.6563 0.7638 0.7504 0.7464 0.5882 0.7499 0.7228 0.7343 0.5097 0.7366 0.6845
"""  # noqa: E501
RATES = (0.1, 0.2, 0.3, 0.4, 0.5)


def clean_accuracy() -> pd.DataFrame:
    """Data sets × models."""
    return pd.read_csv(StringIO(_CLEAN.strip()), index_col="dataset")


def noisy_accuracy() -> pd.DataFrame:
    """Tidy: dataset, rate, recipe, best, last."""
    wide = pd.read_csv(StringIO(_NOISY.strip()), sep=" ", header=None, index_col=0).rename_axis("dataset")
    names = ["rate", "recipe", None]
    wide.columns = pd.MultiIndex.from_product([RATES, (BASELINE_RECIPE, RECIPE), ("best", "last")], names=names)
    return wide.stack(["rate", "recipe"], future_stack=True).reset_index()


def gains() -> dict[tuple[str, float, str], float]:
    """By data set, rate and epoch: LiNC's accuracy minus that of standard training, in points."""
    accuracy: Any = noisy_accuracy().set_index(["recipe", "dataset", "rate"])
    return (100 * (accuracy.loc[RECIPE] - accuracy.loc[BASELINE_RECIPE])).stack(future_stack=True).to_dict()


@dataclass(frozen=True)
class Average:
    """An average in the paper's text, and the same computed from a table."""

    claim: str
    paper: float
    value: float
    unit: str
    is_gain: bool
    cells: tuple[tuple[str, float], ...]  # the data sets and rates that it is computed from


def averages(table: pd.DataFrame) -> list[Average]:
    """From a table like `noisy_accuracy()`; averages that it has no rows for are left out."""
    found: list[Average] = []
    if not {BASELINE_RECIPE, RECIPE} <= set(table["recipe"]):
        return found
    wide = table.pivot_table(index=["dataset", "rate"], columns="recipe", values=["best", "last"]).dropna()
    gain = {epoch: 100 * (wide[epoch][RECIPE] - wide[epoch][BASELINE_RECIPE]) for epoch in ("best", "last")}
    rate_of = wide.index.get_level_values("rate")
    is_half = rate_of == 0.5
    of_derma = is_half & (wide.index.get_level_values("dataset") == "dermamnist")

    def add(claim: str, paper: float, values: pd.Series, unit: str = "points", is_gain: bool = False) -> None:
        if len(values):
            found.append(Average(claim, paper, float(values.mean()), unit, is_gain, tuple(values.index)))

    for rate, paper in zip(RATES, (2.19, 7.86, 12.31, 16.94, 21.41), strict=True):
        add(f"mean gain at the last epoch, {rate:.0%} noise", paper, gain["last"][rate_of == rate], is_gain=True)
    for epoch, paper in (("last", 49 / 50), ("best", 42 / 50)):
        claim = f"share of cells in which {DETECTOR} is more accurate at the {epoch} epoch"
        add(claim, 100 * paper, 100.0 * (gain[epoch] > 0), "%")
    for recipe, paper, paper_half in ((BASELINE_RECIPE, 13.14, 23.06), (RECIPE, 2.31, 3.56)):
        claim, lost = f"best minus last epoch, {RECIPE_TITLES[recipe]}", 100 * (wide["best"] - wide["last"])[recipe]
        add(claim, paper, lost)
        add(f"{claim}, 50% noise", paper_half, lost[is_half])
    for epoch, paper, paper_derma in (("best", 1.31, 4.05), ("last", 12.14, 22.88)):
        add(f"mean gain at the {epoch} epoch", paper, gain[epoch], is_gain=True)
        claim = f"DermaMNIST, 50% noise, gain at the {epoch} epoch"
        add(claim, paper_derma, gain[epoch][of_derma], is_gain=True)
    for recipe, paper in ((BASELINE_RECIPE, 0.5882), (RECIPE, 0.8023)):
        claim = f"mean accuracy at the last epoch, 50% noise, {RECIPE_TITLES[recipe]}"
        add(claim, paper, wide["last"][recipe][is_half], "accuracy")
    return found


def best_on_clean(table: pd.DataFrame) -> int:
    """On how many data sets the paper's model is the most accurate, from a table like `clean_accuracy()`."""
    return int((table.idxmax(axis=1) == OWN_MODEL).sum())
