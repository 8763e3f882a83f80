"""Pictures of what every head looks at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from genpool.errors import InputError
from genpool.evaluation.heatmaps import HeatmapPanel, heatmap_picture
from genpool.evaluation.pictures import save_figure


def panel(heads: int, tokens: int, dim: int, seed: int = 0, title: str = "model") -> HeatmapPanel:
    weights = np.random.default_rng(seed).random((heads, tokens, dim)).astype(np.float32)
    return HeatmapPanel(title, [f"word{number}" for number in range(tokens)], weights)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Keeps every figure that is drawn."""
    drawn: list[Figure] = []

    def keep(figure: Figure, path: Path) -> None:
        drawn.append(figure)
        save_figure(figure, path)

    monkeypatch.setattr("genpool.evaluation.heatmaps.save_figure", keep)
    return drawn


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize("dim", [1, 6])
def test_a_picture_is_written_in_every_format(tmp_path: Path, suffix: str, dim: int) -> None:
    path = tmp_path / f"heads{suffix}"
    heatmap_picture([panel(3, 5, dim)], path)
    assert path.stat().st_size > 1000


def test_every_head_is_drawn_with_its_own_weights(tmp_path: Path, figures: list[Figure]) -> None:
    first, second = panel(2, 4, 3, seed=1), panel(2, 5, 3, seed=2)
    heatmap_picture([first, second], tmp_path / "heads.png")
    images = [axes.images[0] for axes in figures[0].axes if axes.images]
    expected = [*first.weights, *second.weights]
    assert len(images) == len(expected)
    for image, weights in zip(images, expected, strict=True):
        np.testing.assert_array_equal(image.get_array(), weights)


def test_all_models_have_one_colour_scale_that_fits_the_weights(
    tmp_path: Path, figures: list[Figure]
) -> None:
    low, high = panel(2, 40, 30, seed=1), panel(2, 40, 30, seed=2)
    low = HeatmapPanel("low", low.tokens, low.weights / np.float32(100))
    heatmap_picture([low, high], tmp_path / "heads.png")
    limits = {image.get_clim() for axes in figures[0].axes for image in axes.images}
    assert len(limits) == 1
    weights = np.sort(np.concatenate([low.weights.ravel(), high.weights.ravel()]))
    least, most = limits.pop()
    # By counting: one half per cent of the weights lies outside at either end.
    assert np.searchsorted(weights, least) == pytest.approx(0.005 * len(weights), abs=1)
    assert np.searchsorted(weights, most) == pytest.approx(0.995 * len(weights), abs=1)


def test_words_are_named_as_they_are_written(tmp_path: Path, figures: list[Figure]) -> None:
    weights = np.ones((1, 2, 3), dtype=np.float32)
    heatmap_picture([HeatmapPanel("", ["$5", "a" * 40], weights)], tmp_path / "heads.png")
    names = [label.get_text() for label in figures[0].axes[0].get_yticklabels()]
    assert names == ["$5", "a" * 17 + "…"]


def test_a_sentence_without_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        heatmap_picture([panel(2, 0, 3)], tmp_path / "heads.png")
    assert not (tmp_path / "heads.png").exists()
