"""Explanations with chosen values, and the pages that show them."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

import numpy as np

from genpool.inference.explanation import Explanation, LabelExplanation, LeaveOneOut
from genpool.text import Token


def made_up(
    sentence: str,
    words: list[str],
    shares: Sequence[Sequence[float]],
    turns: Sequence[float] | None = None,
    prediction: LabelExplanation | None = None,
) -> Explanation:
    """An explanation with these shares (heads, tokens), spread over two dimensions.

    Without a token, the vector and all heads turn by `turns` degrees; default: 10, 20, ...
    """
    tokens = [Token(word, 0, 0) for word in words]
    weights = np.array(shares, dtype=np.float32)[:, :, None] * np.array([0.5, 1.5], np.float32)
    angles = np.radians(turns if turns is not None else 10.0 * np.arange(1, len(words) + 1))
    without = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # (tokens, 2)
    heads = len(weights)
    vectors = LeaveOneOut(
        vector=np.array([1.0, 0.0]),
        heads=np.tile([1.0, 0.0], (heads, 1)),
        vector_without=without,
        heads_without=np.tile(without, (heads, 1, 1)),
    )
    return Explanation(sentence, tokens, weights, vectors, prediction=prediction)


class Page(HTMLParser):
    """The tags of a page, its words with their attributes, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._attributes: dict[str, str | None] | None = None
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes = dict(attrs) if tag == "span" else None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._attributes is not None:
            self.words.append((data, self._attributes))
            self._attributes = None
