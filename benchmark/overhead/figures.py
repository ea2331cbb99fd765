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
    Drawing,
    label_margin,
    legend_below,
    line_style,
    panels,
    stretch_towards_one,
)
from benchmark.overhead.tables import OWN_STATE, added_costs, profiled_on, short_titles
from benchmark.reference import DETECTOR, RATE
from benchmark.wording import dataset_title, describe_setting, list_of

NAMED = 4  # of the detectors whose cost is not known, the best
GAP, LETTER = 0.04, 0.0095  # between two labels, and the width of a letter, as shares of a panel
CAPTIONS = {
    "quality_against_cost": (
        "AUROC from one training over what a detector adds to the cost of that training if it is used alone, in units "
        f"of one standard training on cached features. {DETECTOR} is the star. The line is the Pareto front: nothing "
        "that is cheaper finds more. AUROCs are means over pairs of seeds, then over the data sets in the title, at "
        f"{RATE:.0%} symmetric noise; open circles were not measured in every run, so that theirs are of other wrong "
        "labels. Costs are means over the data sets that were profiled with this network, in the same setting if that "
        "was profiled."
    ),
    "overhead_by_detector": (
        "What each detector adds to standard training when it is used alone: time for its own objective, the recording "
        "of its signals and its scoring, in % of that training, and peak memory; medians over rounds with their 95 % "
        "intervals."
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
    for (title, where, points), axis in zip(groups, axes, strict=True):
        axis.set_xscale("log")
        axis.set_xlim(points["cost"].min() / 2, 12 * points["cost"].max())
        axis.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        stretch_towards_one([axis], points["auroc"].min() - 0.08, points["auroc"].max(), along="y")
        _front(axis, points)
        _labelled_points(axis, points)
        axis.set_title(fill(title, 70))
        axis.set(xlabel=f"added cost (% of one standard training){where}", ylabel="AUROC from one training")
        axis.grid(linewidth=0.4)
    star = Line2D([], [], color=COLOURS[3], marker="*", markersize=9, linestyle="", label=DETECTOR)
    front = Line2D([], [], color="0.7", linewidth=1.5, label="Pareto front: nothing cheaper finds more")
    part = Line2D(
        [], [], color=COLOURS[0], marker="o", mfc="white", markersize=4, linestyle="", label="not in every run"
    )
    figure.legend(handles=[star, front, part], loc="outside lower center", ncols=3)
    sns.despine(figure)
    return figure


def _quality_and_cost(costs: pd.DataFrame, metrics: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Of each network that was profiled: a title, where and of whom costs are known, and every detector's two numbers.

    Of several ways to train it, the one with the most data sets. A detector that was not measured in every run has the
    mean of those it was measured in.
    """
    costs = costs[costs["path"] == "fast"]  # what a detector costs alone does not depend on the line-up
    rows = metrics[(metrics["line_up"] == "original") & (metrics["noise"] == "symmetric") & (metrics["status"] == "ok")]
    rows = rows[np.isclose(rows["rate"], RATE)]
    for _, own in rows[rows["backbone"].isin(costs["backbone"])].groupby("backbone"):
        is_profiled = own["detector"].isin(costs["detector"])
        if not is_profiled.any():
            continue
        own = own[own["protocol"] == own[is_profiled].groupby("protocol")["dataset"].nunique().idxmax()]
        aurocs = own.pivot_table("auroc", ["dataset", "noise_seed", "training_seed"], "detector")
        means, cost = aurocs.groupby("dataset").mean(), added_costs(costs, own.iloc[0])
        setting = describe_setting(own.iloc[0], ("backbone", "image_size", "epochs"))
        title = f"{', '.join(map(dataset_title, means.index))}: {setting}"
        points = {"auroc": means.mean(), "cost": cost[cost > 0], "in_all": aurocs.notna().all()}
        unknown = means.mean().drop(cost.index, errors="ignore").sort_values(ascending=False, kind="stable").index
        named = [str(name) for name in unknown if aurocs[name].notna().all()][:NAMED]
        others = [f"{len(unknown) - len(named)} others"] if len(unknown) > len(named) else []
        missing = f"\nCost not measured: {list_of([*named, *others])}" if len(unknown) else ""
        yield title, f"{profiled_on(costs, own.iloc[0])}{missing}", pd.DataFrame(points).dropna()


def pareto_front(points: pd.DataFrame) -> pd.DataFrame:
    """Points such that every one that is as cheap has a lower AUROC; the cheapest first."""
    ordered = points[points["in_all"].astype(bool)].sort_values(["cost", "auroc"], ascending=[True, False])
    return ordered[ordered["auroc"] > ordered["auroc"].cummax().shift(fill_value=-1.0)]


def _front(axis: Axes, points: pd.DataFrame) -> None:
    front = pareto_front(points)
    x, y = [*front["cost"], points["cost"].max()], [*front["auroc"], front["auroc"].iloc[-1]]
    axis.step(x, y, where="post", color="0.7", linewidth=1.5, zorder=1)


def _labelled_points(axis: Axes, points: pd.DataFrame) -> None:
    """Each label stands beside its point, as near as other labels and points allow."""
    shares = (axis.transData + axis.transAxes.inverted()).transform(points[["cost", "auroc"]])
    line: dict[str, Any] = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
    paper: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8}
    taken = [(x - GAP / 3, x + GAP / 3, y) for x, y in shares]  # where something begins and ends, and how high it is
    for name, (x, y) in sorted(zip(points.index, shares, strict=True), key=lambda item: -item[1][1]):
        is_own, width = name == DETECTOR, LETTER * len(str(name))
        shape: dict[str, Any] = {"marker": "*", "markersize": 10} if is_own else {"marker": "o", "markersize": 4}
        shape |= {} if points.loc[name, "in_all"] else {"mfc": "white"}
        axis.plot(*points.loc[name, ["cost", "auroc"]], color=COLOURS[3 if is_own else 0], **shape, zorder=3)
        beside = (x + 0.02, x - 0.02 - width)
        places = [(left, y + rise * GAP / 4) for rise in range(-40, 41) for left in beside]
        places.sort(key=lambda place: abs(place[1] - y) + (0.01 if place[0] < x else 0))
        left, at = next(
            (left, at)
            for left, at in places
            if 0 <= left <= 1 - width
            and all(abs(at - other) >= GAP or end < left or left + width < start for start, end, other in taken)
        )
        taken.append((left, left + width, at))
        axis.annotate(
            str(name), (x, y), (x + (0.02 if left > x else -0.02), at), "axes fraction", va="center", size=7,
            ha="left" if left > x else "right", fontweight="bold" if is_own else "normal", bbox=paper,
            arrowprops=line if abs(at - y) > GAP / 2 else None,
        )  # fmt: skip


def overhead_by_detector(rows: pd.DataFrame) -> Figure:
    """Added time and memory, both on log axes: a row per detector of the first line-up, a marker per setting."""
    rows = rows[rows["line_up"].str.startswith(rows["line_up"].iloc[0])]  # some of them were profiled by themselves
    rows = rows.assign(title=short_titles(rows))
    order = list(rows.groupby("detector")["alone"].mean().sort_values(ascending=False).index)
    labels = [fill(str(label), LABEL_WIDTH) for label in order]
    margin, lines = label_margin(labels)
    figure, (time, memory) = panels(
        2, (2.6, 0.6 + (0.08 + 0.12 * lines) * len(order)), margin=margin, columns=2, sharey=True
    )
    handles = []
    for number, (title, group) in enumerate(rows.groupby("title", sort=True)):
        own, style = group.set_index("detector").reindex(order), line_style(number) | {"linestyle": ""}
        _with_intervals(time, own, "alone", 100, 0.001, style)
        _with_intervals(memory, own, "memory_bytes", 1e-6, own["memory_floor_bytes"] / 1e6, style)
        handles.append(Line2D([], [], label=title, **style))
    time.set(title="time", xlabel="added to standard training (%)", ylim=(-0.6, len(order) - 0.4))
    memory.set(title="peak memory", xlabel="added to standard training (MB)")
    time.set_yticks(range(len(order)), labels)
    for axis, column in ((time, "alone"), (memory, "memory_bytes")):
        if (rows[column] > 0).any():  # on this machine it may be less than can be measured, of all
            axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.grid(linewidth=0.4)
    below: dict[str, Any] = {"color": "0.5", "marker": "<", "mfc": "white", "markersize": 4, "linestyle": ""}
    figure.legend(
        handles=[*handles, Line2D([], [], label="less than can be measured", **below)],
        loc="outside lower center",
        ncols=2,
    )
    sns.despine(figure)
    return figure


def _with_intervals(
    axis: Axes, rows: pd.DataFrame, column: str, scale: float, least: float | pd.Series, style: dict[str, Any]
) -> None:
    """A marker with its interval; an open triangle at the least that can be measured where there is less."""
    values, low, high = (scale * rows[f"{column}{end}"] for end in ("", "_low", "_high"))
    places, is_small = np.arange(len(rows)), (values <= least).to_numpy()
    shown = values.where(~is_small)
    reach = np.stack([shown - low.clip(lower=least), high - shown]).clip(min=0)
    axis.errorbar(shown, places, xerr=reach, **style | {"linestyle": "none"}, elinewidth=0.8)
    floor = pd.Series(least, index=rows.index).where(is_small)
    axis.plot(floor, places, "<", color=style["color"], mfc="white", markersize=4)


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
