"""Texts of the small vocabulary, with a label that one of their words decides."""

from __future__ import annotations

import numpy as np


def make_texts(count: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Returns different texts with their labels: who, man or dog, is named in them."""
    others = ["the", "a", "sleeps", "rests", "runs", "red", "not", "two", ".", ","]
    texts: list[str] = []
    labels: list[str] = []
    while len(texts) < count:
        who = ("man", "dog")[len(texts) % 2]
        words = [str(word) for word in random.choice(others, size=random.integers(3, 8))]
        words.insert(int(random.integers(len(words) + 1)), who)
        text = " ".join(words)
        if text not in texts:
            texts.append(text)
            labels.append(f"the {who}")
    return texts, labels
