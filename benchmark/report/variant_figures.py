"""One figure of an ablation: what each change does to LiNC's detection and to accuracy, beside LiNC as it is."""

from dataclasses import dataclass
from itertools import product
from textwrap import fill
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.display.canvas import COLOURS, panels, room
from benchmark.paper import numbers as paper
from benchmark.wording import dataset_title, describe_setting, varying_columns

TRAINING = ("backbone", "image_size", "epochs", "batch_size", "learning_rate", "weight_decay", "images")
FEWEST = 3  # variants of LiNC that make an ablation
USUAL = "linc"
OTHERS = [name for name in paper.DETECTION if name != "LiNC"]
LABEL_WIDTH = 34
LINC = {"color": COLOURS[3], "marker": "o"}
BEST_OTHER = {"color": COLOURS[0], "marker": "D", "mfc": "white"}
STANDARD = {"color": COLOURS[0], "marker": "s", "mfc": "white"}


@dataclass(frozen=True)
class Variant:
    label: str
    setting: str
    recipe: str


def usual_training(rows: pd.DataFrame) -> pd.Series:
    """How most runs were trained."""
    return rows[list(TRAINING)].value_counts().reset_index().iloc[0][list(TRAINING)]


def is_ablation(rows: pd.DataFrame) -> bool:
    return len(rows) > 0 and rows.loc[rows["recipe"].str.startswith(f"{USUAL} ("), "recipe"].nunique() >= FEWEST


def variants(metrics: pd.DataFrame, accuracy: pd.DataFrame) -> Figure | None:
    """A row per change; LiNC's AUROC beside the best other's, and LiNC's accuracy beside standard training's."""
    if not is_ablation(accuracy) or metrics.empty:
        return None
    tried = {str(dataset): _tried(rows) for dataset, rows in accuracy.groupby("dataset")}
    labels = [fill(one.label, LABEL_WIDTH) for one in max(tried.values(), key=len)]
    margin, lines = room(labels)
    height = 0.5 + (0.08 + 0.12 * lines) * len(labels)
    figure, axes = panels(2 * len(tried), (2.7, height), margin=margin, columns=2, sharey=True)
    for number, (dataset, rows) in enumerate(tried.items()):
        left, right = axes[2 * number : 2 * number + 2]
        _detection(left, rows, metrics[(metrics["status"] == "ok") & (metrics["line_up"] == "original")])
        _accuracy(right, rows, accuracy)
        left.set(title=f"{dataset_title(dataset)}: detection", xlabel="AUROC")
        right.set(title=f"{dataset_title(dataset)}: test accuracy", xlabel="accuracy at the last epoch")
        own = sum("(" in one.recipe for one in rows)
        for axis, line in product((left, right), (0.5, own + 0.5)):
            axis.axhline(line, color="grey", linewidth=0.8)
        for axis in (left, right):
            axis.grid(axis="x", linewidth=0.4)
            axis.set_ylim(len(labels) - 0.4, -0.6)
        left.set_yticks(range(len(rows)), [fill(one.label, LABEL_WIDTH) for one in rows])
    handles = [
        Line2D([], [], **LINC, markersize=3.5, linestyle="", label="LiNC, one run"),
        Line2D([], [], **BEST_OTHER, markersize=3.5, linestyle="", label="best of the paper's other detectors, mean"),
        Line2D([], [], **STANDARD, markersize=3.5, linestyle="", label="standard training, mean"),
        Line2D([], [], color="black", marker="|", markersize=9, mew=1.5, linestyle="", label="LiNC, mean of runs"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    sns.despine(figure)
    return figure


def _tried(accuracy: pd.DataFrame) -> list[Variant]:
    """As it is, then LiNC's own choices, then those of the training, in a data set."""
    usual, told = usual_training(accuracy), varying_columns(accuracy, TRAINING)
    unchanged: list[Variant] = []
    own: list[Variant] = []
    of_training: list[Variant] = []
    for _, first in accuracy[accuracy["recipe"] != "standard"].drop_duplicates(["setting", "recipe"]).iterrows():
        changed = describe_setting(first, [column for column in told if first[column] != usual[column]])
        inside = str(first["recipe"]).partition(" (")[2].removesuffix(")").replace("_", " ").replace("=", " = ")
        kind = own if inside else of_training if changed else unchanged
        kind.append(Variant(inside or changed or "LiNC as it is", str(first["setting"]), str(first["recipe"])))
    return [one for kind in (unchanged, own, of_training) for one in sorted(kind, key=lambda one: one.label)]


def _detection(axis: Axes, rows: list[Variant], metrics: pd.DataFrame) -> None:
    for position, one in enumerate(rows):
        here = metrics[(metrics["setting"] == one.setting) & (metrics["runs_averaged"] == 1)]
        names = here["detector"].str.partition(" (average_runs")[0]
        best = here.assign(name=names)[names.isin(OTHERS)].groupby("name")["auroc"].mean().max()
        _dots(
            axis,
            position,
            here.loc[here["detector"] == one.recipe.replace(USUAL, "LiNC", 1), "auroc"],
            best,
            BEST_OTHER,
        )


def _accuracy(axis: Axes, rows: list[Variant], accuracy: pd.DataFrame) -> None:
    for position, one in enumerate(rows):
        here = accuracy[accuracy["setting"] == one.setting]
        last = {recipe: here.loc[here["recipe"] == recipe, "last_test"] for recipe in (one.recipe, "standard")}
        _dots(axis, position, last[one.recipe], last["standard"].mean(), STANDARD)


def _dots(axis: Axes, position: int, linc: pd.Series, other: float, style: dict[str, Any]) -> None:
    axis.plot([other], [position], **style, markersize=3.5, linestyle="")
    axis.plot(linc, [position] * len(linc), **LINC, markersize=3.5, linestyle="", alpha=0.8)
    axis.plot([linc.mean()], [position], color="black", marker="|", markersize=9, mew=1.5)
