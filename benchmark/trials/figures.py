"""The figure of the trials of audits: how many labels an audit says are wrong at least, and how many are."""

from collections.abc import Callable, Iterator

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from benchmark.display.canvas import Drawing, legend_below, line_style, panels
from benchmark.trials.tables import COUNTS
from benchmark.wording import dataset_title

CAPTION = (
    "What an audit says without a review over the labels that are wrong, per trial: its lower bound at the foot of the "
    "line, which should be below the grey diagonal, and at the marker its estimate for errors that are spread evenly."
)


def audit_drawings(read: Callable[[str], pd.DataFrame]) -> Iterator[Drawing]:
    if len(rows := read(COUNTS)):
        yield Drawing(audit_counts.__name__, audit_counts, (rows,), CAPTION)


def audit_counts(rows: pd.DataFrame) -> Figure | None:
    """Estimated over true shares of wrong labels."""
    known = rows[rows["is_known"]]
    if known.empty:
        return None
    names = sorted(known["dataset"].unique())
    figure, axes = panels(1, (3.4, 2.8), entries=len(names))
    for number, name in enumerate(names):
        own, style = known[known["dataset"] == name], line_style(number) | {"linestyle": "none"}
        aside = 0.3 * (number - (len(names) - 1) / 2)  # so that data sets with the same share stand side by side
        reach = 100 * (own["estimate"] - own["low"]).clip(lower=0), 0 * own["low"]
        axes[0].errorbar(
            100 * own["share"] + aside, 100 * own["estimate"], yerr=reach, label=dataset_title(name), elinewidth=0.7,
            alpha=0.8, **style,
        )  # fmt: skip
    most = 100 * known[["share", "estimate"]].max().max()
    axes[0].plot([0, most], [0, most], color="0.6", linewidth=1.0, zorder=0)
    axes[0].set(xlabel="labels that are wrong (%)", ylabel="lower bound and estimate (%)")
    axes[0].set(xlim=(-1.5, 100 * known["share"].max() + 2), ylim=(-1, 1.05 * most))
    axes[0].grid(linewidth=0.4)
    legend_below(figure, axes[0].get_legend_handles_labels()[0], axes)
    sns.despine(figure)
    return figure
