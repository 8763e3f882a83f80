"""How good the embedded encoder is, beside its teacher and other encoders that need no GPU.

    python -m benchmarks.results_pages.embedded_quality --glove GLOVE --gte GTE \\
        --potion POTION --wordllama WORDLLAMA

GTE and POTION are the folders of gte-small (ONNX) and potion-base-8M, WORDLLAMA that of the Python
package; see `benchmarks.results_pages.embedded_rivals`. Writes results/embedded.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from benchmarks.data import data_path
from benchmarks.pages import markdown_table, one_line, versions_line, write_page
from benchmarks.results_pages.embedded_rivals import onnx_encoder, static_encoder
from benchmarks.results_pages.embedded_words import (
    FORMS,
    HELD_OUT,
    UNKNOWN_WORDS,
    cosines_of_forms,
    held_out_sentences,
    mean_cosine,
    mean_cosine_of_random_pairs,
    share_without_entry,
    unknown_words,
)
from benchmarks.speed.others import load_minilm
from genpool import SentenceEncoder
from genpool.data import TableReader
from genpool.disk.row_cache import HalfRows
from genpool.distillation.settings import TeacherSettings
from genpool.distillation.teachers import agreement_by_source, combined_targets
from genpool.evaluation.similarity import cosine_pairs
from genpool.text import WordTokenizer, read_vectors

Array = NDArray[np.floating]
Encode = Callable[[list[str]], Array]
TABLES = {"STS-B dev": "stsb/dev", "STS-B test": "stsb/test", "SICK test": "sick/test"}
DIMENSIONS = (384, 256, 128, 64, 32)
TEACHER = "its teacher, gte-small"
AGREEMENT = """
On the same sentences: Spearman's correlation with the cosines of the teacher's centred vectors,
over all pairs of sentences of one source. The spread is the standard deviation of the teacher's
cosines: where they hardly differ, encoders tend to agree less. Words without an entry are the
embedded encoder's.
"""


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


def word_table(
    encoder: SentenceEncoder, encoders: dict[str, Encode], held_out: dict[str, list[str]]
) -> str:
    """Returns what each encoder makes of unknown words and other ways of writing."""
    sentences = [text for texts in held_out.values() for text in texts]
    words = unknown_words(encoder, sentences, UNKNOWN_WORDS)
    share = f"{100 * share_without_entry(encoder, sentences):.2f} %"
    rows = []
    for name, encode in encoders.items():
        cosines = [mean_cosine(encode, words), mean_cosine_of_random_pairs(encode, sentences)]
        cosines += cosines_of_forms(encode).values()
        entry = share if name == "embedded" else ""
        rows.append([name, entry, *(f"{cosine:.2f}" for cosine in cosines)])
    titles = ["encoder", "without entry", "unknown words", "random pairs", *FORMS]
    return markdown_table(titles, rows)


def agreement_table(
    encoder: SentenceEncoder, encoders: dict[str, Encode], held_out: dict[str, list[str]]
) -> str:
    """Returns every encoder's agreement with the teacher, by source; the first one's in order.

    Beside it the words without an entry of the embedded encoder, and how far the teacher's own
    cosines differ: where they hardly do, there is little to agree on.
    """
    teacher = encoders[TEACHER]
    vectors = [np.concatenate([teacher(texts) for texts in held_out.values()]).astype(np.float16)]
    targets = combined_targets(vectors, TeacherSettings(centre=True))
    compared = {name: encode for name, encode in encoders.items() if name != TEACHER}
    scores = {
        name: agreement_by_source(encode, held_out, targets) for name, encode in compared.items()
    }
    spreads = cosine_spreads(targets, held_out)
    first = next(iter(scores.values()))
    rows = [
        [
            source,
            *(f"{by_source[source]:.3f}" for by_source in scores.values()),
            f"{spreads[source]:.3f}",
            f"{100 * share_without_entry(encoder, held_out[source]):.2f} %",
        ]
        for source in sorted(first, key=lambda name: -first[name])
    ]
    ratios = [min(row.values()) / max(row.values()) for row in scores.values()]
    means = [sum(row.values()) / len(row) for row in scores.values()]
    for title, values in (("**mean**", means), ("**lowest / highest**", ratios)):
        rows.append([title, *(f"{value:.3f}" for value in values), "", ""])
    return markdown_table(["source", *scores, "spread", "without entry"], rows)


def cosine_spreads(targets: HalfRows, held_out: dict[str, list[str]]) -> dict[str, float]:
    """Returns the standard deviation of the cosines of all pairs of one source, by source."""
    ends = np.cumsum([len(texts) for texts in held_out.values()])[:-1]
    parts = np.split(np.asarray(targets, dtype=np.float32), ends)
    return {
        source: float(pdist(part, "cosine").std())
        for source, part in zip(held_out, parts, strict=True)
    }


def quality_row(name: str, encode: Encode) -> list[str]:
    cells = [name, *(f"{correlation:.4f}" for correlation in spearmans(encode))]
    print(*cells, flush=True)
    return cells


def quality_table(title: str, rows: Iterable[list[str]]) -> str:
    return markdown_table([title, *TABLES], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("glove", "gte", "potion", "wordllama"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    encoder = SentenceEncoder.from_pretrained()
    minilm, teacher = load_minilm(), onnx_encoder(options.gte)

    def minilm_encode(texts: list[str]) -> Array:
        vectors: Array = minilm.encode(texts, show_progress_bar=False)
        return vectors

    llama = options.wordllama
    encoders: dict[str, Encode] = {
        "embedded": encoder.encode,
        TEACHER: teacher,
        "MiniLM-L6": minilm_encode,
        "potion-base-8M": static_encoder(
            options.potion / "tokenizer.json", options.potion / "model.safetensors"
        ),
        "WordLlama, 256 dimensions": static_encoder(
            llama / "tokenizers/l2_supercat_tokenizer_config.json",
            llama / "weights/l2_supercat_256.safetensors",
        ),
        "mean of GloVe vectors": mean_of_glove(options.glove),
    }
    held_out = held_out_sentences()
    truncated: dict[str, Encode] = {
        str(dim): partial(encoder.encode, truncate_dim=dim) for dim in DIMENSIONS
    }
    write_page(
        "embedded",
        [
            "# The embedded sentence encoder",
            "Spearman's correlation of the cosine with people's scores. No sentence of these three "
            "tables, and no score at all, was learned from; STS-B dev chose the epoch.",
            "`python -m benchmarks.results_pages.embedded_quality --glove GLOVE --gte GTE --potion "
            f"POTION --wordllama WORDLLAMA`; {versions_line()}.",
            quality_table("encoder", [quality_row(*item) for item in encoders.items()]),
            "Truncated vectors (`truncate_dim`):",
            quality_table("dimensions", [quality_row(*item) for item in truncated.items()]),
            "## Words",
            one_line(
                f"On {sum(map(len, held_out.values())):,} sentences of english/ that are not "
                f"learned, {HELD_OUT} of each source. Cosines: of {UNKNOWN_WORDS} single words "
                "without an entry, of random pairs of sentences, and of other ways of writing a "
                "sentence with the plain one."
            ),
            word_table(encoder, encoders, held_out),
            "## Agreement with the teacher",
            one_line(AGREEMENT),
            agreement_table(encoder, encoders, held_out),
            "Other poolings, trained alike: [embedded_poolings.md](embedded_poolings.md).",
        ],
    )


if __name__ == "__main__":
    main()
