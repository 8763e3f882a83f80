"""Pictures: the learning curve of a run, and what every head looks at.

Drawn without pyplot: no window system, no global state; the figures of a user are not affected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra, unknown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
MAX_TOKEN_CHARACTERS = 18
#: inches of a token's row and of a head's column
ROW_HEIGHT, HEAD_WIDTH = 0.19, 2.3
#: the colour scale leaves this share of the weights out at either end: single peaks would flatten
#: everything else
OUTLIERS = 0.005
LOSS, ACCURACY, RATE = "#b5482a", "#1f5f8b", "#6b6b6b"


def learning_curve_picture(
    rows: Sequence[Mapping[str, Any]],
    path: str | Path,
    metric: str = "dev_accuracy",
    title: str = "accuracy",
) -> None:
    """Draws loss, dev accuracy and, if it changes, the learning rate over the steps of a run.

    rows are the evaluations (step, train_loss, `metric`, epoch, learning_rate); a value that is
    None or not finite is left out. `title` is the name of the metric, which is at most 1.
    """
    with require_extra("A picture", "train"):
        from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

    rates = {row["learning_rate"] for row in rows if _known(row, "learning_rate")} - {0}
    heights = [3, 3, 1.3] if len(rates) > 1 else [3, 3]
    figure = new_figure(7.5, 1.0 + 0.85 * sum(heights))
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    _curve(panels[0], rows, "train_loss", "training loss", LOSS)
    _curve(panels[1], rows, metric, f"dev {title}", ACCURACY)
    panels[1].yaxis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
    scored = [row for row in rows if _known(row, metric)]
    if scored:
        best = max(scored, key=lambda row: float(row[metric]))  # of equals, the earliest
        panels[1].plot([best["step"]], [best[metric]], "o", color=ACCURACY, ms=8, mfc="none")
        epoch = "" if best.get("epoch") is None else f", epoch {round(best['epoch'], 2):g}"
        # In the title, where no curve can run through it.
        text = f"best {100 * best[metric]:.2f} % at step {best['step']:,}{epoch}"
        panels[1].set_title(text, fontsize=9, loc="right", color=ACCURACY)
    if len(rates) > 1:
        _curve(panels[2], rows, "learning_rate", "learning rate", RATE, drawstyle="steps-post")
        panels[2].set_yscale("log")
        # The first and the last rate: on such a flat panel the usual ticks overlap.
        ends = [min(rates), max(rates)]
        panels[2].set_yticks(ends, [f"{rate:.3g}" for rate in ends])
        panels[2].minorticks_off()
    panels[-1].xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    panels[-1].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    panels[-1].set_xlabel("step")
    figure.align_ylabels(list(panels))
    save_figure(figure, path)


def _curve(
    axes: Axes, rows: Sequence[Mapping[str, Any]], key: str, name: str, colour: str, **style: Any
) -> None:
    known = [row for row in rows if _known(row, key)]
    steps, values = [row["step"] for row in known], [row[key] for row in known]
    # Markers show where a run was evaluated, until they would merge into a band.
    marker = "o" if len(known) <= 60 else ""
    axes.plot(steps, values, color=colour, marker=marker, markersize=3.5, linewidth=1.5, **style)
    axes.set_ylabel(name)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _known(row: Mapping[str, Any], key: str) -> bool:
    value = row.get(key)
    return value is not None and math.isfinite(value)


def new_figure(width: float, height: float) -> Figure:
    """Returns an empty figure of a size in inches."""
    with require_extra("A picture", "train"):
        from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Writes a figure in the format of the path's suffix."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(f"{path}: {unknown_name('picture format', kind, FORMATS)}")
    with atomic_file(path) as temporary:
        # "tight": the frame includes the names, however long, instead of cutting them.
        figure.savefig(temporary, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.15)


class HeatmapPanel(NamedTuple):
    """The heads of one model on one sentence."""

    title: str
    tokens: Sequence[str]  # from the top to the bottom
    weights: NDArray[np.float32]  # (heads, tokens, dimensions), or (heads, tokens, 1) if scalar


def heatmap_picture(panels: Sequence[HeatmapPanel], path: str | Path) -> None:
    """Draws heads beside each other and models below, in one colour scale: the paper's figure 3."""
    if not panels or any(not panel.weights.size for panel in panels):
        raise InputError("there is nothing to draw; expected a sentence with one word or more.")
    heads = max(len(panel.weights) for panel in panels)
    heights = [max(1.0, ROW_HEIGHT * len(panel.tokens)) for panel in panels]
    figure = new_figure(1.6 + HEAD_WIDTH * heads, sum(heights) + 0.9 * len(panels))
    grid = figure.subplots(len(panels), heads, squeeze=False, height_ratios=heights)
    values = np.concatenate([panel.weights.ravel() for panel in panels])
    low, high = map(float, np.quantile(values, [OUTLIERS, 1 - OUTLIERS]))
    scale = {"cmap": "magma_r", "vmin": low, "vmax": max(high, low + 1e-9)}
    for row, panel in zip(grid, panels, strict=True):
        for axes in row[len(panel.weights) :]:
            axes.set_visible(False)
        for number, (axes, weights) in enumerate(zip(row, panel.weights, strict=False)):
            image = axes.imshow(weights, aspect="auto", interpolation="nearest", **scale)
            axes.set_title(f"head {number + 1}", fontsize=9)
            axes.tick_params(length=0, labelsize=7)
            names = [_short(token) for token in panel.tokens] if number == 0 else []
            # parse_math: a word is text of the user, and a "$" in it is a dollar sign.
            axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
            axes.set_xticks([0, weights.shape[1] - 1], ["1", str(weights.shape[1])])
        row[0].set_ylabel(panel.title, fontsize=9)
        row[len(panel.weights) // 2].set_xlabel("dimension", fontsize=8)
    bar = figure.colorbar(image, ax=grid, fraction=0.015, pad=0.01)
    bar.set_label("attention weight", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    save_figure(figure, path)


def _short(token: str) -> str:
    flat = " ".join(token.split())
    return flat if len(flat) <= MAX_TOKEN_CHARACTERS else flat[: MAX_TOKEN_CHARACTERS - 1] + "…"
