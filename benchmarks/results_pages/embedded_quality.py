"""How good the embedded encoder is, beside its teacher and the mean of its word vectors.

    python -m benchmarks.results_pages.embedded_quality --glove GLOVE

Writes results/embedded.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.data import data_path
from benchmarks.pages import markdown_table, versions_line, write_page
from benchmarks.speed.others import MINILM
from genpool import SentenceEncoder
from genpool.data import TableReader
from genpool.distillation.teacher import load_teacher
from genpool.evaluation.similarity import cosine_pairs
from genpool.text import WordTokenizer, read_vectors

Array = NDArray[np.floating]
Encode = Callable[[list[str]], Array]
TABLES = {"STS-B dev": "stsb/dev", "STS-B test": "stsb/test", "SICK test": "sick/test"}
DIMENSIONS = (384, 256, 128, 64, 32)


def scores_and_cosines(table: str, encode: Encode) -> tuple[Array, Array]:
    """Returns people's scores of the pairs of a table, and the cosines of their vectors."""
    reader = TableReader(data_path(f"{table}.tsv.xz"))
    examples = list(reader.read(reader.splits()[0]))
    first = encode([example.first for example in examples])
    second = encode([str(example.second) for example in examples])
    scores = np.array([example.score for example in examples], float)
    return scores, cosine_pairs(first, second)


def spearmans(encode: Encode) -> list[float]:
    """Returns Spearman's correlation of the cosine with the scores, one for each table."""
    return [
        float(spearmanr(*scores_and_cosines(table, encode)).statistic) for table in TABLES.values()
    ]


def mean_of_glove(path: Path) -> Encode:
    """Returns a function from sentences to the means of their words' vectors.

    Words without a vector are skipped.
    """
    vectors, tokenizer = read_vectors(path), WordTokenizer()

    def encode(sentences: list[str]) -> Array:
        means = []
        for sentence in sentences:
            rows = [vectors.find(word) for word in tokenizer.words(sentence)]
            known = [row for row in rows if row is not None]
            means.append(vectors.matrix[known].mean(axis=0) if known else np.zeros(vectors.dim))
        return np.stack(means)

    return encode


def quality_row(name: str, encode: Encode) -> list[str]:
    cells = [name, *(f"{correlation:.4f}" for correlation in spearmans(encode))]
    print(*cells, flush=True)
    return cells


def quality_table(title: str, rows: Iterable[list[str]]) -> str:
    return markdown_table([title, *TABLES], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--glove", type=Path, required=True)
    options = parser.parse_args()
    encoder = SentenceEncoder.from_pretrained()
    teacher = load_teacher(MINILM)
    encoders: dict[str, Encode] = {
        "embedded": encoder.encode,
        "its teacher, MiniLM-L6": lambda texts: teacher.encode(texts, show_progress_bar=False),
        "mean of its GloVe vectors": mean_of_glove(options.glove),
    }
    truncated: dict[str, Encode] = {
        str(dim): partial(encoder.encode, truncate_dim=dim) for dim in DIMENSIONS
    }
    write_page(
        "embedded",
        [
            "# The embedded sentence encoder",
            "Spearman's correlation of the cosine with people's scores. No sentence of these three "
            "tables, and no score at all, was learned from; STS-B dev chose the epoch.",
            "`python -m benchmarks.results_pages.embedded_quality --glove GLOVE`; "
            f"{versions_line()}.",
            quality_table("encoder", [quality_row(*item) for item in encoders.items()]),
            "Truncated vectors (`truncate_dim`):",
            quality_table("dimensions", [quality_row(*item) for item in truncated.items()]),
            "Other poolings, trained the same way: [embedded_poolings.md](embedded_poolings.md).",
        ],
    )


if __name__ == "__main__":
    main()
