"""A small recipe, its tables, and a teacher that needs no weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

RECIPE = """
[teacher]
model = "a-teacher"
[corpus]
tables = ["train.tsv:a,b"]
[embedding]
word_dim = 8
frozen = false
character_maps = 2
dropout = 0.1
[encoder]
name = "bilstm"
hidden_dim = 6
layers = 1
[pooling]
name = "generalized"
heads = 2
hidden_dim = 4
initial_std = 0.3
[projection]
dim = 5
[vocabulary]
lower_case = true
[training]
epochs = 3
batch_size = 8
learning_rate = 0.01
warm_up = 5
dev = "dev.tsv"
"""
WORDS = ["man", "dog", "cat", "park", "runs", "sleeps", "eats", "sits"]


class BagOfWords:
    """Stands in for a large model: the sum of fixed random vectors of the words."""

    calls = 0

    def encode(self, sentences):
        BagOfWords.calls += 1
        table = np.random.default_rng(1).normal(size=(len(WORDS), 6))
        sums = [sum(table[WORDS.index(w)] for w in s.split() if w in WORDS) for s in sentences]
        return np.stack([row / np.linalg.norm(row) for row in sums]).astype(np.float32)


def sentence(random: np.random.Generator) -> str:
    return "the " + " ".join(random.choice(WORDS, random.integers(2, 5), replace=False))


def write_tables(folder: Path) -> None:
    """train.tsv with 60 pairs and dev.tsv with 20 scored ones."""
    random = np.random.default_rng(0)
    rows = "\n".join(f"{sentence(random)}\t{sentence(random)}" for _ in range(60))
    (folder / "train.tsv").write_text(f"a\tb\n{rows}\n")
    scored = "\n".join(f"{n % 5}\t{sentence(random)}\t{sentence(random)}" for n in range(20))
    (folder / "dev.tsv").write_text(f"score\tsentence1\tsentence2\n{scored}\n")
