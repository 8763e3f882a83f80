"""Gives an encoder of folded words and n-grams more words, before it is distilled further.

    python -m benchmarks.release.add_words --encoder FOLDER --words WORDS --count 136000 \\
        --out runs/more-words

A new word starts from the vector that its n-grams have given it so far: nothing changes until the
word is trained. Words are added in the order of the file that `corpus_words` writes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from benchmarks.release.word_table import with_word_table
from genpool import SentenceEncoder
from genpool.training.start_model import unknown_vectors


def with_more_words(encoder: SentenceEncoder, words: list[str], count: int) -> SentenceEncoder:
    """Returns the same encoder with the first of these words that it lacks, `count` in all."""
    old = encoder.text.vocabulary
    known = set(old.words)
    new = [word for word in words if word and word not in known][: max(0, count - len(old))]
    table = torch.cat([encoder.embedding.words.detach(), unknown_vectors(encoder, new)])
    return with_word_table(encoder, [*old.words, *new], table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, help="default: the encoder in the package")
    parser.add_argument("--words", type=Path, required=True, help="one folded word per line")
    parser.add_argument("--count", type=int, default=136_000, help="words of the result")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    words = options.words.read_text(encoding="utf-8").split("\n")
    wider = with_more_words(SentenceEncoder.from_pretrained(options.encoder), words, options.count)
    wider.save_pretrained(options.out)
    print(f"{len(wider.text.vocabulary):,} words")


if __name__ == "__main__":
    main()
