"""Figures of how well detectors rank mislabelled samples, and of how far they agree with each other."""

from itertools import product
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from benchmark import reference
from benchmark.display.canvas import (
    COLOURS,
    LABEL_WIDTH,
    LINES,
    REFERENCE_STYLE,
    TITLE_WIDTH,
    heat_map,
    label_margin,
    line_style,
    only_outer_labels,
    panel_per_group,
    panels,
    stretch_towards_one,
)
from benchmark.drawings.rows_to_draw import (
    FAMILY,
    detectors,
    families,
    first_seed,
    one_setting_per_rate,
    titled_settings,
)
from benchmark.statistics.comparisons import compared, mean_aurocs, mean_ranks
from benchmark.statistics.hierarchical import BETTER, SAME, UNDECIDED, WORSE

MOST_DRAWN = 30  # runs that are drawn one by one; of more, the range that 95 % of them are in
RANGE = (0.025, 0.975)
MOST_COMPARED = 16  # detectors in a matrix of every two
MOST_NAMED = 5  # curves in colour, beside the reference
BEHIND: dict[str, Any] = {"color": "0.75", "linewidth": 0.8}
# Fill and hatch, which are told apart without colour.
VERDICTS: dict[str, dict[str, Any]] = {
    BETTER: {"facecolor": "#c6dbef"},
    WORSE: {"facecolor": "#fd8d3c"},
    SAME: {"facecolor": "white", "hatch": "///"},
    UNDECIDED: {"facecolor": "white"},
}


def auc_averaged(averaged: pd.DataFrame) -> Figure | None:
    """The same of scores that are means over trainings, of as many as most."""
    trainings = averaged["runs_averaged"].max()
    rows = averaged[averaged["runs_averaged"] == trainings]
    return auc_by_detector(rows, f"mean scores of {trainings} trainings")


def auc_by_detector(metrics: pd.DataFrame, of: str = "one run") -> Figure | None:
    """AUROC of every detector: a dot per run with its bootstrap interval, a bar at the mean."""
    metrics = metrics[metrics["status"] == "ok"]
    groups = titled_settings(metrics)
    if not groups:
        return None
    ranked = mean_ranks(metrics).index  # the best first; below it, what was not measured in every run
    in_part = metrics[~metrics["detector"].isin(ranked)].groupby("detector")["auroc"].mean()
    order = [*in_part.sort_values(kind="stable").index, *ranked[::-1]]
    labels = [fill(str(label), LABEL_WIDTH) for label in order]
    margin, lines = label_margin(labels)
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
        if len(in_part):
            axis.axhline(len(in_part) - 0.5, color="grey", linewidth=0.8)
        axis.set(
            title=title.replace(", ", ",\n", 1) if columns > 3 else title, xlabel="AUROC", ylim=(-0.6, len(order) - 0.4)
        )
        axis.set_yticks(range(len(order)), labels)
        axis.grid(axis="x", linewidth=0.4)
    stretch_towards_one(axes, min(0.48, metrics["auroc_low"].min()) - 0.02, metrics["auroc_high"].max())
    only_outer_labels(axes)
    handles = [
        Line2D([], [], color=COLOURS[0], marker="o", markersize=3.5, label=f"{of}, 95% interval"),
        Line2D([], [], color="black", marker="|", markersize=9, mew=1.5, linestyle="", label="mean over seeds"),
        Line2D([], [], color="grey", linestyle=":", label="chance"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if len(groups) > 1 else 2)
    sns.despine(figure)
    return figure


def _detector_row(axis: Axes, position: int, runs: pd.DataFrame) -> None:
    """One detector's runs, spread over the row's height so that their intervals can be told apart."""
    if (runs["recipe_name"] == reference.RECIPE).any():
        axis.axhspan(position - 0.5, position + 0.5, color="0.92", linewidth=0)
    if len(runs) > MOST_DRAWN:
        axis.plot(runs["auroc"].quantile(list(RANGE)), [position] * 2, color=COLOURS[0], linewidth=4, alpha=0.4)
    else:
        _every_run(axis, position, runs)
    if len(runs) > 1:
        axis.plot([runs["auroc"].mean()] * 2, [position - 0.38, position + 0.38], color="black", linewidth=1.5)


def every_two(draws: pd.DataFrame, metrics: pd.DataFrame) -> Figure | None:
    """A matrix: how far the detector of a row is ahead of that of a column, and whether that is better or worse."""
    found, means = compared(draws), mean_aurocs(metrics[metrics["status"] == "ok"])
    if found is None or len(means.index.intersection(found.names)) < 2:
        return None
    names = _best([str(name) for name in means.index if name in found.names])
    labels = [fill(f"{number}  {name}", LABEL_WIDTH) for number, name in enumerate(names, 1)]
    figure, (axis,) = panels(1, (0.5 + 0.36 * len(names), 0.6 + 0.34 * len(names)), margin=label_margin(labels)[0])
    for (row, one), (column, other) in product(enumerate(names), repeat=2):
        if one == other:
            axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="0.4", ec="white"))
            continue
        difference = found.difference(one, other)
        axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, ec="0.8", lw=0.5, **VERDICTS[difference.verdict]))
        text = f"{100 * (means[one] - means[other]):+.1f}\n{difference.probability:.0%}".replace("-", "−")
        axis.text(column, row, text, ha="center", va="center", size=6.5, linespacing=1.0)
    axis.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), xlabel="the same detectors, by number")
    axis.set_xticks(range(len(names)), [str(number) for number in range(1, len(names) + 1)])
    axis.set_yticks(range(len(names)), labels)
    for name, label in zip(names, axis.get_yticklabels(), strict=True):
        label.set_fontweight("bold" if name == reference.DETECTOR else "normal")
    axis.tick_params(length=0)
    handles = [Patch(**style, label=verdict, ec="0.5") for verdict, style in VERDICTS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    sns.despine(figure, left=True, bottom=True)
    return figure


def _best(names: list[str]) -> list[str]:
    """As many as can be read in one column of a paper, the reference among them."""
    is_behind = reference.DETECTOR in names[MOST_COMPARED:]
    return [*names[: MOST_COMPARED - is_behind], *[reference.DETECTOR] * is_behind]


def _every_run(axis: Axes, position: int, runs: pd.DataFrame) -> None:
    places = position + (np.linspace(0.25, -0.25, len(runs)) if len(runs) > 1 else np.zeros(1))
    for place, (_, run) in zip(places, runs.sort_values(["noise_seed", "training_seed"]).iterrows(), strict=False):
        axis.plot([run["auroc_low"], run["auroc_high"]], [place, place], color=COLOURS[0], linewidth=0.9)
        axis.plot(run["auroc"], place, "o", color=COLOURS[0], markersize=3)


def roc_curves(roc: pd.DataFrame) -> Figure | None:
    """ROC curves, first seed: the reference as the thick black line, the best others in colour, the rest in grey."""
    roc = first_seed(roc)
    named = _largest_areas(roc, MOST_NAMED)
    styles = dict.fromkeys(detectors(roc), BEHIND) | {name: line_style(index) for index, name in enumerate(named)}
    if reference.DETECTOR in styles:
        styles[reference.DETECTOR] = REFERENCE_STYLE
    chance = np.linspace(0, 1, 101)

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for index, (detector, style) in enumerate(styles.items()):
            part = rows[rows["detector"] == detector]
            x, y = part["false_positive_rate"], part["true_positive_rate"]
            front = 1 if style is BEHIND else 3 if style is REFERENCE_STYLE else 2
            axis.plot(x, y, **style, markevery=(index % 8, 8), zorder=front)
        axis.plot(chance, chance, color="grey", linewidth=0.8, linestyle=":")
        axis.set_xscale("function", functions=(np.sqrt, np.square))
        axis.set_xticks([0, 0.01, 0.05, 0.2, 0.5, 1], ["0", "1", "5", "20", "50", "100"])
        axis.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
        axis.set(xlabel="clean samples flagged (%, square-root scale)", ylabel="mislabelled flagged (%)")
        axis.grid(linewidth=0.4)

    handles = [Line2D([], [], label=name, **style) for name, style in styles.items() if style is not BEHIND]
    handles += [Line2D([], [], label="other detectors", **BEHIND)] if BEHIND in styles.values() else []
    shared = {"entries": len(handles), "sharex": True, "sharey": True}
    return panel_per_group(titled_settings(roc), (3.0, 2.7), draw, handles, **shared)


def _largest_areas(roc: pd.DataFrame, count: int) -> list[str]:
    """The detectors besides the reference whose curves have the largest mean area over settings."""
    others = roc[roc["detector"] != reference.DETECTOR]
    areas = {
        key: np.trapezoid(curve["true_positive_rate"], curve["false_positive_rate"])
        for key, curve in others.groupby(["detector", "run"])
    }
    means = pd.Series(areas, dtype=float).groupby(level=0).mean() if areas else pd.Series(dtype=float)
    return [str(name) for name in means.sort_values(ascending=False, kind="stable").index[:count]]


def auc_by_epochs(auc: pd.DataFrame) -> Figure | None:
    """AUROC when only the first epochs are read: a panel per detector, a line per setting, the reference in grey."""
    groups = titled_settings(auc[auc.groupby("detector")["epochs_read"].transform("nunique") > 1])
    if not groups:
        return None
    rows = pd.concat([group.assign(line=title) for title, group in groups])
    figure = _small_multiples(rows, "epochs_read", "epochs read")
    last = int(rows["epochs_read"].max())
    ticks = [count for count in (1, 2, 5, 10, 20, 40) if count < 0.8 * last] + [last]
    for axis in figure.axes if figure else ():
        axis.set_xscale("log")  # most happens in the first epochs
        axis.set_xticks(ticks, [str(count) for count in ticks])
        axis.minorticks_off()
    return figure


def auc_by_rate(metrics: pd.DataFrame) -> Figure | None:
    """AUROC over the noise rate: a panel per detector, a line per data set, the reference in grey."""
    rows = one_setting_per_rate(metrics[metrics["status"] == "ok"])
    if rows.empty or rows.groupby(list(FAMILY))["rate"].nunique().max() < 2:
        return None
    rows = pd.concat([family.assign(line=name) for name, family in families(rows, FAMILY, ("dataset",)).items()])
    rows = rows.assign(percent=lambda part: 100 * part["rate"])
    return _small_multiples(rows, "percent", "nominal noise rate (%)", dots=True)


def _small_multiples(rows: pd.DataFrame, x: str, x_label: str, dots: bool = False) -> Figure | None:
    """AUROC over `x`, the mean over seeds: a panel per detector, a line per value of `line`."""
    lines = list(dict.fromkeys(rows["line"]))
    means = rows.groupby(["detector", "line", x])["auroc"].mean()
    behind: dict[str, Any] = {"color": "0.7", "linewidth": 2.2}

    def draw(axis: Axes, own: pd.DataFrame) -> None:
        detector = own["detector"].iloc[0]
        for index, line in enumerate(lines):
            style = line_style(index)
            _mean_line(axis, means, reference.DETECTOR, line, **behind, linestyle=LINES[index % len(LINES)])
            _mean_line(axis, means, detector, line, **style | ({"marker": ""} if dots else {}))
            if dots and rows["run"].nunique() <= MOST_DRAWN * len(lines):
                part = own[own["line"] == line]
                axis.plot(part[x], part["auroc"], **style | {"linestyle": "", "markersize": 2.5, "alpha": 0.8})
        axis.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set(xlabel=x_label, ylabel="AUROC")
        axis.grid(linewidth=0.4)

    handles = [Line2D([], [], label=line, **line_style(index)) for index, line in enumerate(lines)]
    same_style = " (same line style)" if len(lines) > 1 else ""
    handles.append(Line2D([], [], **behind, label=reference.DETECTOR + same_style))
    handles.append(Line2D([], [], color="grey", linewidth=0.8, linestyle=":", label="chance"))
    groups = [(fill(name, TITLE_WIDTH), rows[rows["detector"] == name]) for name in detectors(rows)]
    shared = {"entries": len(lines) + 2, "sharex": True, "sharey": True}
    return panel_per_group(groups, (2.9, 1.75), draw, handles, **shared)


def _mean_line(axis: Axes, means: pd.Series, detector: str, line: str, **style: Any) -> None:
    if (detector, line) in means.index:
        mean = means.loc[(detector, line)]
        axis.plot(mean.index, mean, markevery=max(1, len(mean) // 6), **style)


def agreement(pairs: pd.DataFrame) -> Figure | None:
    """Rank correlation between the scores of every two detectors, the mean over runs; similar ones stand together."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    table = pairs.pivot_table("rank_correlation", "detector", "other").dropna(how="all")
    if len(table) < 2:
        return None
    table = table.reindex(columns=table.index)
    distances = 1 - np.nan_to_num((table.to_numpy() + table.to_numpy().T) / 2)
    np.fill_diagonal(distances, 0)
    order = leaves_list(linkage(squareform(distances, checks=False), "average", optimal_ordering=True))
    table = table.iloc[order, order]
    labels = [fill(f"{number}  {name}", LABEL_WIDTH) for number, name in enumerate(table.index, 1)]
    has_numbers = len(labels) <= MOST_COMPARED
    side = 0.5 + (0.34 if has_numbers else 0.16) * len(labels)
    figure, (axis,) = panels(1, (side, side), margin=label_margin(labels)[0])
    image = heat_map(axis, table, "{:.2f}" if has_numbers else "", 1.0)
    numbers = [str(number) for number in range(1, len(labels) + 1)]
    axis.set_xticks(range(len(labels)), numbers, size=7 if has_numbers else 5)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_xlabel("the same detectors, by number")
    figure.colorbar(image, ax=axis, label="rank correlation of scores", location="bottom", shrink=0.6, aspect=40)
    return figure
