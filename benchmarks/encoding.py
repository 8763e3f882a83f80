"""Rows about encoding: against the textbook model, sentence-transformers, and ourselves."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from benchmarks.harness import Row, interleaved, ratios, sgemm_work
from benchmarks.others import minilm, own_lstm
from benchmarks.sentences import some_sentences
from benchmarks.textbook import TextbookModel, sides_of
from genpool import PairClassifier, SentenceEncoder
from genpool.inference.quick_encoder import QuickEncoder
from genpool.tensors.threads import map_threaded

SENTENCES = 4096
BATCH = 128
#: where padding grows with the batch, a smaller one is faster
TEXTBOOK_BATCH = 64
#: sentences for a side that is many times slower; time is counted per sentence
FEWER = 1024
#: of equal numbers of tokens, for long and short sentences
BATCHES = 4


def textbook_encode(classifier: PairClassifier) -> Callable[[list[str]], object]:
    """The textbook's way to encode: batch after batch in the order given, each padded."""
    model = TextbookModel(classifier).eval()

    def encode(sentences: list[str]) -> torch.Tensor:
        vectors = []
        with torch.inference_mode():
            for start in range(0, len(sentences), TEXTBOOK_BATCH):
                some = sentences[start : start + TEXTBOOK_BATCH]
                words = [classifier.text.words(each) for each in some]
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
    """How many times more sentences ours encodes in a second."""
    many, few = some_sentences(SENTENCES), some_sentences(FEWER)
    multiply, operations = sgemm_work()
    seconds = interleaved(
        {
            "ours": lambda: ours(many),
            "theirs": lambda: theirs(few),
            "sgemm": lambda: [multiply() for _ in range(20)],
        },
        rounds,
    )
    per_sentence = [each / len(few) for each in seconds["theirs"]]
    own = [each / len(many) for each in seconds["ours"]]
    ratio, spread = ratios(per_sentence, own)
    rate = 20 * operations / statistics.median(seconds["sgemm"]) / 1e9
    note = (
        f"{1 / statistics.median(own):,.0f} against {1 / statistics.median(per_sentence):,.0f} "
        f"sentences/s, sgemm {rate:.0f} GFLOP/s"
    )
    return Row(name, ratio, spread, goal, note=note)


def encode_textbook(rounds: int) -> list[Row]:
    classifier = PairClassifier.from_pretrained()
    quick = QuickEncoder(classifier.encoder)
    theirs = textbook_encode(classifier)
    return [
        _against("encode-textbook", lambda s: quick.encode(s, BATCH), theirs, 4.0, rounds),
    ]


def encode_minilm(rounds: int) -> list[Row]:
    quick = QuickEncoder(PairClassifier.from_pretrained().encoder)
    teacher = minilm()
    return [
        _against("encode-minilm", lambda s: quick.encode(s, BATCH), teacher, 8.0, rounds),
    ]


def embedded_minilm(rounds: int) -> list[Row]:
    quick = QuickEncoder(SentenceEncoder.from_pretrained())
    teacher = minilm()
    return [
        _against("embedded-minilm", lambda s: quick.encode(s, BATCH), teacher, 10.0, rounds),
    ]


def encode_own_lstm(rounds: int) -> list[Row]:
    """sentence-transformers' own BiLSTM; it has mean pooling, so it does much less work."""
    encoder = PairClassifier.from_pretrained().encoder
    quick = QuickEncoder(encoder)
    return [
        _against("encode-st-lstm", lambda s: quick.encode(s, BATCH), own_lstm(encoder), 1.0, rounds)
    ]


def long_sentences(rounds: int) -> list[Row]:
    """Tokens a second at 400 words over tokens a second at 20 words, as many tokens a batch."""
    quick = QuickEncoder(PairClassifier.from_pretrained().encoder)
    words = [word for text in some_sentences(SENTENCES) for word in quick.text.words(text)]
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
