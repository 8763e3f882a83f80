"""How good the embedded encoder is, beside its teacher and the mean of its word vectors.

    python -m benchmarks.embedded_quality --glove GLOVE

Writes results/embedded.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from benchmarks.others import MINILM
from benchmarks.sentences import data_folder
from genpool import SentenceEncoder
from genpool.data import TableReader
from genpool.distillation.teacher import load_teacher
from genpool.evaluation.similarity import cosine_pairs
from genpool.text import WordTokenizer, read_vectors
from genpool.training.tracking import versions

Encode = Callable[[list[str]], np.ndarray]
TABLES = {"STS-B dev": "stsb/dev", "STS-B test": "stsb/test", "SICK test": "sick/test"}
WIDTHS = (384, 256, 128, 64, 32)
PAGE = Path(__file__).parents[1] / "results" / "embedded.md"


def scores_and_cosines(table: str, encode: Encode) -> tuple[np.ndarray, np.ndarray]:
    """People's scores of the pairs of a table, and the cosines of their vectors."""
    reader = TableReader(data_folder() / f"{table}.tsv.xz")
    examples = list(reader.read(reader.splits()[0]))
    first = encode([each.first for each in examples])
    second = encode([str(each.second) for each in examples])
    return np.array([each.score for each in examples], float), cosine_pairs(first, second)


def spearmans(encode: Encode) -> list[float]:
    """Spearman's correlation of the cosine with the scores of each table."""
    return [spearmanr(*scores_and_cosines(table, encode)).statistic for table in TABLES.values()]


def mean_of_glove(path: Path) -> Encode:
    """The mean of the vectors of a sentence's words; words without one are passed over."""
    vectors, tokenizer = read_vectors(path), WordTokenizer()

    def encode(sentences: list[str]) -> np.ndarray:
        rows = []
        for sentence in sentences:
            places = [vectors.find(word) for word in tokenizer.words(sentence)]
            known = [place for place in places if place is not None]
            rows.append(vectors.matrix[known].mean(axis=0) if known else np.zeros(vectors.dim))
        return np.stack(rows)

    return encode


def row(name: str, encode: Encode) -> str:
    line = f"| {name} | " + " | ".join(f"{each:.4f}" for each in spearmans(encode)) + " |"
    print(line, flush=True)
    return line


def table(title: str, rows: list[str]) -> list[str]:
    head = f"| {title} | " + " | ".join(TABLES) + " |"
    return [head, "|---|" + "---|" * len(TABLES), *rows, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--glove", type=Path, required=True)
    chosen = parser.parse_args()
    encoder = SentenceEncoder.from_pretrained()
    teacher = load_teacher(MINILM)
    lines = [
        "# The embedded sentence encoder",
        "",
        "Spearman's correlation of the cosine with people's scores. No sentence of these three "
        "tables, and no score at all, was learned from; STS-B dev chose the epoch.",
        "",
        "`python -m benchmarks.embedded_quality --glove GLOVE`; "
        + ", ".join(f"{name} {number}" for name, number in versions().items())
        + ".",
        "",
    ]
    lines += table(
        "encoder",
        [
            row("embedded", encoder.encode),
            row("its teacher, MiniLM-L6", lambda s: teacher.encode(s, show_progress_bar=False)),
            row("mean of its GloVe vectors", mean_of_glove(chosen.glove)),
        ],
    )
    lines += ["Cut vectors (`truncate_dim`):", ""]
    lines += table(
        "numbers",
        [
            row(str(width), lambda s, width=width: encoder.encode(s, truncate_dim=width))
            for width in WIDTHS
        ],
    )
    lines += [
        "Other poolings, trained the same way: [embedded_poolings.md](embedded_poolings.md).",
        "",
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
