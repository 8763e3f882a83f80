"""Pictures: the confusion matrix, the learning curve, and what every head looks at.

Drawn on separate `Figure` objects, without pyplot: no window system, no global state, and the
figures that a user has open are not affected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra, unknown_name
from genpool.evaluation.accuracy import AccuracyReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
#: of a label, and of a token
MAX_LABEL_CHARACTERS, MAX_TOKEN_CHARACTERS = 24, 18
#: usual width of a character in inches, for each point of text size
CHARACTER_INCHES = 0.0085
#: with more classes a cell is too small for its count
MAX_NUMBERED_CLASSES = 20
#: inches of a token's row and of a head's column
ROW_HEIGHT, HEAD_WIDTH = 0.19, 2.3
#: the colour scale leaves this share of the weights out at either end: single peaks would flatten
#: everything else
OUTLIERS = 0.005
LOSS, ACCURACY, RATE = "#b5482a", "#1f5f8b", "#6b6b6b"


def confusion_picture(report: AccuracyReport, path: str | Path) -> None:
    """Draws the confusion matrix of a report: shaded by share, with the number of rows.

    A cell is shaded by its share of the rows of its gold label. The suffix of the path (.png, .svg
    or .pdf) decides the format.
    """
    counts = np.array(report.confusion)  # (gold, predicted)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [_short(label, MAX_LABEL_CHARACTERS) for label in report.labels]
    cell, text_size = _cell_and_text(len(names))
    longest = max(len(name) for name in names) * CHARACTER_INCHES * text_size  # inches
    figure = new_figure(len(names) * cell + longest + 1.5, len(names) * cell + longest + 1.0)
    axes = figure.subplots()
    shading = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    turned = longest > 0.95 * cell
    # parse_math: a label is text of the user, and a "$" in it is a dollar sign.
    axes.set_xticks(
        range(len(names)),
        names,
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
        rotation_mode="anchor" if turned else "default",
        fontsize=text_size,
        parse_math=False,
    )
    axes.set_yticks(range(len(names)), names, fontsize=text_size, parse_math=False)
    axes.set_xlabel("predicted", labelpad=8)
    axes.set_ylabel("gold", labelpad=8)
    axes.set_title(f"{100 * report.accuracy:.2f} % of {report.total:,} rows correct", fontsize=11)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(names) <= MAX_NUMBERED_CLASSES:
        _write_counts(axes, counts, shares, text_size)
    # Inside the frame of the axes, so that the bar is as high as the matrix.
    bar = figure.colorbar(shading, cax=axes.inset_axes((1.03, 0, 0.12 / (len(names) * cell), 1)))
    bar.set_label("share of the gold label's rows", fontsize=9)
    bar.outline.set_visible(False)
    save_figure(figure, path)


def _cell_and_text(classes: int) -> tuple[float, int]:
    """Returns the side of a cell in inches and the size of its text in points."""
    if classes <= 4:
        return 1.2, 10
    if classes <= 8:
        return 0.85, 10
    return (0.45, 8) if classes <= MAX_NUMBERED_CLASSES else (0.22, 6)


def learning_curve_picture(
    rows: Sequence[Mapping[str, Any]],
    path: str | Path,
    metric: str = "dev_accuracy",
    title: str = "accuracy",
) -> None:
    """Draws loss, dev accuracy and, if it changes, the learning rate over the steps of a run.

    Args:
        rows: the evaluations, each with the keys step, train_loss and `metric`, and optionally
            epoch and learning_rate. A value that is None or not finite is left out of its curve.
        path: the file to write; its suffix (.png, .svg or .pdf) decides the format.
        metric: the key of the score on dev, at most 1.
        title: its name in the picture.
    """
    _check_rows(rows, metric)
    rates = {row["learning_rate"] for row in rows if _known(row, "learning_rate")} - {0}
    heights = [3, 3, 1.3] if len(rates) > 1 else [3, 3]
    figure = new_figure(7.5, 1.0 + 0.85 * sum(heights))
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    _curve(panels[0], rows, "train_loss", "training loss", LOSS)
    _curve(panels[1], rows, metric, f"dev {title}", ACCURACY)
    _mark_best(panels[1], rows, metric)
    if len(rates) > 1:
        _curve(panels[2], rows, "learning_rate", "learning rate", RATE, drawstyle="steps-post")
        panels[2].set_yscale("log")
        # The first and the last rate: on such a flat panel the usual ticks overlap.
        ends = [min(rates), max(rates)]
        panels[2].set_yticks(ends, [f"{rate:.3g}" for rate in ends])
        panels[2].minorticks_off()
    _tidy_scales(panels)
    panels[-1].set_xlabel("step")
    figure.align_ylabels(list(panels))
    save_figure(figure, path)


def _write_counts(axes: Axes, counts: Any, shares: Any, size: int) -> None:
    for (gold, predicted), count in np.ndenumerate(counts):
        share = shares[gold, predicted]
        below = f"\n{100 * share:.0f} %" if len(counts) <= 8 else ""
        colour = "white" if share > 0.5 else "black"
        axes.text(
            predicted, gold, f"{count:,}{below}", ha="center", va="center", color=colour, size=size
        )


def _curve(
    axes: Axes, rows: Sequence[Mapping[str, Any]], key: str, name: str, colour: str, **style: Any
) -> None:
    points = [(row["step"], row[key]) for row in rows if _known(row, key)]
    # Markers show where a run was evaluated, until they would merge into a band.
    marker = "o" if len(points) <= 60 else ""
    steps, values = [step for step, _ in points], [value for _, value in points]
    axes.plot(steps, values, color=colour, marker=marker, markersize=3.5, linewidth=1.5, **style)
    axes.set_ylabel(name)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _tidy_scales(panels: Sequence[Axes]) -> None:
    with require_extra("A picture", "train"):
        from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

    panels[1].yaxis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
    panels[-1].xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    panels[-1].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _mark_best(axes: Axes, rows: Sequence[Mapping[str, Any]], metric: str) -> None:
    scored = [row for row in rows if _known(row, metric)]
    if not scored:
        return
    best = max(scored, key=lambda row: float(row[metric]))  # of equals, the earliest
    axes.plot([best["step"]], [best[metric]], "o", color=ACCURACY, markersize=8, mfc="none")
    epoch = "" if best.get("epoch") is None else f", epoch {round(best['epoch'], 2):g}"
    # In the title, where no curve can run through it.
    axes.set_title(
        f"best {100 * best[metric]:.2f} % at step {best['step']:,}{epoch}",
        fontsize=9,
        loc="right",
        color=ACCURACY,
    )


def _known(row: Mapping[str, Any], key: str) -> bool:
    value = row.get(key)
    return value is not None and math.isfinite(value)


def _check_rows(rows: Sequence[Mapping[str, Any]], metric: str) -> None:
    if not rows:
        raise InputError("no evaluations to draw")
    for number, row in enumerate(rows, start=1):
        for key in ("step", "train_loss", metric):
            if key not in row:
                keys = ", ".join(map(str, row)) or "nothing"
                raise InputError(f"evaluation {number} has no {key!r}; it holds {keys}")


def _short(name: str, longest: int) -> str:
    flat = " ".join(name.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def new_figure(width: float, height: float) -> Figure:
    with require_extra("A picture", "train"):
        from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | Path) -> None:
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(f"{path}: {unknown_name('picture format', kind, FORMATS)}")
    with atomic_file(path) as temporary:
        # "tight": the frame includes the names, however long, instead of cutting them.
        figure.savefig(temporary, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.15)


@dataclass(frozen=True)
class HeatmapPanel:
    """The heads of one model on one sentence."""

    title: str
    tokens: Sequence[str]  # from the top to the bottom
    weights: NDArray[np.float32]  # (heads, tokens, dimensions), or (heads, tokens, 1) if scalar


def heatmap_picture(panels: Sequence[HeatmapPanel], path: str | Path) -> None:
    """Draws the heads of one model beside each other, and several models below each other.

    All panels share one colour scale (the paper's figure 3).
    """
    if not panels or any(not panel.weights.size for panel in panels):
        raise InputError("there is nothing to draw; expected a sentence with one word or more.")
    heads = max(len(panel.weights) for panel in panels)
    heights = [max(1.0, ROW_HEIGHT * len(panel.tokens)) for panel in panels]
    figure = new_figure(1.6 + HEAD_WIDTH * heads, sum(heights) + 0.9 * len(panels))
    grid = figure.subplots(len(panels), heads, squeeze=False, height_ratios=heights)
    low, high = colour_limits(panels)
    image = None
    for row, panel in zip(grid, panels, strict=True):
        for number, axes in enumerate(row):
            if number >= len(panel.weights):
                axes.set_visible(False)
                continue
            image = axes.imshow(
                panel.weights[number],
                aspect="auto",
                cmap="magma_r",
                vmin=low,
                vmax=high,
                interpolation="nearest",
            )
            axes.set_title(f"head {number + 1}", fontsize=9)
            axes.tick_params(length=0, labelsize=7)
            tokens = panel.tokens if number == 0 else []
            names = [_short(token, MAX_TOKEN_CHARACTERS) for token in tokens]
            axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
            axes.set_xticks([0, panel.weights.shape[2] - 1], ["1", str(panel.weights.shape[2])])
        row[0].set_ylabel(panel.title, fontsize=9)
        row[len(panel.weights) // 2].set_xlabel("dimension", fontsize=8)
    if image is not None:
        bar = figure.colorbar(image, ax=grid, fraction=0.015, pad=0.01)
        bar.set_label("attention weight", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
    save_figure(figure, path)


def colour_limits(panels: Sequence[HeatmapPanel]) -> tuple[float, float]:
    """Returns the weights at the two ends of the colour scale that all panels share."""
    weights = np.concatenate([panel.weights.ravel() for panel in panels])
    low, high = np.quantile(weights, [OUTLIERS, 1 - OUTLIERS])
    return float(low), max(float(high), float(low) + 1e-9)
