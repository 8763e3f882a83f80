"""Rows about 8-bit weights: how much faster, and what it costs."""

from __future__ import annotations

import statistics

import torch
from torch.nn import functional

from benchmarks.data import has_data
from benchmarks.speed.harness import Row, interleaved, ratios
from benchmarks.speed.sentences import SNLI_TEST, make_sentences, snli_test
from genpool import PairClassifier
from genpool.inference.quick import QuickEncoder
from genpool.inference.workers import WorkerPool

SENTENCES = 4096
BATCH_SIZE = 128


def int8_rows(rounds: int) -> list[Row]:
    """On one thread: what a core gains, and so what each of several processes gains."""
    classifier = PairClassifier.from_pretrained()
    many = make_sentences(SENTENCES)
    plain = QuickEncoder(classifier.encoder)
    rounded = QuickEncoder(classifier.encoder, int8=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = interleaved(
            {
                "int8": lambda: rounded.encode(many, BATCH_SIZE),
                "float32": lambda: plain.encode(many, BATCH_SIZE),
            },
            rounds,
        )
    finally:
        torch.set_num_threads(threads)
    ratio, spread = ratios(seconds["float32"], seconds["int8"])
    rates = [len(many) / statistics.median(seconds[name]) for name in ("int8", "float32")]
    note = f"{rates[0]:,.0f} against {rates[1]:,.0f} sentences/s, one thread"
    return [Row("int8", ratio, spread, 1.3, note=note), *_quality(classifier)]


def worker_rows(rounds: int) -> list[Row]:
    """Processes against threads, and 8-bit weights on top: as many as there are threads."""
    encoder = PairClassifier.from_pretrained().encoder
    many = make_sentences(4 * SENTENCES)
    workers = torch.get_num_threads()
    quick = QuickEncoder(encoder)
    with (
        WorkerPool(encoder, workers) as plain,
        WorkerPool(encoder, workers, int8=True) as rounded,
    ):
        seconds = interleaved(
            {
                "threads": lambda: quick.encode(many, BATCH_SIZE),
                "processes": lambda: plain.encode(many, BATCH_SIZE),
                "int8": lambda: rounded.encode(many, BATCH_SIZE),
            },
            rounds,
        )
    rows = []
    for name in ("processes", "int8"):
        ratio, spread = ratios(seconds["threads"], seconds[name])
        rates = [len(many) / statistics.median(seconds[side]) for side in (name, "threads")]
        note = f"{rates[0]:,.0f} against {rates[1]:,.0f} sentences/s of {workers} threads"
        rows.append(Row(f"workers-{name}", ratio, spread, 1.0, note=note))
    return rows


def _quality(classifier: PairClassifier) -> list[Row]:
    """Cosine to single precision, and points of accuracy lost on the SNLI test set."""
    plain = QuickEncoder(classifier.encoder)
    rounded = QuickEncoder(classifier.encoder, int8=True)
    if not has_data(SNLI_TEST):
        texts = make_sentences(SENTENCES)
        return [_cosine_row(plain.encode(texts), rounded.encode(texts))]
    examples = snli_test()
    texts = [pair.first for pair in examples] + [str(pair.second) for pair in examples]
    vectors = [torch.from_numpy(model.encode(texts, BATCH_SIZE)) for model in (plain, rounded)]
    gold = torch.tensor([classifier.labels.index(str(pair.label)) for pair in examples])
    with torch.no_grad():
        logits = [classifier.mlp(classifier.features(sentences)) for sentences in vectors]
    right = [float((answers.argmax(dim=1) == gold).float().mean()) for answers in logits]
    lost = 100 * (right[0] - right[1])
    note = f"SNLI test: {100 * right[1]:.2f} % against {100 * right[0]:.2f} %"
    return [
        _cosine_row(*vectors),
        Row("int8-accuracy", lost, (lost, lost), 0.3, at_most=True, note=f"points lost; {note}"),
    ]


def _cosine_row(first: object, second: object) -> Row:
    cosines = functional.cosine_similarity(torch.as_tensor(first), torch.as_tensor(second))
    lowest, highest = float(cosines.min()), float(cosines.max())
    return Row("int8-cosine", lowest, (lowest, highest), 0.99, note="lowest of all sentences")
