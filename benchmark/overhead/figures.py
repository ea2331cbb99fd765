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
)
from benchmark.overhead.tables import OWN_STATE, SETTING, percent, short_titles
from benchmark.reference import DETECTOR

PARTS = {"objective": (COLOURS[3], "////"), "recording": (COLOURS[0], ""), "scoring": (COLOURS[1], "....")}
CAPTIONS = {
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
    for draw, table in ((overhead_by_detector, "overhead"), (overhead_growth, "overhead_growth")):
        if not read(table).empty:
            yield Drawing(draw.__name__, draw, (read(table),), CAPTIONS[draw.__name__])


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
