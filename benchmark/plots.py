"""Figures from the committed files, one function each; vector and PNG, readable in greyscale."""

import matplotlib

matplotlib.use("Agg")

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from textwrap import fill, wrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.storage import write_bytes
from benchmark.tables import settings

COLOURS = sns.color_palette("colorblind")
LABEL_WIDTH = 42  # characters of a detector's label per line
RECIPE_STYLE = {"standard": ("-", COLOURS[0]), "linc": ("--", COLOURS[3])}

sns.set_theme(context="paper", style="ticks")
plt.rcParams.update({"svg.hashsalt": "linc-bench", "svg.fonttype": "none", "savefig.dpi": 200, "savefig.bbox": "tight"})


def auc_by_detector(metrics: pd.DataFrame) -> Figure | None:
    """AUROC of every detector: a dot per training seed, a bar at their mean."""
    metrics = metrics[metrics["status"] == "ok"]
    groups = settings(metrics)
    if not groups:
        return None
    lines = max(len(wrap(str(label), LABEL_WIDTH)) for label in metrics["detector"])
    height = 0.9 + (0.12 + 0.14 * lines) * metrics["detector"].nunique()
    figure, axes = plt.subplots(len(groups), 1, figsize=(6.5, height * len(groups)), squeeze=False, sharex=True)
    for (name, group), axis in zip(groups, axes[:, 0], strict=True):
        means = group.groupby("detector")["auroc"].mean().sort_values()
        for position, (detector, mean) in enumerate(means.items()):
            seeds = group.loc[group["detector"] == detector, "auroc"]
            axis.plot(seeds, [position] * len(seeds), "o", color=COLOURS[0], markersize=4, alpha=0.7, mew=0)
            axis.plot([mean, mean], [position - 0.3, position + 0.3], color="black", linewidth=1.5)
        axis.axvline(0.5, color="grey", linewidth=0.8, linestyle=":")
        axis.set_yticks(range(len(means)), [fill(str(label), LABEL_WIDTH) for label in means.index], fontsize=7)
        axis.set_title(f"{name}\n{_seeds(group)}", loc="left", fontsize=8)
        axis.grid(axis="x", linewidth=0.4)
    axes[-1, 0].set_xlabel("AUROC (dot: one run; bar: mean; dotted line: chance)")
    sns.despine(figure)
    figure.tight_layout()
    return figure


def trust_histograms(histograms: pd.DataFrame, mixtures: pd.DataFrame) -> Figure | None:
    """Trust after the warm-up for truly clean and mislabelled samples, first seed, with the mixture's means."""
    groups = settings(histograms) if not histograms.empty else []
    if not groups:
        return None
    figure, axes = _panels(len(groups))
    for (name, group), axis in zip(groups, axes, strict=True):
        run = sorted(group["run"].unique())[0]
        group = group[group["run"] == run]
        for subset, colour, hatch in (("clean", COLOURS[2], ""), ("mislabelled", COLOURS[6], "////")):
            part = group[group["subset"] == subset]
            edges = np.append(part["from"].to_numpy(), part["to"].iloc[-1])
            axis.stairs(
                part["count"], edges, fill=True, alpha=0.55, facecolor=colour, edgecolor="black", hatch=hatch,
                linewidth=0.4, label=f"truly {subset} ({part['count'].sum():,})",
            )  # fmt: skip
        own = mixtures[mixtures["run"] == run] if not mixtures.empty else mixtures
        for _, component in own.iterrows():
            axis.axvline(component["mean"], color="black", linestyle="--", linewidth=1.0)
        if len(own):
            axis.plot([], [], color="black", linestyle="--", linewidth=1.0, label="mixture means")
        axis.set_title(f"{name}\ntraining seed {group['training_seed'].iloc[0]}", loc="left", fontsize=8)
        axis.set_xlabel("trust after the warm-up")
        axis.set_ylabel("training samples")
        axis.legend(frameon=False, fontsize=7)
    sns.despine(figure)
    figure.tight_layout()
    return figure


def accuracy_curves(curves: pd.DataFrame) -> Figure | None:
    """Test accuracy over epochs for each recipe: a thin line per seed, a thick one for their mean."""
    groups = settings(curves) if not curves.empty else []
    if not groups:
        return None
    figure, axes = _panels(len(groups))
    for (name, group), axis in zip(groups, axes, strict=True):
        for recipe, part in group.groupby("recipe"):
            line, colour = RECIPE_STYLE.get(str(recipe), ("-.", COLOURS[4]))
            for _, seed in part.groupby("run"):
                axis.plot(seed["epoch"], seed["test_accuracy"], line, color=colour, linewidth=0.5, alpha=0.5)
            mean = part.groupby("epoch")["test_accuracy"].mean()
            axis.plot(mean.index, mean, line, color=colour, linewidth=1.8, label=f"{recipe}, mean")
        axis.set_title(f"{name}\n{_seeds(group)}", loc="left", fontsize=8)
        axis.set_xlabel("epoch")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylabel("test accuracy")
        axis.grid(axis="y", linewidth=0.4)
        axis.legend(frameon=False, fontsize=7)
    sns.despine(figure)
    figure.tight_layout()
    return figure


def _panels(count: int, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """A grid with room for `count` panels."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.6 * columns, 3.0 * rows), squeeze=False)
    for unused in axes.flat[count:]:
        unused.remove()
    return figure, list(axes.flat[:count])


def save(figure: Figure, folder: Path, name: str) -> None:
    """SVG and PNG, with the same bytes every time."""
    for suffix, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        drawn = BytesIO()
        figure.savefig(drawn, format=suffix, metadata=metadata)
        write_bytes(folder / f"{name}.{suffix}", drawn.getvalue())
    plt.close(figure)


def draw_all(tables: Callable[[str], pd.DataFrame], folder: Path) -> list[str]:
    """Draws every figure there is data for; `tables` gives the rows of a committed file by its name."""
    metrics = tables("metrics")
    line_ups = dict.fromkeys(metrics["line_up"]) if not metrics.empty else {}
    drawn = {
        f"auc_by_detector_{line_up}": auc_by_detector(metrics[metrics["line_up"] == line_up]) for line_up in line_ups
    }
    drawn |= {
        "trust_histograms": trust_histograms(tables("trust_histograms"), tables("mixtures")),
        "accuracy_curves": accuracy_curves(tables("curves")),
    }
    for name, figure in drawn.items():
        if figure is not None:
            save(figure, folder, name)
    return [name for name, figure in drawn.items() if figure is not None]


def _seeds(rows: pd.DataFrame) -> str:
    counts = [
        f"{rows[column].nunique()} {what} {'seed' if rows[column].nunique() == 1 else 'seeds'}"
        for column, what in (("training_seed", "training"), ("noise_seed", "noise"))
    ]
    return f"n = {rows['samples'].iloc[0]:,}, {counts[0]}, {counts[1]}"
