"""The method's phases as a diagram, the paper's first figure; it needs no data."""

from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from benchmark.display.canvas import COLOURS, Drawing

CAPTION = (
    "The phases of LiNC: a warm-up that learns a trust value per sample, a mixture of three components over the trust, "
    "and a soft and then a hard correction of the noisy component alone. Solid arrows: what a phase reads; dashed "
    "arrows: the targets with which the same model is trained on. It is a drawing of the method for any n, rate, seed, "
    "backbone and number of epochs, and shows no measurement."
)
WIDTH, GAP = 2.35, 0.3  # of a phase's box and between two, in inches
MODEL = (
    r"training sample $x_i$ with given label $\tilde{y}_i$   $\rightarrow$   model $f_\theta$   "
    r"$\rightarrow$   class probabilities $p_i = \mathrm{softmax}(f_\theta(x_i))$"
)
WARM_UP = r"""every sample is trained towards
$q_i = (1-\alpha_i)\,\mathrm{stopgrad}(p_i) + \alpha_i\,e_{\tilde{y}_i}$

its trust $\alpha_i$, 1 at first, is learned too:
model agrees with $\tilde{y}_i$: $\alpha_i$ falls less
model disagrees: $\alpha_i$ falls"""
SOFT = r"""noisy component:
target is the prediction $p_i$

ambiguous and clean components:
target $q_i$ as in the warm-up"""
HARD = r"""noisy component, relabelled once:
label $\hat{y}_i = \arg\max\, p_i$

ambiguous and clean components:
given label $\tilde{y}_i$, as it was"""
PHASES = (
    ("1  Soft warm-up", "epochs 1 … w", WARM_UP),
    ("2  Mixture over the trust", "once, after epoch w", ""),
    ("3  Soft correction", "epochs w + 1 … w + s", SOFT),
    ("4  Hard correction", "from epoch w + s + 1", HARD),
)


def overview() -> Figure:
    """Model, warm-up, mixture, soft and hard correction, from left to right in the order of training."""
    total = len(PHASES) * (WIDTH + GAP) - GAP
    figure = plt.figure(figsize=(total + 0.2, 4.0))
    axis = figure.add_axes((0, 0, 1, 1), xlim=(-0.1, total + 0.1), ylim=(0, 4))
    axis.axis("off")
    write = partial(axis.text, ha="center", va="center", size=8.2)
    _box(axis, 0, 3.25, total, 0.65, "0.9")
    write(total / 2, 3.575, MODEL, size=11)
    for index, (title, when, text) in enumerate(PHASES):
        left = index * (WIDTH + GAP)
        middle = left + WIDTH / 2
        _box(axis, left, 0.35, WIDTH, 2.2, "white")
        write(middle, 2.37, title, size=10, weight="bold")
        write(middle, 2.13, when, style="italic")
        write(middle, 1.2, text, linespacing=1.5)
        if index:
            _arrow(axis, (left - GAP, 1.4), (left, 1.4), "-")
        if text:
            _arrow(axis, (middle - 0.25, 3.25), (middle - 0.25, 2.55), "-")
            _arrow(axis, (middle + 0.25, 2.55), (middle + 0.25, 3.25), "--")
            write(middle - 0.32, 2.9, "$p_i$", ha="right", size=8)
            write(middle + 0.32, 2.9, "targets", ha="left")
    _mixture(axis, WIDTH + GAP, 0.75)
    write(WIDTH + GAP / 2, 1.52, r"$\alpha_i$", va="bottom", size=9)
    write(total / 2, 0.12, r"LiNC as a detector: the score of a sample is $1-\alpha_i$ after epoch w.", size=8)
    return figure


def _mixture(axis: Axes, left: float, bottom: float) -> None:
    """Three bell curves over the trust, in the box that begins at `left`."""
    x, start, width = np.linspace(0, 1, 200), left + 0.15, WIDTH - 0.3
    write = partial(axis.text, ha="center", size=8.2)
    parts = (
        ("noisy", 0.2, 0.08, 0.62, COLOURS[6], "////"),
        ("ambiguous", 0.52, 0.10, 0.42, "0.75", "\\\\\\\\"),
        ("clean", 0.83, 0.06, 0.95, COLOURS[2], ""),
    )
    for name, mean, deviation, height, colour, hatch in parts:
        top = bottom + height * np.exp(-(((x - mean) / deviation) ** 2) / 2)
        style: dict[str, Any] = {"facecolor": colour, "edgecolor": "black", "hatch": hatch, "lw": 0.6, "alpha": 0.6}
        axis.fill_between(start + x * width, bottom, top, **style)
        write(start + mean * width, bottom + height + 0.04, name, va="bottom")
    axis.plot([start, start + width], [bottom, bottom], color="black", linewidth=0.8)
    write(left + WIDTH / 2, bottom - 0.06, r"trust $\alpha_i$: low $\longrightarrow$ high", va="top")


def _box(axis: Axes, left: float, bottom: float, width: float, height: float, colour: str) -> None:
    axis.add_patch(
        FancyBboxPatch((left, bottom), width, height, boxstyle="round,pad=0,rounding_size=0.08", fc=colour, ec="black")
    )


def _arrow(axis: Axes, start: tuple[float, float], end: tuple[float, float], line: str) -> None:
    style = {"arrowstyle": "-|>", "linestyle": line, "color": "black", "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, arrowprops=style)


OVERVIEW = Drawing("overview", overview, (), CAPTION, follows_theme=False)
