"""Figures of training: trust, accuracy over epochs, the gain in accuracy, and the data map."""

from itertools import cycle
from textwrap import fill

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmark import reference
from benchmark.display.canvas import COLOURS, heat_map, only_outer_labels, panel_per_group, panels, root_scale
from benchmark.drawings.detection import MOST_DRAWN, RANGE
from benchmark.drawings.rows_to_draw import (
    FAMILY,
    PROTOCOL,
    families,
    first_seed,
    first_setting,
    of_plain_recipes,
    one_setting_per_rate,
    percent,
    titled_settings,
)
from benchmark.wording import by_setting

MAP_BINS = 32  # of confidence from 0 to 1, and of variability from 0 to 0.5
RECIPE_STYLE = {reference.BASELINE_RECIPE: ("-", COLOURS[0]), reference.RECIPE: ("--", COLOURS[3])}
SUBSETS = {"clean": (COLOURS[2], ""), "mislabelled": (COLOURS[6], "////")}
SHADES = ("0.86", "0.93", *["1.0"] * 8)  # of the noisy, the ambiguous and the clean components
PHASES = {"1 warm-up": "0.84", "2 soft correction": "0.92", "3 hard correction": "1.0"}


def trust_histograms(histograms: pd.DataFrame, mixtures: pd.DataFrame) -> Figure | None:
    """Trust after the warm-up for truly clean and mislabelled samples, first seed, with the mixture's means."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        rows = first_seed(rows)
        for subset, (colour, hatch) in SUBSETS.items():
            part = rows[rows["subset"] == subset].sort_values("from")
            axis.stairs(
                part["count"], [*part["from"], part["to"].iloc[-1]], fill=True, alpha=0.55, facecolor=colour,
                edgecolor="black", hatch=hatch, linewidth=0.4, label=f"truly {subset}",
            )  # fmt: skip
        root_scale(axis, rows["count"].max())
        axis.xaxis.set_major_locator(MaxNLocator(5))
        _mark_components(axis, mixtures[mixtures["run"].isin(rows["run"])])
        axis.set(xlabel="trust α after the warm-up", ylabel="training samples")

    groups = titled_settings(of_plain_recipes(histograms))
    means = Line2D([], [], color="black", linestyle="--", linewidth=1.0, label="mean of a mixture component")
    cut = Line2D([], [], color="black", linewidth=1.2, label="cut: noisy on its left")
    return panel_per_group(groups, (3.0, 2.4), draw, [means, cut], entries=4)


def _mark_components(axis: Axes, components: pd.DataFrame) -> None:
    """A dashed line at the mean of each component with its name, staggered; a shade where it is the most probable.

    The end of the lowest one's shade is the cut: what is left of it is taken as noisy.
    """
    if components.empty:  # a run that ended before its mixture was fitted
        return
    components = components.sort_values("mean")
    names = ("noisy", "ambiguous", "clean") if len(components) == 3 else [f"component {i}" for i in components.index]
    axis.set_ylim(0, 2.4 * axis.get_ylim()[1])
    trust = np.linspace(*axis.get_xlim(), 1001)
    mean, deviation, weight = components[["mean", "standard_deviation", "weight"]].to_numpy().T[..., None]
    most_probable = np.argmax(weight / deviation * np.exp(-(((trust - mean) / deviation) ** 2) / 2), axis=0)
    starts = np.flatnonzero(np.diff(most_probable, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(trust) - 1], strict=True):
        axis.axvspan(trust[start], trust[end], color=SHADES[most_probable[start]], linewidth=0, zorder=0)
    for number, (name, place) in enumerate(zip(names, components["mean"], strict=True)):
        top = 0.96 - 0.09 * number
        axis.axvline(place, ymax=top - 0.03, color="black", linestyle="--", linewidth=1.0)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # hides other components' lines behind the name
        axis.text(
            place,
            top,
            name,
            ha="center",
            va="center",
            size=6.5,
            transform=axis.get_xaxis_transform(),
            bbox=box,
            zorder=4,
        )
    is_beyond = (trust > mean[0]) & (most_probable > 0)
    if is_beyond.any():
        axis.axvline(trust[is_beyond].min(), ymax=0.68, color="black", linewidth=1.2)


def accuracy_curves(curves: pd.DataFrame, corrections: pd.DataFrame) -> Figure | None:
    """Test accuracy over epochs for each recipe: a thin line per run, a thick one for their mean; phases as bands."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for recipe, part in rows.groupby("recipe_name"):
            _accuracy_lines(axis, part, str(recipe))
        axis.set(xlabel="epoch", ylabel="test accuracy (share)")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.grid(axis="y", linewidth=0.4)
        phases = of_plain_recipes(corrections[corrections["setting"] == rows["setting"].iloc[0]])
        _mark_phases(axis, phases, rows["epoch"].max())

    groups = titled_settings(of_plain_recipes(curves))
    figure = panel_per_group(groups, (3.0, 2.1), draw, entries=5, sharex=True, sharey=True)
    if figure:  # room for the phases' numbers, once all lines are drawn
        low, high = figure.axes[0].get_ylim()
        figure.axes[0].set_ylim(low, high + 0.1 * (high - low))
    return figure


def _accuracy_lines(axis: Axes, runs: pd.DataFrame, recipe: str) -> None:
    """One recipe's runs, or the range of many, and their mean."""
    line, colour = RECIPE_STYLE[recipe]
    by_epoch = runs.groupby("epoch")["test_accuracy"]
    mean = by_epoch.mean()
    if runs["run"].nunique() > MOST_DRAWN:
        low, high = (by_epoch.quantile(share) for share in RANGE)
        axis.fill_between(mean.index, low, high, color=colour, alpha=0.25, linewidth=0)
    else:
        for _, run in runs.groupby("run"):
            axis.plot(run["epoch"], run["test_accuracy"], line, color=colour, linewidth=0.5, alpha=0.5)
    label = f"{reference.RECIPE_TITLES[recipe]}, mean of runs"
    axis.plot(mean.index, mean, line, color=colour, linewidth=1.8, label=label)


def _mark_phases(axis: Axes, corrections: pd.DataFrame, last: int) -> None:
    """Bands for the reference recipe's phases, where all of a setting's runs have the same ones."""
    lengths = corrections[["warm_up", "soft_epochs"]].drop_duplicates()
    if len(lengths) != 1:
        return
    warm_up, soft = (int(length) for length in lengths.iloc[0])
    edges = [0.5, *(min(edge, last) + 0.5 for edge in (warm_up, warm_up + soft, last))]
    for (name, shade), start, end in zip(PHASES.items(), edges, edges[1:], strict=False):
        if start == end:  # a run that ended before
            continue
        axis.axvspan(start, end, facecolor=shade, edgecolor="0.6", linewidth=0.4, zorder=0, label=name)
        axis.text((start + end) / 2, 0.99, name[0], ha="center", va="top", size=7, transform=axis.get_xaxis_transform())
    axis.set_xlim(0.5, last + 0.5)


def gain_heat_map(accuracy: pd.DataFrame) -> Figure | None:
    """The reference's test accuracy minus its baseline's over data sets and rates: last epoch and best epoch."""
    rows = one_setting_per_rate(of_plain_recipes(accuracy))
    if rows["recipe_name"].nunique() < 2 or rows["rate"].nunique() < 2:
        return None
    rows = pd.concat([family.assign(row=name) for name, family in families(rows, FAMILY, ("dataset",)).items()])
    recipes = (reference.RECIPE, reference.BASELINE_RECIPE)
    own, baseline = (rows[rows["recipe_name"] == recipe] for recipe in recipes)
    gains = {
        title: 100 * (own.pivot_table(column, "row", "rate") - baseline.pivot_table(column, "row", "rate"))
        for title, column in (("last epoch", "last_test"), ("best epoch", "best_test"))
    }
    limit = max(1.0, *(np.nanmax(np.abs(table.to_numpy())) for table in gains.values()))
    size = (0.5 + 0.6 * rows["rate"].nunique(), 1.0 + 0.3 * rows["row"].nunique())
    figure, axes = panels(2, (max(2.2, size[0]), size[1]), margin=1.2, columns=2, sharey=True)
    for axis, (title, table) in zip(axes, gains.items(), strict=True):
        image = heat_map(axis, table, "{:+.1f}", limit)
        axis.set_xticks(range(table.shape[1]), [percent(float(rate)) for rate in table.columns])
        axis.set_yticks(range(table.shape[0]), table.index)
        axis.set(title=title, xlabel="nominal noise rate", aspect="auto")
    figure.colorbar(
        image,
        ax=axes,
        label=f"{reference.DETECTOR} − standard training (points)",
        location="bottom",
        shrink=0.4,
        aspect=40,
    )
    return figure


def first_batches(gradients: pd.DataFrame) -> Figure | None:
    """The mean trust gradient of each given class in every batch of the first epoch, first seed; of several trainings.

    A single one has nothing to be compared with.
    """
    if len(gradients[list(PROTOCOL)].drop_duplicates()) < 2:
        return None

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for (_, of_class), colour in zip(rows.groupby("class"), cycle(COLOURS)):
            axis.plot(of_class["batch"], of_class["gradient"], color=colour, linewidth=0.9)
        axis.axhline(0, color="grey", linewidth=0.6)
        axis.set(xlabel="batch of the first epoch", ylabel="mean trust gradient of a class")

    groups = sorted(by_setting(of_plain_recipes(first_seed(gradients))), key=lambda group: group[0])
    return panel_per_group([(fill(title, 38), rows) for title, rows in groups], (3.0, 1.9), draw)


def data_map(maps: pd.DataFrame) -> Figure | None:
    """Confidence over variability in one run: truly clean samples on the left, mislabelled ones on the right."""
    maps = first_seed(first_setting(maps))
    if maps.empty:
        return None
    figure, axes = panels(2, (3.0, 2.4), columns=2, sharex=True, sharey=True)
    norm = LogNorm(1, max(2, maps["count"].max()))
    cells = (int(maps["variability_from"].max() * 2 * MAP_BINS) + 1, MAP_BINS)
    ((title, _),) = titled_settings(maps)
    for axis, subset in zip(axes, SUBSETS, strict=True):
        part = maps[maps["subset"] == subset]
        image = axis.imshow(
            _counts(part, cells), norm=norm, cmap="viridis_r", interpolation="none", origin="lower", aspect="auto",
            extent=(0, cells[0] / 2 / MAP_BINS, 0, 1),
        )  # fmt: skip
        axis.set_title(f"{title},\ntruly {subset} ({part['count'].sum():,})")
        axis.set(xlabel="variability: standard deviation over epochs", ylabel="confidence: mean over epochs")
    only_outer_labels(axes)
    figure.colorbar(image, ax=axes, label="training samples per cell", fraction=0.04)
    sns.despine(figure)
    return figure


def _counts(part: pd.DataFrame, cells: tuple[int, int]) -> np.ndarray:
    """Samples per cell, confidence upwards and variability to the right; not a number where there are none."""
    counts = np.full((cells[1], cells[0]), np.nan)
    across = (part["variability_from"] * 2 * MAP_BINS).round().astype(int)
    counts[(part["confidence_from"] * MAP_BINS).round().astype(int), across] = part["count"]
    return counts
