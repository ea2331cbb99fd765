"""Figures from the committed files, one function each; vector and PNG, readable in greyscale."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmark.disk.results_folder import slug
from benchmark.display.canvas import (
    COLOURS,
    LABEL_WIDTH,
    LINC_STYLE,
    LINES,
    TITLE_WIDTH,
    legend_below,
    line_style,
    only_outer_labels,
    panels,
    room,
    root_scale,
    save,
    stretch_towards_one,
)
from benchmark.evaluation.comparisons import settings
from benchmark.report.variant_figures import is_ablation, usual_training, variants
from benchmark.wording import dataset_title, describe_setting, network_title, varying_columns

MAP_BINS = 32  # of confidence from 0 to 1, and of variability from 0 to 0.5
RECIPES = {"linc": "LiNC", "standard": "standard training"}
RECIPE_STYLE = {"standard": ("-", COLOURS[0]), "linc": ("--", COLOURS[3])}
SUBSETS = {"clean": (COLOURS[2], ""), "mislabelled": (COLOURS[6], "////")}
PHASES = {"1 LiNC's warm-up": "0.84", "2 its soft correction": "0.92", "3 its hard correction": "1.0"}
PROTOCOL = ("noise", "backbone", "image_size", "epochs", "batch_size", "learning_rate", "weight_decay")
RANGE = (0.025, 0.975)
MOST_DRAWN = 30  # runs that are drawn one by one; of more, the range that 95 % of them are in
FAMILY = ("dataset", *PROTOCOL)  # settings that differ in nothing but the rate


def auc_by_detector(metrics: pd.DataFrame) -> Figure | None:
    """AUROC of every detector: a dot per run with its bootstrap interval, a bar at the mean."""
    metrics = _measured(metrics)
    groups = _titled(metrics)
    if not groups:
        return None
    ranks = metrics.groupby(["setting", "detector"])["auroc"].mean().groupby("setting").rank(pct=True)
    order = list(ranks.groupby("detector").mean().sort_values(kind="stable").index)
    labels = [fill(str(label), LABEL_WIDTH) for label in order]
    margin, lines = room(labels)
    height = 0.6 + (0.12 + 0.12 * lines) * len(order)
    width, columns = (2.3, 4) if len(groups) == 4 else (3.0, 3)
    figure, axes = panels(len(groups), (width, height), margin=margin, columns=columns, sharex=True, sharey=True)
    for (title, group), axis in zip(groups, axes, strict=True):
        for position, detector in enumerate(order):
            own = group[group["detector"] == detector]
            if own.empty:
                axis.text(0.5, position, " not run", size=6.5, color="0.4", va="center")
            _detector_row(axis, position, own)
        axis.axvline(0.5, color="grey", linewidth=0.8, linestyle=":")
        axis.set(
            title=title.replace(", ", ",\n", 1) if columns > 3 else title, xlabel="AUROC", ylim=(-0.6, len(order) - 0.4)
        )
        axis.set_yticks(range(len(order)), labels)
        axis.grid(axis="x", linewidth=0.4)
    stretch_towards_one(axes, min(0.48, metrics["auroc_low"].min()) - 0.02, metrics["auroc_high"].max())
    only_outer_labels(axes)
    handles = [
        Line2D([], [], color=COLOURS[0], marker="o", markersize=3.5, label="one run, 95% interval"),
        Line2D([], [], color=COLOURS[0], marker="D", markersize=3.5, mfc="white", label="scores averaged over runs"),
        Line2D([], [], color="black", marker="|", markersize=9, mew=1.5, linestyle="", label="mean of runs"),
        Line2D([], [], color="grey", linestyle=":", label="chance"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4 if len(groups) > 1 else 2)
    sns.despine(figure)
    return figure


def _detector_row(axis: Axes, position: int, runs: pd.DataFrame) -> None:
    """One detector's runs, spread over the row's height so that their intervals can be told apart."""
    if (runs["recipe"] == "linc").any():
        axis.axhspan(position - 0.5, position + 0.5, color="0.92", linewidth=0)
    if len(runs) > MOST_DRAWN:
        axis.plot(runs["auroc"].quantile(list(RANGE)), [position] * 2, color=COLOURS[0], linewidth=4, alpha=0.4)
    else:
        _every_run(axis, position, runs)
    if len(runs) > 1:
        axis.plot([runs["auroc"].mean()] * 2, [position - 0.38, position + 0.38], color="black", linewidth=1.5)


def _every_run(axis: Axes, position: int, runs: pd.DataFrame) -> None:
    places = position + (np.linspace(0.25, -0.25, len(runs)) if len(runs) > 1 else np.zeros(1))
    for place, (_, run) in zip(places, runs.sort_values(["noise_seed", "training_seed"]).iterrows(), strict=False):
        marker, face = ("D", "white") if run["runs_averaged"] > 1 else ("o", COLOURS[0])
        axis.plot([run["auroc_low"], run["auroc_high"]], [place, place], color=COLOURS[0], linewidth=0.9)
        axis.plot(run["auroc"], place, marker, color=COLOURS[0], mfc=face, markersize=3)


def roc_curves(roc: pd.DataFrame) -> Figure | None:
    """The ROC curve of every detector, first seed; LiNC is the thick black line."""
    groups = _titled(roc)
    if not groups:
        return None
    detectors = _detectors(roc)
    styles = {name: LINC_STYLE if is_linc else line_style(i) for i, (name, is_linc) in enumerate(detectors.items())}
    figure, axes = panels(len(groups), (3.0, 2.7), entries=len(styles), sharex=True, sharey=True)
    chance = np.linspace(0, 1, 101)
    for (title, group), axis in zip(groups, axes, strict=True):
        group = _first_seed(group)
        for index, (detector, style) in enumerate(styles.items()):
            part = group[group["detector"] == detector]
            x, y = part["false_positive_rate"], part["true_positive_rate"]
            axis.plot(x, y, **style, markevery=(index % 8, 8), zorder=3 if style is LINC_STYLE else 2)
        axis.plot(chance, chance, color="grey", linewidth=0.8, linestyle=":")
        axis.set_xscale("function", functions=(np.sqrt, np.square))
        axis.set_xticks([0, 0.01, 0.05, 0.2, 0.5, 1], ["0", "1", "5", "20", "50", "100"])
        axis.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
        axis.set(title=title, xlabel="clean samples flagged (%, square-root scale)", ylabel="mislabelled flagged (%)")
        axis.grid(linewidth=0.4)
    only_outer_labels(axes)
    handles = [Line2D([], [], label=fill(name, TITLE_WIDTH), **style) for name, style in styles.items()]
    legend_below(figure, handles, axes)
    sns.despine(figure)
    return figure


def auc_by_epochs(auc: pd.DataFrame) -> Figure | None:
    """AUROC when only the first epochs are read: a panel per detector, a line per setting, LiNC in grey behind."""
    groups = _titled(auc)
    if not groups:
        return None
    rows = pd.concat([group.assign(line=title) for title, group in groups])
    figure = _small_multiples(rows, "epochs_read", "epochs read")
    last = int(rows["epochs_read"].max())
    ticks = [count for count in (1, 2, 5, 10, 20, 40) if count < 0.8 * last] + [last]
    for axis in figure.axes:
        axis.set_xscale("log")  # most happens in the first epochs
        axis.set_xticks(ticks, [str(count) for count in ticks])
        axis.minorticks_off()
    return figure


def auc_by_rate(metrics: pd.DataFrame) -> Figure | None:
    """AUROC over the noise rate: a panel per detector, a line per data set, LiNC in grey behind."""
    rows = _one_setting_per_rate(_measured(metrics))
    if rows.empty or rows.groupby(list(FAMILY))["rate"].nunique().max() < 2:
        return None
    rows = pd.concat([family.assign(line=name) for name, family in _families(rows, FAMILY, ("dataset",)).items()])
    rows = rows.assign(percent=lambda part: 100 * part["rate"])
    return _small_multiples(rows, "percent", "nominal noise rate (%)", dots=True)


def _small_multiples(rows: pd.DataFrame, x: str, x_label: str, dots: bool = False) -> Figure:
    """AUROC over `x`, the mean over seeds: a panel per detector, a line per value of `line`."""
    detectors, lines = _detectors(rows), list(dict.fromkeys(rows["line"]))
    linc = [detector for detector in detectors if detector == "LiNC"]
    means = rows.groupby(["detector", "line", x])["auroc"].mean()
    figure, axes = panels(len(detectors), (2.9, 1.75), entries=len(lines) + 2, sharex=True, sharey=True)
    for detector, axis in zip(detectors, axes, strict=True):
        for index, line in enumerate(lines):
            for name in linc:
                _mean_line(axis, means, name, line, color="0.7", linestyle=LINES[index % len(LINES)], linewidth=2.2)
            _mean_line(axis, means, detector, line, **line_style(index) | ({"marker": ""} if dots else {}))
            if dots and rows["run"].nunique() <= MOST_DRAWN * len(lines):
                part = rows[(rows["detector"] == detector) & (rows["line"] == line)]
                axis.plot(
                    part[x], part["auroc"], **line_style(index) | {"linestyle": "", "markersize": 2.5, "alpha": 0.8}
                )
        axis.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set(title=fill(detector, TITLE_WIDTH), xlabel=x_label, ylabel="AUROC")
        axis.grid(linewidth=0.4)
    only_outer_labels(axes)
    handles = [Line2D([], [], label=line, **line_style(index)) for index, line in enumerate(lines)]
    handles.append(Line2D([], [], color="0.7", linewidth=2.2, label="LiNC" + " (same line style)" * (len(lines) > 1)))
    handles.append(Line2D([], [], color="grey", linewidth=0.8, linestyle=":", label="chance"))
    legend_below(figure, handles, axes)
    sns.despine(figure)
    return figure


def _mean_line(axis: Axes, means: pd.Series, detector: str, line: str, **style: Any) -> None:
    if (detector, line) in means.index:
        mean = means.loc[(detector, line)]
        axis.plot(mean.index, mean, markevery=max(1, len(mean) // 6), **style)


def trust_histograms(histograms: pd.DataFrame, mixtures: pd.DataFrame) -> Figure | None:
    """Trust after the warm-up for truly clean and mislabelled samples, first seed, with the mixture's means."""
    groups = _titled(_usual_recipes(histograms))
    if not groups:
        return None
    figure, axes = panels(len(groups), (3.0, 2.4), entries=3, sharex=True)
    for (title, group), axis in zip(groups, axes, strict=True):
        group = _first_seed(group)
        for subset, (colour, hatch) in SUBSETS.items():
            part = group[group["subset"] == subset].sort_values("from")
            axis.stairs(
                part["count"], [*part["from"], part["to"].iloc[-1]], fill=True, alpha=0.55, facecolor=colour,
                edgecolor="black", hatch=hatch, linewidth=0.4, label=f"truly {subset}",
            )  # fmt: skip
        root_scale(axis, group["count"].max())
        if not mixtures.empty:
            _mark_means(axis, mixtures[mixtures["run"].isin(group["run"])])
        axis.set(title=title, xlabel="trust α after the warm-up", ylabel="training samples")
    only_outer_labels(axes, share_y=False)
    means = Line2D([], [], color="black", linestyle="--", linewidth=1.0, label="mean of a mixture component")
    legend_below(figure, [*axes[0].get_legend_handles_labels()[0], means], axes)
    sns.despine(figure)
    return figure


def _mark_means(axis: Axes, components: pd.DataFrame) -> None:
    """A dashed line at the mean of each component, with its name above."""
    names = ("noisy", "ambiguous", "clean") if len(components) == 3 else [f"component {i}" for i in components.index]
    axis.set_ylim(0, 2.2 * axis.get_ylim()[1])
    for name, mean in zip(names, sorted(components["mean"]), strict=True):
        axis.axvline(mean, ymax=0.68, color="black", linestyle="--", linewidth=1.0)
        axis.text(
            mean, 0.7, name, rotation=90, ha="center", va="bottom", size=6.5, transform=axis.get_xaxis_transform()
        )


def accuracy_curves(curves: pd.DataFrame, corrections: pd.DataFrame) -> Figure | None:
    """Test accuracy over epochs for each recipe: a thin line per run, a thick one for their mean; LiNC's phases."""
    groups = _titled(_usual_recipes(curves))
    if not groups:
        return None
    figure, axes = panels(len(groups), (3.0, 2.1), entries=5, sharex=True)
    for (title, group), axis in zip(groups, axes, strict=True):
        for recipe, part in group.groupby("recipe"):
            line, colour = RECIPE_STYLE.get(str(recipe), ("-.", COLOURS[4]))
            by_epoch = part.groupby("epoch")["test_accuracy"]
            mean = by_epoch.mean()
            if part["run"].nunique() > MOST_DRAWN:
                low, high = (by_epoch.quantile(share) for share in RANGE)
                axis.fill_between(mean.index, low, high, color=colour, alpha=0.25, linewidth=0)
            else:
                for _, run in part.groupby("run"):
                    axis.plot(run["epoch"], run["test_accuracy"], line, color=colour, linewidth=0.5, alpha=0.5)
            axis.plot(
                mean.index,
                mean,
                line,
                color=colour,
                linewidth=1.8,
                label=f"{RECIPES.get(str(recipe), recipe)}, mean of runs",
            )
        axis.set(title=title, xlabel="epoch", ylabel="test accuracy (share)")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.grid(axis="y", linewidth=0.4)
        if not corrections.empty:
            usual = _usual_recipes(corrections)
            _mark_phases(axis, usual[usual["setting"] == group["setting"].iloc[0]], group["epoch"].max())
    only_outer_labels(axes, share_y=False)
    legend_below(figure, axes[0].get_legend_handles_labels()[0], axes)
    sns.despine(figure)
    return figure


def _mark_phases(axis: Axes, corrections: pd.DataFrame, last: int) -> None:
    """Bands for LiNC's phases, where all of a setting's runs had the same ones."""
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
    low, high = axis.get_ylim()
    axis.set(xlim=(0.5, last + 0.5), ylim=(low, high + 0.1 * (high - low)))


def gain_heat_map(accuracy: pd.DataFrame) -> Figure | None:
    """LiNC minus standard test accuracy in points over data sets and rates: last epoch and best epoch."""
    rows = _one_setting_per_rate(accuracy)
    if not {"standard", "linc"} <= set(rows["recipe"] if len(rows) else ()):
        return None
    rows = pd.concat([family.assign(row=name) for name, family in _families(rows, FAMILY, ("dataset",)).items()])
    linc, standard = (rows[rows["recipe"] == recipe] for recipe in ("linc", "standard"))
    gains = {
        title: 100 * (linc.pivot_table(column, "row", "rate") - standard.pivot_table(column, "row", "rate"))
        for title, column in (("last epoch", "last_test"), ("best epoch", "best_test"))
    }
    limit = max(1.0, *(np.nanmax(np.abs(table.to_numpy())) for table in gains.values()))
    size = (0.5 + 0.6 * rows["rate"].nunique(), 1.0 + 0.3 * rows["row"].nunique())
    figure, axes = panels(2, (max(2.2, size[0]), size[1]), margin=1.2, columns=2, sharey=True)
    for axis, (title, table) in zip(axes, gains.items(), strict=True):
        image = _matrix(axis, table, "{:+.1f}", limit)
        axis.set_xticks(range(table.shape[1]), [_percent(float(rate)) for rate in table.columns])
        axis.set_yticks(range(table.shape[0]), table.index)
        axis.set(title=title, xlabel="nominal noise rate", aspect="auto")
    figure.colorbar(image, ax=axes, label="LiNC − standard (points)", location="bottom", shrink=0.4, aspect=40)
    return figure


def data_map(maps: pd.DataFrame) -> Figure | None:
    """Confidence over variability, first seed: truly clean samples on the left, mislabelled ones on the right."""
    groups = _titled(maps)
    if not groups:
        return None
    figure, axes = panels(2 * len(groups), (3.0, 2.2), columns=2, sharex=True, sharey=True)
    norm = LogNorm(1, max(2, maps["count"].max()))
    for index, (title, group) in enumerate(groups):
        for axis, subset in zip(axes[2 * index :], SUBSETS, strict=False):
            part = _first_seed(group)
            part = part[part["subset"] == subset]
            cells = PolyCollection(_corners(part), array=part["count"], norm=norm, cmap="viridis_r", ec="face", lw=0.2)
            axis.add_collection(cells)
            axis.set(title=f"{title}\ntruly {subset} ({part['count'].sum():,})")
            axis.set(xlabel="variability: standard deviation over epochs", ylabel="confidence: mean over epochs")
    only_outer_labels(axes)
    axes[0].set(xlim=(0, maps["variability_from"].max() + 0.5 / MAP_BINS), ylim=(0, 1))
    figure.colorbar(cells, ax=axes, label="training samples per cell", fraction=0.04)
    sns.despine(figure)
    return figure


def _corners(cells: pd.DataFrame) -> list[np.ndarray]:
    """The four corners of each cell."""
    left, right = cells["variability_from"], cells["variability_from"] + 0.5 / MAP_BINS
    low, high = cells["confidence_from"], cells["confidence_from"] + 1 / MAP_BINS
    x, y = np.stack([left, right, right, left], axis=1), np.stack([low, low, high, high], axis=1)
    return list(np.stack([x, y], axis=2))


def agreement(pairs: pd.DataFrame) -> Figure | None:
    """Rank correlation between the scores of every two detectors, first seed."""
    groups = _titled(pairs)
    if not groups:
        return None
    names = list(_detectors(pairs))
    labels = [fill(f"{number}  {name}", LABEL_WIDTH) for number, name in enumerate(names, 1)]
    margin, lines = room(labels)
    side = 0.6 + max(0.3, 0.12 * lines) * len(names)
    figure, axes = panels(len(groups), (side, side + 0.3), margin=margin, columns=2, sharey=True)
    for (title, group), axis in zip(groups, axes, strict=True):
        table = _first_seed(group).pivot(index="detector", columns="other", values="rank_correlation")
        image = _matrix(axis, table.reindex(index=names, columns=names), "{:.2f}", 1.0)
        axis.set_xticks(range(len(names)), [str(number) for number in range(1, len(names) + 1)])
        axis.set_yticks(range(len(names)), labels)
        axis.set(title=title, xlabel="the same detectors, by number")
    only_outer_labels(axes)
    figure.colorbar(
        image, ax=axes, label="rank correlation of scores", location="bottom", fraction=0.03, shrink=0.6, aspect=40
    )
    return figure


def _matrix(axis: Axes, table: pd.DataFrame, number: str, limit: float) -> AxesImage:
    """A heat map from −limit to limit with a number in each cell."""
    values = table.to_numpy(dtype=float)
    image = axis.imshow(values, cmap="PuOr_r", vmin=-limit, vmax=limit)
    for (row, column), value in np.ndenumerate(values):
        text = number.format(value).replace("-", "−") if np.isfinite(value) else "–"
        colour = "white" if abs(value) > 0.65 * limit else "black"
        axis.text(column, row, text, ha="center", va="center", size=6.5, color=colour)
    axis.tick_params(length=0)
    return image


def _usual_recipes(rows: pd.DataFrame) -> pd.DataFrame:
    """Without variants of recipes: a study of many of them has tables, and nobody could tell as many lines apart."""
    return rows if rows.empty else rows[rows["recipe"].isin(RECIPES)]


def _measured(metrics: pd.DataFrame) -> pd.DataFrame:
    return metrics if metrics.empty else metrics[metrics["status"] == "ok"]


def _detectors(rows: pd.DataFrame) -> dict[str, bool]:
    """Every detector and whether LiNC's training is what it reads; these first, then by name."""
    from_linc = {str(name): bool((part == "linc").any()) for name, part in rows.groupby("detector")["recipe"]}
    return dict(sorted(from_linc.items(), key=lambda item: (not item[1], item[0].lower())))


def _first_seed(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["noise_seed"] == rows["noise_seed"].min()]
    return rows[rows["training_seed"] == rows["training_seed"].min()]


def _one_setting_per_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Without rates at which more than one setting of a family was run: their numbers are not to be averaged."""
    if rows.empty:
        return rows
    return rows[rows.groupby([*FAMILY, "rate"])["setting"].transform("nunique") == 1]


def _titled(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each setting under a title that is short, since the caption says the rest."""
    if rows.empty:
        return []
    groups = [group for _, group in settings(rows)]
    firsts = [group.iloc[0] for group in groups]
    titles = [
        f"{dataset_title(first['dataset'])}, {_percent(first['rate'])} {first['noise']} noise" for first in firsts
    ]
    return [
        (title if titles.count(title) == 1 else f"{title}\n(setting {group['setting'].iloc[0]})", group)
        for title, group in zip(titles, groups, strict=True)
    ]


def _percent(rate: float) -> str:
    return f"{100 * rate:g}%"


def _families(rows: pd.DataFrame, columns: tuple[str, ...], named: tuple[str, ...] = ()) -> dict[str, pd.DataFrame]:
    """The rows that are alike in these columns, under those that are to be named and those that tell them apart."""
    told = varying_columns(rows, columns, named)
    return {describe_setting(family.iloc[0], told): family for _, family in rows.groupby(list(columns))}


def about(rows: pd.DataFrame) -> str:
    """What a caption says of the runs behind a figure."""
    datasets = [
        f"{dataset_title(str(name))} (n = {part.iloc[0]:,})" for name, part in rows.groupby("dataset")["samples"]
    ]
    rates = ", ".join(_percent(rate) for rate in sorted(rows["rate"].unique()))
    parts = [*datasets, f"{rates} {' and '.join(sorted(rows['noise'].unique()))} noise"]
    for column, what in (("training_seed", "training seed"), ("noise_seed", "noise seed")):
        seeds = rows[column].unique()
        parts.append(f"{what} {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} {what}s")
    for backbone, size in sorted(set(zip(rows["backbone"], rows["image_size"], strict=True))):
        parts.append(f"{network_title(backbone)} at {size} px")
    for column, words in (("epochs", "{} epochs"), ("batch_size", "batch {}")):
        parts.append(words.format(" or ".join(map(str, sorted(rows[column].unique())))))
    return ", ".join(parts) + "."


@dataclass(frozen=True)
class Kind:
    """A figure that a study may have: how it is drawn, from which tables, and what its caption says."""

    name: str
    draw: Callable[..., Figure | None]
    reads: tuple[str, ...]
    shows: str
    by_line_up: bool = False
    apart: tuple[str, ...] = PROTOCOL  # settings that differ in these are drawn in figures of their own
    first_seed: bool = False


KINDS = (
    Kind(
        "auc_by_detector",
        auc_by_detector,
        ("metrics",),
        "AUROC of every detector: a dot per run with its bootstrap 95% interval, a bar at the mean of the runs, a "
        "diamond where scores were averaged over runs first; the row of LiNC is shaded",
        by_line_up=True,
    ),
    Kind(
        "roc_curves",
        roc_curves,
        ("roc",),
        "ROC curve of every detector, LiNC as the thick black line, chance dotted; the square-root scale gives room to "
        "the few clean samples that are flagged first",
        by_line_up=True,
        first_seed=True,
    ),
    Kind(
        "auc_by_epochs",
        auc_by_epochs,
        ("auc_by_epochs",),
        "AUROC of every detector that reads a history when it reads the first epochs only, as the mean over seeds; "
        "LiNC in grey behind",
        by_line_up=True,
    ),
    Kind(
        "auc_by_rate",
        auc_by_rate,
        ("metrics",),
        "AUROC of every detector over the nominal noise rate: a dot per run, a line through the means; LiNC in grey "
        "behind",
        by_line_up=True,
    ),
    Kind(
        "trust_histograms",
        trust_histograms,
        ("trust_histograms", "mixtures"),
        "Trust after the warm-up of truly clean and truly mislabelled training samples; dashed lines are the means of "
        "the mixture's three components. Trust begins at 1, and its decay pulls everybody's down; counts are on a "
        "square-root scale",
        apart=FAMILY,
        first_seed=True,
    ),
    Kind(
        "accuracy_curves",
        accuracy_curves,
        ("curves", "corrections"),
        "Test accuracy over epochs, standard training against LiNC: a thin line per run, a thick one for their mean; "
        "bands mark the phases of LiNC",
        apart=FAMILY,
    ),
    Kind(
        "gain_heat_map",
        gain_heat_map,
        ("accuracy",),
        "Test accuracy of LiNC minus that of standard training in percentage points, as means over seeds, at the last "
        "epoch and at the best one",
        apart=(),
    ),
    Kind(
        "variants",
        variants,
        ("metrics", "accuracy"),
        "What each change does: LiNC's AUROC beside the best of the paper's other detectors in the same setting "
        "(left), and its accuracy at the last epoch beside standard training's (right); a dot per run",
        apart=(),
    ),
    Kind(
        "data_map",
        data_map,
        ("data_maps",),
        "Data map: mean and standard deviation over epochs of the given label's probability, for truly clean and truly "
        "mislabelled training samples; darker cells hold more samples",
        first_seed=True,
    ),
    Kind(
        "agreement",
        agreement,
        ("agreement",),
        "Rank correlation between the scores of every two detectors",
        by_line_up=True,
        first_seed=True,
    ),
)


def draw_all(tables: Callable[[str], pd.DataFrame], folder: Path) -> dict[str, str]:
    """Draws every figure there is data for and gives their captions; `tables` gives a committed file's rows by name."""
    captions = {}
    read = {name: _of_single_runs(tables(name)) for kind in KINDS for name in kind.reads}
    filled = [table[list(FAMILY)].drop_duplicates() for table in read.values() if not table.empty]
    everything = pd.concat(filled) if filled else pd.DataFrame(columns=list(FAMILY))
    usual = read
    if is_ablation(read["accuracy"]):  # one figure shows all of its settings, the others how most runs were trained
        training = usual_training(read["accuracy"])
        usual = {name: _plain(_chosen(table, None, training.to_frame().T)) for name, table in read.items()}
        everything = _chosen(everything, None, training[[*set(training.index) & set(everything)]].to_frame().T)
    for kind in KINDS:
        line_ups = _values(read[kind.reads[0]], "line_up") if kind.by_line_up else [None]
        alike = _families(everything, kind.apart) if kind.apart else {"": everything}
        for line_up, (family, example) in product(line_ups, alike.items()):
            rows = read if kind.draw is variants else usual
            chosen = [_chosen(rows[name], line_up, example[list(kind.apart)]) for name in kind.reads]
            figure = kind.draw(*chosen)
            if figure is not None:
                name = "_".join(slug(part) for part in (kind.name, line_up, family.lower()) if part)
                save(figure, folder, name)
                captions[name] = _caption(kind, chosen[0], line_up)
    return captions


def _of_single_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Without what averaging would add to a detector that is not averaged by its authors: that stands in tables."""
    for column in ("detector", "other"):
        rows = rows[~rows[column].str.contains("average_runs=True", regex=False)] if column in rows else rows
    return rows


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Without variants of detectors and recipes, which the figure of variants has."""
    for column in ("detector", "other", "recipe"):
        rows = rows[~rows[column].str.contains("(", regex=False)] if column in rows else rows
    return rows


def _values(rows: pd.DataFrame, column: str) -> list[str]:
    return [] if rows.empty else list(dict.fromkeys(rows[column]))


def _chosen(rows: pd.DataFrame, line_up: str | None, example: pd.DataFrame) -> pd.DataFrame:
    """The rows of one line-up, if one is given, that are like the example in all that it has."""
    if rows.empty:
        return rows
    if line_up is not None and "line_up" in rows:
        rows = rows[rows["line_up"] == line_up]
    return rows[(rows[list(example)] == example.iloc[0]).all(axis=1)]


def _caption(kind: Kind, rows: pd.DataFrame, line_up: str | None) -> str:
    shows = f"{line_up} line-up: {kind.shows}" if line_up else kind.shows
    return f"{shows}. {about(_first_seed(rows) if kind.first_seed else rows)}"
