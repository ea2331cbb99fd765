"""An ablation: what each change does to the reference's detection, corrections and accuracy, in tables and a figure."""

import json
from dataclasses import dataclass
from itertools import product
from textwrap import fill
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark import reference
from benchmark.display.canvas import COLOURS, label_margin, panels
from benchmark.display.tables import MISSING, Group
from benchmark.drawings.rows_to_draw import detector_options
from benchmark.paper import numbers as paper
from benchmark.paper.select import SEEDS, TRAINING, is_ablation
from benchmark.wording import dataset_title, describe_setting, varying_columns

OF_MIXTURE = {
    "noisy_precision": "precision",
    "noisy_recall": "recall",
    "log_precision": "precision, log",
    "log_recall": "recall, log",
    "noisy_in_first_batches": "noisy from the first batches",
    "in_first_batches": "all from the first batches",
}
VARIANTS = (
    "Means over pairs of seeds, with the lowest and the highest in brackets. Precision and recall are those of the "
    "noisy component as a list of mislabelled samples; log: if the mixture were fitted to log(max α − α). From the "
    "first batches: the share of the noisy component, and of all samples, that the first ten batches of the first "
    "epoch had. The gain is the accuracy at the last epoch minus that of standard training on the same labels."
)
OTHERS = [name for name in paper.DETECTION if name != reference.DETECTOR]
LABEL_WIDTH = 34
UNCHANGED = f"{reference.DETECTOR} as it is"
REFERENCE: dict[str, Any] = {"color": COLOURS[3], "marker": "o"}
BEST_OTHER: dict[str, Any] = {"color": COLOURS[0], "marker": "D", "mfc": "white"}
BASELINE: dict[str, Any] = {"color": COLOURS[0], "marker": "s", "mfc": "white"}


@dataclass(frozen=True)
class Variant:
    label: str
    setting: str
    recipe: str
    options: str


def usual_training(rows: pd.DataFrame) -> pd.Series:
    """How most runs were trained; of equally many, the first in the order of the columns."""
    counts = rows.groupby(list(TRAINING), as_index=False).size()
    return counts.iloc[int(counts["size"].argmax())][list(TRAINING)]


def variants_group(accuracy: pd.DataFrame, metrics: pd.DataFrame, corrections: pd.DataFrame) -> Group:
    """A table per data set: what each change does to the reference."""
    if not is_ablation(accuracy):
        return Group("", [])
    tables = [
        (
            f"What each change of {reference.DETECTOR} does: {dataset_title(str(dataset))}",
            variants_table(*(table[table["dataset"] == dataset] for table in (accuracy, metrics, corrections))),
        )
        for dataset in sorted(accuracy["dataset"].unique())
    ]
    return Group("What each change does", tables, [VARIANTS])


def variants_table(accuracy: pd.DataFrame, metrics: pd.DataFrame, corrections: pd.DataFrame) -> pd.DataFrame:
    """A row per change of the recipe or the training, on one data set."""
    of_all, rows = corrections[corrections["class"] == "all"], []
    is_own = (metrics["detector_name"] == reference.DETECTOR) & (metrics["line_up"] == "original")
    is_own &= (metrics["status"] == "ok") & (metrics["runs_averaged"] == 1)
    standard = accuracy[accuracy["recipe"] == reference.BASELINE_RECIPE].set_index(["setting", *SEEDS])["last_test"]
    for variant in _variants(accuracy):
        own, scored, cut = (
            table[(table["setting"] == variant.setting) & (table["recipe"] == variant.recipe)]
            for table in (accuracy, metrics[is_own], of_all)
        )
        gain = 100 * (own.set_index(["setting", *SEEDS])["last_test"] - standard).dropna()
        measured = {"AUROC": scored["auroc"], **{head: cut[column] for column, head in OF_MIXTURE.items()}}
        cells = {head: mean_and_range(values, "{:.3f}") for head, values in measured.items()}
        cells["gain (points)"] = mean_and_range(gain, "{:+.1f}")
        rows.append({"change": variant.label, "pairs": str(len(own))} | cells)
    table = pd.DataFrame(rows)
    return table.loc[:, (table != MISSING).any()]


def mean_and_range(values: pd.Series, form: str) -> str:
    known = values.dropna()
    if known.empty:
        return MISSING
    ends = f" [{form.format(known.min())}, {form.format(known.max())}]" if len(known) > 1 else ""
    return form.format(known.mean()) + ends


def variants(accuracy: pd.DataFrame, metrics: pd.DataFrame) -> Figure | None:
    """A row per change: AUROC beside the best other's, accuracy beside standard training's."""
    if not is_ablation(accuracy) or metrics.empty:
        return None
    tried = {str(dataset): _variants(rows) for dataset, rows in accuracy.groupby("dataset")}
    labels = [fill(variant.label, LABEL_WIDTH) for variant in max(tried.values(), key=len)]
    margin, lines = label_margin(labels)
    height = 0.5 + (0.08 + 0.12 * lines) * len(labels)
    figure, axes = panels(2 * len(tried), (2.7, height), margin=margin, columns=2, sharey=True)
    for number, (dataset, rows) in enumerate(tried.items()):
        left, right = axes[2 * number : 2 * number + 2]
        _detection(left, rows, metrics[(metrics["status"] == "ok") & (metrics["line_up"] == "original")])
        _accuracy(right, rows, accuracy)
        left.set(title=f"{dataset_title(dataset)}: detection", xlabel="AUROC")
        right.set(title=f"{dataset_title(dataset)}: test accuracy", xlabel="accuracy at the last epoch")
        own = sum(variant.options != "" for variant in rows)
        usual = sum(variant.label == UNCHANGED for variant in rows)
        for axis, line in product((left, right), (usual - 0.5, usual + own - 0.5)):
            axis.axhline(line, color="grey", linewidth=0.8)
        for axis in (left, right):
            axis.grid(axis="x", linewidth=0.4)
            axis.set_ylim(len(labels) - 0.4, -0.6)
        left.set_yticks(range(len(rows)), [fill(variant.label, LABEL_WIDTH) for variant in rows])
    dot: dict[str, Any] = {"markersize": 3.5, "linestyle": ""}
    bar: dict[str, Any] = {"color": "black", "marker": "|", "markersize": 9, "mew": 1.5, "linestyle": ""}
    handles = [
        Line2D([], [], **REFERENCE, **dot, label=f"{reference.DETECTOR}, one run"),
        Line2D([], [], **BEST_OTHER, **dot, label="best of the paper's other detectors, mean"),
        Line2D([], [], **BASELINE, **dot, label="standard training, mean"),
        Line2D([], [], **bar, label=f"{reference.DETECTOR}, mean of runs"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    sns.despine(figure)
    return figure


def _variants(accuracy: pd.DataFrame) -> list[Variant]:
    """In a data set: the unchanged recipe, then changes of its own options, then of the training, each by label."""
    usual, varying = usual_training(accuracy), varying_columns(accuracy, TRAINING)
    rows = accuracy[accuracy["recipe_name"] == reference.RECIPE].drop_duplicates(["setting", "recipe"])
    ordered = []
    for _, first in rows.iterrows():
        options = json.loads(first["recipe_options"] or "{}")
        own = ", ".join(f"{name.replace('_', ' ')} = {value}" for name, value in options.items())
        changed = describe_setting(first, [column for column in varying if first[column] != usual[column]])
        label = ", ".join(filter(None, (own, changed))) or UNCHANGED
        group = 1 if own else 2 if changed else 0
        ordered.append((group, Variant(label, first["setting"], first["recipe"], first["recipe_options"])))
    return [variant for _, variant in sorted(ordered, key=lambda item: (item[0], item[1].label))]


def _detection(axis: Axes, variants: list[Variant], metrics: pd.DataFrame) -> None:
    changed = {label for label, options in detector_options(metrics).items() if options}
    for position, variant in enumerate(variants):
        here = metrics[metrics["setting"] == variant.setting]
        others = here[here["detector_name"].isin(OTHERS) & ~here["detector"].isin(changed)]
        own = here[(here["detector_name"] == reference.DETECTOR) & (here["recipe"] == variant.recipe)]
        _dots(axis, position, own["auroc"], others.groupby("detector_name")["auroc"].mean().max(), BEST_OTHER)


def _accuracy(axis: Axes, variants: list[Variant], accuracy: pd.DataFrame) -> None:
    for position, variant in enumerate(variants):
        last = accuracy[accuracy["setting"] == variant.setting].set_index("recipe")["last_test"]
        baseline = last[last.index == reference.BASELINE_RECIPE].mean()
        _dots(axis, position, last[last.index == variant.recipe], baseline, BASELINE)


def _dots(axis: Axes, position: int, values: pd.Series, other: float, style: dict[str, Any]) -> None:
    axis.plot([other], [position], **style, markersize=3.5, linestyle="")
    axis.plot(values, [position] * len(values), **REFERENCE, markersize=3.5, linestyle="", alpha=0.8)
    axis.plot([values.mean()], [position], color="black", marker="|", markersize=9, mew=1.5)
