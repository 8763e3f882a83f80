"""Rows about encoding: against the textbook model, sentence-transformers, and ourselves."""

from __future__ import annotations

import statistics
import string
from collections.abc import Callable

import torch

from benchmarks.speed.harness import Row, interleaved, ratios, sgemm_work
from benchmarks.speed.others import minilm, st_lstm
from benchmarks.speed.sentences import make_sentences
from benchmarks.speed.textbook import TextbookModel, sides_of
from genpool import PairClassifier, SentenceEncoder
from genpool.inference.quick import QuickEncoder
from genpool.recipes import recipe_text
from genpool.tensors.modules import map_threaded
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.training import read_settings

SENTENCES = 4096
BATCH_SIZE = 128
#: where padding grows with the batch, a smaller one is faster
TEXTBOOK_BATCH_SIZE = 64
#: for a side that is many times slower; time is counted per sentence
SLOW_SIDE_SENTENCES = 1024
#: with the same number of tokens, for long and short sentences
BATCHES = 4
#: words of the classifier that is compared with the textbook model
WORDS = 11_000


def textbook_encode(classifier: PairClassifier) -> Callable[[list[str]], object]:
    """Returns the textbook's way to encode: batches in the order of the sentences, padded."""
    model = TextbookModel(classifier).eval()

    def encode(sentences: list[str]) -> torch.Tensor:
        vectors = []
        with torch.inference_mode():
            for start in range(0, len(sentences), TEXTBOOK_BATCH_SIZE):
                batch = sentences[start : start + TEXTBOOK_BATCH_SIZE]
                words = [classifier.text.words(sentence) for sentence in batch]
                vectors.append(model.encode(sides_of(classifier.text.batch(words), 1)[0]))
        return torch.cat(vectors)

    return encode


def _against(
    name: str,
    ours: Callable[[list[str]], object],
    theirs: Callable[[list[str]], object],
    goal: float,
    rounds: int,
) -> Row:
    """Returns the row of how many times more sentences per second ours encodes."""
    many, few = make_sentences(SENTENCES), make_sentences(SLOW_SIDE_SENTENCES)
    multiply, operations = sgemm_work()
    seconds = interleaved(
        {
            "ours": lambda: ours(many),
            "theirs": lambda: theirs(few),
            "sgemm": lambda: [multiply() for _ in range(20)],
        },
        rounds,
    )
    their_time = [total / len(few) for total in seconds["theirs"]]  # of one sentence
    our_time = [total / len(many) for total in seconds["ours"]]
    ratio, spread = ratios(their_time, our_time)
    rate = 20 * operations / statistics.median(seconds["sgemm"]) / 1e9
    note = (
        f"{1 / statistics.median(our_time):,.0f} against {1 / statistics.median(their_time):,.0f} "
        f"sentences/s, sgemm {rate:.0f} GFLOP/s"
    )
    return Row(name, ratio, spread, goal, note=note)


def character_classifier() -> PairClassifier:
    """Returns a classifier of the recipe snli-small with initial weights and 11,000 words.

    It has a character CNN, which the textbook model has too; the embedded models have n-grams.
    """
    words = SentenceEncoder.from_pretrained().text.vocabulary.words[:WORDS]
    text = TextPipeline(
        WordTokenizer(), Vocabulary(words), Characters(string.printable.strip()), max_length=256
    )
    torch.manual_seed(0)
    settings = read_settings(recipe_text("snli-small")).model
    return PairClassifier.from_settings(text, settings, ["yes", "no", "open"]).eval()


def encode_textbook(rounds: int) -> list[Row]:
    classifier = character_classifier()
    quick = QuickEncoder(classifier.encoder)
    theirs = textbook_encode(classifier)
    return [
        _against("encode-textbook", lambda s: quick.encode(s, BATCH_SIZE), theirs, 4.0, rounds),
    ]


def encode_minilm(rounds: int) -> list[Row]:
    quick = QuickEncoder(PairClassifier.from_pretrained().encoder)
    teacher = minilm()
    return [
        _against("encode-minilm", lambda s: quick.encode(s, BATCH_SIZE), teacher, 8.0, rounds),
    ]


def embedded_minilm(rounds: int) -> list[Row]:
    quick = QuickEncoder(SentenceEncoder.from_pretrained())
    teacher = minilm()
    return [
        _against("embedded-minilm", lambda s: quick.encode(s, BATCH_SIZE), teacher, 10.0, rounds),
    ]


def encode_st_lstm(rounds: int) -> list[Row]:
    """The BiLSTM of sentence-transformers; it has mean pooling, so it does much less work."""
    encoder = PairClassifier.from_pretrained().encoder
    quick = QuickEncoder(encoder)
    return [
        _against(
            "encode-st-lstm", lambda s: quick.encode(s, BATCH_SIZE), st_lstm(encoder), 1.0, rounds
        )
    ]


def long_sentences(rounds: int) -> list[Row]:
    """Tokens per second at 400 words over those at 20 words, with as many tokens per batch."""
    quick = QuickEncoder(PairClassifier.from_pretrained().encoder)
    words = [word for text in make_sentences(SENTENCES) for word in quick.text.words(text)]
    tokens = 400 * 40  # a batch: 40 sentences of 400 words, or 800 of 20

    def run(length: int) -> Callable[[], object]:
        starts = range(0, BATCHES * tokens, length)
        sentences = [words[at : at + length] for at in starts]
        size = tokens // length
        batches = [sentences[at : at + size] for at in range(0, len(sentences), size)]
        return lambda: list(map_threaded(quick.encode_tokenized, batches, quick.threads))

    seconds = interleaved({"long": run(400), "short": run(20)}, rounds)
    ratio, spread = ratios(seconds["short"], seconds["long"])
    rate = BATCHES * tokens / statistics.median(seconds["short"])
    return [Row("long-sentences", ratio, spread, 0.8, note=f"{rate:,.0f} tokens/s at 20 words")]
