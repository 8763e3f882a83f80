"""Makes the models inside the package from two finished runs: 8-bit weights, 4-bit word tables.

The encoder, from the one that is in the package (GTE: the folder of gte-small in ONNX format;
RECIPES=benchmarks/release/recipes):

    python -m benchmarks.release.corpus_words --out words.txt --wink WINK.json --glove wink.txt
    python -m benchmarks.release.widen_student --words words.txt --cache CACHE --teacher GTE \\
        --glove wink.txt --out runs/widened
    genpool distil $RECIPES/embedded-general.toml --data DATA \\
        --set training.start=runs/widened --set teacher.model=GTE --out runs/general
    python -m benchmarks.release.add_words --encoder runs/general/best --words words.txt \\
        --out runs/more-words
    genpool distil $RECIPES/embedded-general-more.toml --data DATA \\
        --set training.start=runs/more-words --set teacher.model=GTE --out runs/more
    genpool distil $RECIPES/embedded-general-last.toml --data DATA \\
        --set training.start=runs/more/best \\
        --set teacher.model=GTE --out runs/last   # with 60,000 of SNLI's sentences
    genpool distil $RECIPES/embedded-general-last.toml --data DATA \\
        --set training.start=runs/last/best --set teacher.model=GTE --out runs/last-2
    genpool distil $RECIPES/embedded-general-last.toml --data DATA \\
        --set training.start=runs/last-2/best --set teacher.model=GTE \\
        --set teacher.centre_share=0.95 --set training.epochs=1 \\
        --set training.learning_rate=0.0003 --out runs/last-3   # with 60,000 of SNLI's sentences
    python -m benchmarks.release.average_encoders runs/last-2/best runs/last-3/best \\
        --out runs/average
    python -m benchmarks.release.make_embedded --encoder runs/average

The classifier, from the new encoder:

    python -m benchmarks.release.nli_pairs --out runs/nli-pairs
    genpool train embedded-nli --data runs/nli-pairs --out runs/nli
    python -m benchmarks.release.make_embedded --nli runs/nli/best --pairs runs/nli-pairs

Every figure on the cards is measured here, on the models as they are shipped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from benchmarks.data import data_path
from benchmarks.release.nli_pairs import MULTINLI, read_pairs, scored_half
from benchmarks.release.word_table import with_word_table
from genpool import PairClassifier, SentenceEncoder
from genpool.data import TableReader
from genpool.jobs.tables import evaluate_similarity, predict_table
from genpool.saving.storage import embedded_folder
from genpool.text.tokenizer import folded
from genpool.text.vocabulary import SPECIAL_WORDS

#: entries of the classifier's vocabulary; other words are represented by their n-grams
NLI_WORDS = 33_000
#: tokens of a sentence that the classifier reads; training had no limit, and no pair over 82
NLI_MAX_LENGTH = 256


def with_words(encoder: SentenceEncoder, needed: Iterable[str], count: int) -> SentenceEncoder:
    """Returns the same encoder with fewer words: those that are needed, then the most frequent.

    A vocabulary has its most frequent words first.
    """
    old = encoder.text.vocabulary
    kept = {old.id(word) for word in needed} - set(range(len(SPECIAL_WORDS)))
    for word_id in range(len(SPECIAL_WORDS), len(old)):
        if len(kept) + len(SPECIAL_WORDS) >= count:
            break
        kept.add(word_id)
    rows = [*range(len(SPECIAL_WORDS)), *sorted(kept)]
    table = encoder.embedding.words.detach()[torch.tensor(rows)]
    return with_word_table(encoder, [old.words[row] for row in rows], table)


def with_rotated_words(encoder: SentenceEncoder, seed: int = 0) -> SentenceEncoder:
    """Rotates the word vectors, and the weights that they are multiplied by: the same encoder.

    The vectors of `widen_student` have their largest values in the first dimensions. One scale for
    a row of 4 bits then leaves nothing of the others; after a random rotation all have a like size.
    """
    stack: Any = encoder.encoder
    layer = stack.layers[0]
    backing = encoder.embedding.backing
    assert backing is not None
    dim = encoder.settings.embedding.word_dim
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64)).Q
    tables = [encoder.embedding.words, backing["table"]]
    with torch.no_grad():
        for weights in (*tables, layer.forwards.w, layer.backwards.w):
            weights.copy_((weights.double() @ rotation).float())
    return encoder


def make_encoder(source: Path) -> None:
    encoder = with_rotated_words(SentenceEncoder.from_pretrained(source))
    target = embedded_folder("SentenceEncoder")
    encoder.save_pretrained(target, int8=True, int4_tables=True)
    saved = SentenceEncoder.from_pretrained(target)
    scores = {}
    for name, table in (("STS benchmark", "stsb/test"), ("SICK relatedness", "sick/test")):
        report, _ = evaluate_similarity(saved, data_path(f"{table}.tsv.xz"))
        scores[f"Spearman of the cosine, {name}, test"] = f"{report.spearman:.4f}"
    encoder.notes = {
        "title": "genpool's sentence encoder",
        "trained": "to return the centred vectors of gte-small, from an earlier student of "
        "MiniLM-L6 with more words",
        "vocabulary": f"{len(encoder.text.vocabulary):,} words in their folded form; other words "
        "by their n-grams",
        "learned from": "1.2 million sentences of 24 sources (Wikipedia, news, questions, "
        "dialogue, definitions, novels, forums, software), of SNLI, SST-5, TREC, SICK and STS "
        "benchmark (train); none of the STS benchmark's or SICK's dev and test sentences, no "
        "similarity score",
        **scores,
        "recipe": "genpool distil embedded, embedded-second, widen_student, embedded-general, "
        "add_words, embedded-general-more, embedded-general-last (three times, the last two "
        "averaged); seed 0",
    }
    encoder.save_pretrained(target, int8=True, int4_tables=True)
    print(encoder.notes)


def make_nli(source: Path, pairs: Path) -> None:
    classifier = PairClassifier.from_pretrained(source)
    classifier.encoder.text.max_length = NLI_MAX_LENGTH
    rows = TableReader(pairs).read("train")
    texts = [text for row in rows for text in (row.first, str(row.second))]
    words = {folded(word) for text in texts for word in classifier.text.words(text)}
    encoder = with_rotated_words(with_words(classifier.encoder, words, NLI_WORDS))
    sizes = classifier.settings.classifier
    smaller = PairClassifier(encoder, classifier.labels, sizes)
    smaller.mlp.load_state_dict(classifier.mlp.state_dict())
    smaller.eval()
    target = embedded_folder("PairClassifier")
    smaller.save_pretrained(target, int8=True, int4_tables=True)
    saved = PairClassifier.from_pretrained(target)
    dev = read_pairs("snli/dev")  # rounded weights make a model less sure: it is calibrated last
    saved.calibrate([(pair.premise, pair.hypothesis) for pair in dev], [pair.label for pair in dev])
    saved.notes |= {
        "title": "genpool's NLI classifier",
        "trained on": "99,890 of SNLI's 549,367 training pairs, SICK's training pairs, half of "
        "MultiNLI's dev sets, and pairs generated by rules; calibrated on SNLI dev",
        "vocabulary": f"{len(smaller.text.vocabulary):,} words in their folded form; other words "
        "by their n-grams",
        "recipe": "genpool train embedded-nli, seed 0",
    }
    for name, table, tokenized in (
        ("SNLI dev", "snli/dev", True),
        ("SNLI test", "snli/test", True),
        ("SICK test", "sick/test", False),
    ):
        report = predict_table(saved, data_path(f"{table}.tsv.xz"), tokenized=tokenized).report()
        saved.notes[f"accuracy, {name}"] = f"{100 * report.accuracy:.2f} %"
        saved.notes[f"calibration error, {name}"] = f"{100 * (report.calibration_error or 0):.2f}"
    scored = [pair for table in MULTINLI for pair in scored_half(table)]
    predicted = saved.predict([(pair.premise, pair.hypothesis) for pair in scored])
    right = sum(label == pair.label for label, pair in zip(predicted, scored, strict=True))
    saved.notes["accuracy, other half of MultiNLI's dev sets"] = (
        f"{100 * right / len(scored):.2f} %"
    )
    saved.save_pretrained(target, int8=True, int4_tables=True)
    print(saved.notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, help="folder of the distilled encoder")
    parser.add_argument("--nli", type=Path, help="folder of the NLI classifier")
    parser.add_argument("--pairs", type=Path, help="folder of the classifier's train and dev pairs")
    options = parser.parse_args()
    if options.encoder:
        make_encoder(options.encoder)
    if options.nli:
        make_nli(options.nli, options.pairs)


if __name__ == "__main__":
    main()
