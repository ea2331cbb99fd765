"""Figures of what detectors cost: stacked shares of standard training, and growth on log axes."""

from collections.abc import Callable, Iterator
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from benchmark.display.canvas import (
    COLOURS,
    LABEL_WIDTH,
    REFERENCE_STYLE,
    TITLE_WIDTH,
    Drawing,
    label_margin,
    legend_below,
    line_style,
    panels,
    stretch_towards_one,
)
from benchmark.overhead.tables import OWN_STATE, SETTING, added_costs, percent, short_titles
from benchmark.reference import DETECTOR
from benchmark.wording import dataset_title, describe_setting

PARTS = {"objective": (COLOURS[3], "////"), "recording": (COLOURS[0], ""), "scoring": (COLOURS[1], "....")}
RATE = 0.2  # of wrong labels, at which quality is read
GAP, LETTER = 0.045, 0.014  # between two labels, and the width of a letter, as shares of a panel
CAPTIONS = {
    "quality_against_cost": (
        "AUROC from one training over what a detector adds to the cost of that training if it is used alone, in units "
        f"of one standard training on cached features. {DETECTOR} is the star. The line is the Pareto front: nothing "
        "that is cheaper finds more. AUROCs are means over pairs of seeds, then over the data sets in the title, at "
        f"{RATE:.0%} symmetric noise, of the runs that the most detectors were measured in; costs are means over the "
        "data sets that were profiled with this network, in the same setting if that was profiled."
    ),
    "overhead_by_detector": (
        "What each detector adds to standard training (100 %) when it is used alone: its own objective, the recording "
        "of its signals and its scoring, as medians over rounds, with the 95 % interval of their sum. The open diamond "
        "is its share when the whole line-up is recorded in one run. Panels differ in scale."
    ),
    "overhead_growth": (
        "What each detector adds, over the number of training samples, on synthetic features and a very small network: "
        "seconds (objective, recording and scoring together, in 11 epochs) and peak memory. LiNC's own state is its "
        "objective alone, in 3 epochs. The grey line grows linearly."
    ),
}


def overhead_drawings(read: Callable[[str], pd.DataFrame]) -> Iterator[Drawing]:
    """The figures there is data for; `read` returns the rows of a CSV table by name."""
    figures: tuple[tuple[Callable[..., Figure | None], tuple[str, ...]], ...] = (
        (quality_against_cost, ("overhead", "metrics")),
        (overhead_by_detector, ("overhead",)),
        (overhead_growth, ("overhead_growth",)),
    )
    for draw, tables in figures:
        if not read(tables[0]).empty:
            yield Drawing(draw.__name__, draw, tuple(map(read, tables)), CAPTIONS[draw.__name__])


def quality_against_cost(costs: pd.DataFrame, metrics: pd.DataFrame) -> Figure | None:
    """AUROC over added cost: a panel per network, a point per detector, and the Pareto front."""
    groups = list(_quality_and_cost(costs, metrics))
    if not groups:
        return None
    figure, axes = panels(len(groups), (4.6, 3.3), columns=2, entries=2)
    for (title, points), axis in zip(groups, axes, strict=True):
        axis.set_xscale("log")
        axis.set_xlim(points["cost"].min() / 2, 12 * points["cost"].max())
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        stretch_towards_one([axis], points["auroc"].min() - 0.08, points["auroc"].max(), along="y")
        _front(axis, points)
        _labelled_points(axis, points)
        axis.set_title(fill(title, 70))
        axis.set(xlabel="added cost (standard trainings)", ylabel="AUROC from one training")
        axis.grid(linewidth=0.4)
    star = Line2D([], [], color=COLOURS[3], marker="*", markersize=9, linestyle="", label=DETECTOR)
    front = Line2D([], [], color="0.7", linewidth=1.5, label="Pareto front: nothing cheaper finds more")
    figure.legend(handles=[star, front], loc="outside lower center", ncols=2)
    sns.despine(figure)
    return figure


def _quality_and_cost(costs: pd.DataFrame, metrics: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Of each network that was profiled, under a title: the AUROC and the added cost of every detector.

    Of several ways to train it, the one with the most data sets; of its runs, those with the most detectors.
    """
    costs = costs[costs["path"] == "fast"]  # what a detector costs alone does not depend on the line-up
    rows = metrics[(metrics["line_up"] == "original") & (metrics["noise"] == "symmetric") & (metrics["status"] == "ok")]
    rows = rows[np.isclose(rows["rate"], RATE) & rows["detector"].isin(costs["detector"])]
    for _, own in rows[rows["backbone"].isin(costs["backbone"])].groupby("backbone"):
        own = own[own["protocol"] == own.groupby("protocol")["dataset"].nunique().idxmax()]
        aurocs = own.pivot_table("auroc", ["dataset", "noise_seed", "training_seed"], "detector")
        measured = aurocs.notna().sum(axis=1)
        means = aurocs[measured == measured.max()].dropna(axis=1).groupby("dataset").mean()
        cost = added_costs(costs, own.iloc[0])
        setting = describe_setting(own.iloc[0], ("backbone", "image_size", "epochs"))
        title = f"{', '.join(map(dataset_title, means.index))}: {setting}"
        yield title, pd.DataFrame({"auroc": means.mean(), "cost": cost[cost > 0]}).dropna()


def pareto_front(points: pd.DataFrame) -> pd.DataFrame:
    """Points such that every one that is as cheap has a lower AUROC; the cheapest first."""
    ordered = points.sort_values(["cost", "auroc"], ascending=[True, False])
    return ordered[ordered["auroc"] > ordered["auroc"].cummax().shift(fill_value=-1.0)]


def _front(axis: Axes, points: pd.DataFrame) -> None:
    front = pareto_front(points)
    x, y = [*front["cost"], points["cost"].max()], [*front["auroc"], front["auroc"].iloc[-1]]
    axis.step(x, y, where="post", color="0.7", linewidth=1.5, zorder=1)


def _labelled_points(axis: Axes, points: pd.DataFrame) -> None:
    """Labels stand to the right of their points, or below that where another label or point is in the way."""
    shares = (axis.transData + axis.transAxes.inverted()).transform(points[["cost", "auroc"]])
    line: dict[str, Any] = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
    paper: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8}
    labels: list[tuple[float, float, float]] = []  # where they begin and end, and how high they are
    for name, (x, y) in sorted(zip(points.index, shares, strict=True), key=lambda item: -item[1][1]):
        is_own = name == DETECTOR
        shape: dict[str, Any] = {"marker": "*", "markersize": 10} if is_own else {"marker": "o", "markersize": 4}
        axis.plot(*points.loc[name, ["cost", "auroc"]], color=COLOURS[3 if is_own else 0], **shape, zorder=3)
        end = x + 0.025 + LETTER * len(str(name))
        taken = [other for left, right, other in labels if left < end and x < right]
        taken += [other for left, other in shares if x < left < end]
        at = next(place for place in np.arange(y, -9, -GAP / 8) if all(abs(place - other) >= GAP for other in taken))
        labels.append((x, end, at))
        axis.annotate(
            str(name), (x, y), (x + 0.025, at), "axes fraction", va="center", size=7,
            fontweight="bold" if is_own else "normal", arrowprops=line, bbox=paper,
        )  # fmt: skip


def overhead_by_detector(rows: pd.DataFrame) -> Figure:
    """Stacked bars of objective, recording and scoring, of the first line-up: a panel per setting."""
    rows = rows[rows["line_up"] == rows["line_up"].iloc[0]]
    rows = rows.assign(title=short_titles(rows))
    groups = [group for _, group in rows.groupby(SETTING, sort=True)]
    order = list(rows.groupby("detector")["alone"].max().sort_values(ascending=False).index)
    labels = [fill(str(label), LABEL_WIDTH) for label in order]
    margin, lines = label_margin(labels)
    size = (2.9, 0.6 + (0.12 + 0.12 * lines) * len(order))
    figure, axes = panels(len(groups), size, margin=margin, columns=2, sharey=True)
    for number, (group, axis) in enumerate(zip(groups, axes, strict=True)):
        _stacked(axis, group.set_index("detector").reindex(order))
        axis.set_title(fill(group["title"].iloc[0], TITLE_WIDTH))
        axis.set_yticks(range(len(order)), labels)
        axis.tick_params(labelleft=number % 2 == 0)
        axis.set(xlabel="added to standard training (%)", ylim=(-0.6, len(order) - 0.4))
    bars = [
        (axes[0].barh([0], [0], color=colour, hatch=hatch, edgecolor="white"), name)
        for name, (colour, hatch) in PARTS.items()
    ]
    shared = Line2D([], [], color="black", marker="D", mfc="white", markersize=3.5, linestyle="")
    figure.legend(
        [*(bar[0] for bar, _ in bars), shared],
        [*(name for _, name in bars), "in the line-up, where signals are shared"],
        loc="outside lower center",
        ncols=4,
    )
    sns.despine(figure)
    return figure


def _stacked(axis: Axes, rows: pd.DataFrame) -> None:
    places, left = np.arange(len(rows)), np.zeros(len(rows))
    for part, (colour, hatch) in PARTS.items():
        width = 100 * rows[part].fillna(0).clip(lower=0).to_numpy()
        axis.barh(places, width, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0, height=0.7)
        left += width
    total = 100 * rows["alone"]
    reach = np.stack([total - 100 * rows["alone_low"], 100 * rows["alone_high"] - total]).clip(min=0)
    axis.errorbar(total, places, xerr=reach, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.5)
    axis.plot(100 * rows["shared"], places, "D", color="black", mfc="white", markersize=3)
    end = 100 * rows[["alone_high", "shared"]].max(axis=1)
    for place, at, share in zip(places, end, rows["alone"], strict=True):
        if np.isfinite(share):
            axis.annotate(percent(share), (at, place), (5, 0), textcoords="offset points", va="center", size=6.5)
    axis.set_xlim(0, 1.22 * max(1.0, float(np.nanmax(end))))
    axis.grid(axis="x", linewidth=0.4)
    axis.set_axisbelow(True)


def overhead_growth(rows: pd.DataFrame) -> Figure:
    """Added seconds and bytes over the number of samples, both axes logarithmic."""
    rows = rows[(rows["axis"] == "samples") & (rows["added"] > 0)]
    names = list(dict.fromkeys(rows.sort_values("detector", key=lambda column: column.str.lower())["detector"]))
    styles = {name: line_style(number) for number, name in enumerate(names)}
    highlighted: dict[str, Any] = {DETECTOR: {"marker": "o", "markersize": 3}, OWN_STATE: {"linestyle": "--"}}
    styles |= {name: REFERENCE_STYLE | style for name, style in highlighted.items() if name in names}
    figure, axes = panels(2, (3.6, 3.2), entries=len(names), columns=2)
    for axis, (quantity, label, scale) in zip(axes, (("seconds", "seconds", 1), ("bytes", "MB", 1e6)), strict=True):
        part = rows[rows["quantity"] == quantity]
        for name, style in styles.items():
            own = part[part["detector"] == name].sort_values("samples")
            axis.plot(own["samples"], own["added"] / scale, **style)
        axis.set(xscale="log", yscale="log", xlabel="training samples", ylabel=f"added ({label})")
        axis.set_title("time" if quantity == "seconds" else "peak memory")
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        for scaled in (axis.xaxis, axis.yaxis):
            scaled.set_minor_formatter(NullFormatter())
        _linear_guide(axis, part["samples"], part["added"] / scale)
        axis.grid(linewidth=0.4)
    handles = [Line2D([], [], label=name, **style) for name, style in styles.items()]
    legend_below(figure, handles, axes)
    sns.despine(figure)
    return figure


def _linear_guide(axis: Axes, samples: pd.Series, added: pd.Series) -> None:
    ends = np.array([samples.min(), samples.max()], dtype=float)
    middle = np.exp(np.log(added).median()) / np.exp(np.log(samples).median())
    axis.plot(ends, middle * ends, color="0.75", linewidth=3, zorder=0)
