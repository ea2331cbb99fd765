"""What all figures share: theme, styles, grids of panels, legends, heat maps, and files with the same bytes always."""

import matplotlib

matplotlib.use("Agg")

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image

from benchmark.display.svg import minify

COLOURS = sns.color_palette("colorblind")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX<>"  # 45 pairs with the lines before one comes again
DPI = 150
LABEL_WIDTH, TITLE_WIDTH = 48, 42  # characters of a detector's label per line, beside a panel and above it
REFERENCE_STYLE: dict[str, Any] = {"color": "black", "linestyle": "-", "linewidth": 2.4}

sns.set_theme(context="paper", style="ticks")
plt.rcParams.update(
    {
        "svg.hashsalt": "linc-bench",
        "svg.fonttype": "none",
        "savefig.dpi": DPI,
        "savefig.bbox": "tight",
        "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that bytes do not depend on a machine's fonts
        "axes.labelsize": 7.5,
        "axes.titlesize": 8,
        "axes.titlelocation": "left",
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "hatch.linewidth": 0.5,
    }
)


def line_style(index: int) -> dict[str, Any]:
    """Colour, line and marker of the index-th line; line and marker alone tell them apart."""
    colour, line, marker = (cycle[index % len(cycle)] for cycle in (COLOURS, LINES, MARKERS))
    return {"color": colour, "linestyle": line, "marker": marker, "markersize": 3.5, "linewidth": 1.1}


def panels(
    count: int, size: tuple[float, float], margin: float = 0.0, columns: int = 3, entries: int = 0, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A grid of panels of this size in inches, with a margin for long labels and room for a legend's entries below.

    So many columns at most, and no more than it takes for as few rows: four panels are two by two, not three and one.
    """
    rows, alone = -(-count // columns), 1.4 if count == 1 and not margin else 1.0
    columns = -(-count // rows)
    inches = (margin + alone * size[0] * columns, alone * size[1] * rows + 0.4 + 0.17 * -(-entries // max(2, columns)))
    figure, axes = plt.subplots(rows, columns, figsize=inches, squeeze=False, layout="constrained", **shared)
    for unused in axes.flat[count:]:
        unused.remove()
    return figure, list(axes.flat[:count])


def label_margin(labels: list[str]) -> tuple[float, int]:
    """Inches that labels beside a panel need, and how many lines the longest has."""
    lines = [label.split("\n") for label in labels]
    return 0.3 + 0.06 * max(len(line) for label in lines for line in label), max(len(label) for label in lines)


def panel_per_group(
    groups: Sequence[tuple[str, pd.DataFrame]],
    size: tuple[float, float],
    draw: Callable[[Axes, pd.DataFrame], None],
    handles: Sequence[Artist] = (),
    **shared: Any,
) -> Figure | None:
    """Groups of rows under their titles, each drawn into its panel; the legend has what is labelled, and `handles`."""
    if not groups:
        return None
    figure, axes = panels(len(groups), size, **shared)
    for (title, rows), axis in zip(groups, axes, strict=True):
        axis.set_title(title)
        draw(axis, rows)
    only_outer_labels(axes, "sharey" in shared, "sharex" in shared)
    legend_below(figure, [*axes[0].get_legend_handles_labels()[0], *handles], axes)
    sns.despine(figure)
    return figure


def only_outer_labels(axes: list[Axes], share_y: bool = True, share_x: bool = True) -> None:
    """Labels of the x axis where no panel stands below, of a shared y axis in the first column."""
    columns = _columns(axes)
    for index, axis in enumerate(axes):
        is_lowest, is_first = index + columns >= len(axes), index % columns == 0 or not share_y
        axis.tick_params(labelbottom=is_lowest or not share_x, labelleft=is_first)
        axis.set_xlabel(axis.get_xlabel() if is_lowest else "")
        axis.set_ylabel(axis.get_ylabel() if is_first else "")


def stretch_towards_one(axes: list[Axes], lowest: float, highest: float, along: str = "x") -> None:
    """An axis of AUROCs: the nearer to one, the more room, since that is where good detectors differ."""
    highest = min(highest + (1 - highest) / 4, 0.9998)
    ticks: list[float] = []
    for tick in (
        0.5,
        0.6,
        0.7,
        0.8,
        0.85,
        0.9,
        *((0.92, 0.94, 0.96) if highest < 0.97 else (0.95,)),
        0.98,
        0.99,
        0.995,
        0.999,
    ):
        room = np.log10((1 - (ticks[-1] if ticks else 0)) / (1 - tick))  # what is left for its label
        if lowest < tick < highest and room > np.log10((1 - lowest) / (1 - highest)) / 12:
            ticks.append(tick)
    for axis in axes:
        set_scale, set_limits, set_ticks = (getattr(axis, f"set_{along}{part}") for part in ("scale", "lim", "ticks"))
        set_scale("function", functions=(lambda x: -np.log10(np.clip(1 - x, 1e-4, None)), lambda y: 1 - 10.0**-y))
        set_limits(lowest, highest)
        set_ticks(ticks, [f"{tick:g}" for tick in ticks], size=6.5)
        axis.minorticks_off()


def root_scale(axis: Axes, highest: float) -> None:
    """The y axis of counts: few are seen beside many; round numbers that stand apart."""
    ticks = [0]
    for count in (leading * 10**zeros for zeros in range(7) for leading in (1, 2, 5)):
        if count <= highest and np.sqrt(count) - np.sqrt(ticks[-1]) >= np.sqrt(highest) / 6:
            ticks.append(count)
    axis.set_yscale("function", functions=(np.sqrt, np.square))
    axis.set_yticks(ticks, [f"{count:,}" for count in ticks])


def legend_below(figure: Figure, handles: Sequence[Artist], axes: list[Axes]) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=max(2, _columns(axes)), handlelength=4)


def _columns(axes: list[Axes]) -> int:
    grid = axes[0].get_gridspec()
    return 1 if grid is None else grid.ncols


def heat_map(axis: Axes, table: pd.DataFrame, number: str, limit: float, centre: float = 0.0) -> AxesImage:
    """A heat map from centre − limit to centre + limit; with a format for numbers, one in each cell."""
    values = table.to_numpy(dtype=float)
    image = axis.imshow(values, cmap="PuOr_r", vmin=centre - limit, vmax=centre + limit)
    for (row, column), value in np.ndenumerate(values) if number else ():
        text = number.format(value).replace("-", "−") if np.isfinite(value) else "–"
        colour = "white" if abs(value - centre) > 0.65 * limit else "black"
        axis.text(column, row, text, ha="center", va="center", size=6.5, color=colour)
    axis.tick_params(length=0)
    return image


@dataclass(frozen=True)
class Drawing:
    """A figure before it is drawn: the function, the rows it is drawn from, and the caption."""

    name: str
    draw: Callable[..., Figure | None]
    rows: tuple[pd.DataFrame, ...]
    caption: str
    follows_theme: bool = True  # on a page; false if text stands on coloured cells

    @property
    def kind(self) -> str:
        """What figures of several settings have in common."""
        return self.draw.__name__

    def digest(self) -> str:
        """Of what it shows."""
        digest = hashlib.sha256(self.caption.encode())
        for rows in self.rows:
            digest.update(repr([*rows.columns]).encode())
            digest.update(pd.util.hash_pandas_object(rows, index=False, categorize=False).to_numpy().tobytes())
        return digest.hexdigest()

    def render(self, with_pixels: bool) -> dict[str, bytes]:
        """SVG, and PNG if it is wanted, by file name; nothing if there is nothing to draw."""
        figure = self.draw(*map(_without_formulas, self.rows))
        if figure is None:
            return {}
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, not for every format
        vector = BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None, "Creator": None})
        files = {f"{self.name}.svg": minify(vector.getvalue().decode()).encode()}
        if with_pixels:
            files[f"{self.name}.png"] = _as_png(figure)
        plt.close(figure)
        return files


def _without_formulas(rows: pd.DataFrame) -> pd.DataFrame:
    """Names in which matplotlib does not read what is between two dollar signs as mathematics."""
    names = [column for column in ("dataset", "detector", "other") if column in rows]
    return rows.assign(**{name: rows[name].str.replace("$", r"\$", regex=False) for name in names})


def _as_png(figure: Figure) -> bytes:
    """With a palette, which makes it a third as large."""
    pixels, smaller = BytesIO(), BytesIO()
    figure.savefig(pixels, format="png")
    indexed = Image.open(pixels).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    indexed.save(smaller, format="png", optimize=True, dpi=(DPI, DPI))
    return smaller.getvalue()
