"""Makes the models inside the package from two finished runs: fewer words, 8-bit weights.

    genpool distil embedded --data DATA --out runs/embedded --set vectors.path=GLOVE
    genpool distil embedded-second --data DATA --set training.start=runs/embedded/best
    genpool train snli-small --data DATA/snli --out runs/snli-small --set vectors.path=GLOVE
    python -m benchmarks.release.make_embedded --encoder runs/embedded-second/best \\
        --nli runs/snli-small/best

An encoder of the recipe embedded-general has as many words as it was given: its word tables are
stored in 4 bits. Every figure on the cards is measured here, on the models as they are shipped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from benchmarks.data import data_path
from genpool import PairClassifier, SentenceEncoder
from genpool.embedded import embedded_folder
from genpool.jobs.tables import evaluate_similarity, predict_table
from genpool.text import TextPipeline, Vocabulary
from genpool.text.vocabulary import SPECIAL_WORDS

#: entries of each vocabulary; rarer words are represented by their characters
ENCODER_WORDS, NLI_WORDS = 36_000, 11_000
#: tokens of a sentence that the classifier reads; training had no limit, and no pair over 82
NLI_MAX_LENGTH = 256
#: what an encoder of the recipe embedded-general has learned from
GENERAL_SENTENCES = (
    "sentences of english/ (Wikipedia, news, questions, dialogue, definitions, novels, forums, "
    "software), SNLI, TREC, SICK and STS benchmark (train); none of the STS benchmark's or SICK's "
    "dev and test sentences, no similarity score"
)


def with_fewer_words(encoder: SentenceEncoder, count: int) -> SentenceEncoder:
    """Returns the same encoder with the first `count` entries of its vocabulary, all in lower case.

    A vocabulary has its most frequent words first. A word of which only a capitalised form is
    known keeps that form's vector.
    """
    old = encoder.text.vocabulary
    rows: dict[str, int] = dict(zip(SPECIAL_WORDS, range(4), strict=True))
    for word in old.words[4:]:
        rows.setdefault(word.lower(), old.id(word.lower()))
        if rows[word.lower()] == 1:  # unknown in lower case
            rows[word.lower()] = old.ids[word]
        if len(rows) == count:
            break
    text = TextPipeline(
        encoder.text.tokenizer,
        Vocabulary(list(rows)),
        encoder.text.characters,
        encoder.text.sentence_ends,
        encoder.text.max_length,
    )
    smaller = SentenceEncoder(text, encoder.settings)
    weights = encoder.state_dict()
    weights["embedding.words"] = weights["embedding.words"][torch.tensor(list(rows.values()))]
    smaller.load_state_dict(weights)
    smaller.notes = dict(encoder.notes)
    return smaller.eval()


def make_encoder(source: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(source)
    has_ngrams = encoder.embedding.backing is not None
    if not has_ngrams:
        encoder = with_fewer_words(encoder, ENCODER_WORDS)
    target = embedded_folder("SentenceEncoder")
    encoder.save_pretrained(target, int8=True, int4_tables=has_ngrams)
    saved = SentenceEncoder.from_pretrained(target)
    scores = {}
    for name, table in (("STS benchmark", "stsb/test"), ("SICK relatedness", "sick/test")):
        report, _ = evaluate_similarity(saved, data_path(f"{table}.tsv.xz"))
        scores[f"Spearman of the cosine, {name}, test"] = f"{report.spearman:.4f}"
    encoder.notes = {
        "title": "genpool's sentence encoder",
        **encoder.notes,
        "vocabulary": f"{len(encoder.text.vocabulary):,} words, lower case",
        "learned from": "sentences of SNLI, MultiNLI (dev matched), SST-5, TREC, SICK and STS "
        "benchmark (train), IMDB and RentTheRunway reviews, and WordNet's definitions; none of "
        "the STS benchmark's or SICK's dev and test sentences, no similarity score",
        **scores,
        "recipe": "genpool distil embedded, then embedded-second, seed 0",
    }
    if has_ngrams:
        encoder.notes["learned from"] = GENERAL_SENTENCES
        encoder.notes["recipe"] = "first edition, widen_student, distil embedded-general, seed 0"
    encoder.save_pretrained(target, int8=True, int4_tables=has_ngrams)
    print(encoder.notes)


def make_nli(source: Path) -> None:
    classifier = PairClassifier.from_pretrained(source)
    classifier.encoder.text.max_length = NLI_MAX_LENGTH
    smaller = PairClassifier(with_fewer_words(classifier.encoder, NLI_WORDS), classifier.labels)
    smaller.mlp.load_state_dict(classifier.mlp.state_dict())
    smaller.eval()
    target = embedded_folder("PairClassifier")
    smaller.save_pretrained(target, int8=True)
    saved = PairClassifier.from_pretrained(target)
    scores = {}
    for split in ("dev", "test"):
        file = data_path(f"snli/{split}.tsv.xz")
        report = predict_table(saved, file, tokenized=True).report()
        scores[f"accuracy, SNLI {split}"] = f"{100 * report.accuracy:.2f} %"
    smaller.notes = {
        "title": "genpool's NLI classifier",
        "trained on": "99,890 of SNLI's 549,367 training pairs; GloVe 840B word vectors, frozen",
        "vocabulary": f"{len(smaller.text.vocabulary):,} words, lower case",
        **scores,
        "recipe": "genpool train snli-small, seed 0",
    }
    smaller.save_pretrained(target, int8=True)
    print(smaller.notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, help="folder of the distilled encoder")
    parser.add_argument("--nli", type=Path, help="folder of the NLI classifier")
    options = parser.parse_args()
    if options.encoder:
        make_encoder(options.encoder)
    if options.nli:
        make_nli(options.nli)


if __name__ == "__main__":
    main()
