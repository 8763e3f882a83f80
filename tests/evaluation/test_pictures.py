"""The pictures hold the given numbers, name words as they are written, and touch nothing else."""

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from genpool.errors import InputError
from genpool.evaluation.pictures import HeatmapPanel, heatmap_picture, learning_curve_picture


def curve(length=8):
    return [
        {
            "step": 100 * (i + 1),
            "epoch": (i + 1) / 4,
            "train_loss": 1 / (i + 1),
            "dev_accuracy": [0.5, 0.6, 0.7, 0.8, 0.79][i % 5],
            "learning_rate": 4e-4 / 2 ** (i // 3),
        }
        for i in range(length)
    ]


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved, with the real saving still done."""
    figures, save = [], Figure.savefig

    def keep(figure, *arguments, **options):
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def test_curves_hold_the_given_points_and_mark_the_earliest_best(tmp_path, drawn):
    rows = [*curve(), {**curve()[3], "step": 900}]
    learning_curve_picture(rows, tmp_path / "l.png")
    loss, accuracy, rate = drawn[0].axes
    for axes, key in ((loss, "train_loss"), (accuracy, "dev_accuracy"), (rate, "learning_rate")):
        assert axes.lines[0].get_xdata().tolist() == [row["step"] for row in rows]
        assert axes.lines[0].get_ydata().tolist() == [row[key] for row in rows]
    assert accuracy.lines[1].get_xydata().tolist() == [[400, 0.8]]
    assert accuracy.get_title("right") == "best 80.00 % at step 400, epoch 1"


@pytest.mark.parametrize(
    "change", [{"learning_rate": 1e-3}, {"learning_rate": None, "dev_accuracy": None}]
)
def test_learning_rate_that_does_not_change_has_no_panel(tmp_path, drawn, change):
    learning_curve_picture([{**row, **change} for row in curve()], tmp_path / "l.png")
    assert [axes.get_ylabel() for axes in drawn[0].axes] == ["training loss", "dev accuracy"]


def test_values_that_are_missing_or_not_finite_are_left_out(tmp_path, drawn):
    rows = curve(4)
    rows[0]["dev_accuracy"], rows[1]["dev_accuracy"] = None, float("nan")
    rows[3]["train_loss"] = float("inf")
    learning_curve_picture(rows, tmp_path / "l.png")
    assert drawn[0].axes[0].lines[0].get_xdata().tolist() == [100, 200, 300]
    assert drawn[0].axes[1].lines[0].get_xdata().tolist() == [300, 400]


def test_each_format_is_written_and_no_global_state_is_touched(tmp_path):
    before, pyplot = dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules
    for kind, beginning in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        heatmap_picture([panel(1, 2, 3)], tmp_path / f"l.{kind}")
        assert (tmp_path / f"l.{kind}").read_bytes().startswith(beginning)
    assert len(list(tmp_path.iterdir())) == 3
    learning_curve_picture(curve(), tmp_path / "l.png")
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == pyplot


def panel(heads: int, tokens: int, dim: int, seed: int = 0, title: str = "model") -> HeatmapPanel:
    weights = np.random.default_rng(seed).random((heads, tokens, dim)).astype(np.float32)
    return HeatmapPanel(title, [f"word{number}" for number in range(tokens)], weights)


def test_every_head_is_drawn_with_its_own_weights_and_the_others_are_hidden(tmp_path, drawn):
    first, second = panel(3, 4, 3, seed=1), panel(2, 5, 3, seed=2)
    heatmap_picture([first, second], tmp_path / "heads.png")
    images = [axes.images[0] for axes in drawn[0].axes if axes.images and axes.get_visible()]
    expected = [*first.weights, *second.weights]
    assert [axes.get_visible() for axes in drawn[0].axes[:6]] == [True] * 5 + [False]
    for image, weights in zip(images, expected, strict=True):
        np.testing.assert_array_equal(image.get_array(), weights)


def test_all_models_have_one_colour_scale_that_fits_the_weights(tmp_path, drawn):
    low, high = panel(2, 40, 30, seed=1), panel(2, 40, 30, seed=2)
    low = HeatmapPanel("low", low.tokens, low.weights / np.float32(100))
    heatmap_picture([low, high], tmp_path / "heads.png")
    limits = {image.get_clim() for axes in drawn[0].axes for image in axes.images}
    assert len(limits) == 1
    weights = np.sort(np.concatenate([low.weights.ravel(), high.weights.ravel()]))
    least, most = limits.pop()
    # By counting: one half per cent of the weights lies outside at either end.
    assert np.searchsorted(weights, least) == pytest.approx(0.005 * len(weights), abs=1)
    assert np.searchsorted(weights, most) == pytest.approx(0.995 * len(weights), abs=1)


def test_words_are_named_as_they_are_written(tmp_path, drawn):
    weights = np.ones((1, 2, 3), dtype=np.float32)
    heatmap_picture([HeatmapPanel("", ["$5", "a" * 40], weights)], tmp_path / "heads.png")
    names = [label.get_text() for label in drawn[0].axes[0].get_yticklabels()]
    assert names == ["$5", "a" * 17 + "…"]


@pytest.mark.parametrize(
    ("name", "tokens", "message"),
    [
        ("h.pngg", 2, "unknown picture format 'pngg'. Did you mean 'png'"),
        ("h", 2, "unknown picture format ''"),
        ("h.png", 0, "nothing to draw"),
    ],
)
def test_other_formats_and_sentences_without_words_are_refused(tmp_path, name, tokens, message):
    with pytest.raises(InputError, match=message):
        heatmap_picture([panel(2, tokens, 3)], tmp_path / name)
    assert not list(tmp_path.iterdir())
