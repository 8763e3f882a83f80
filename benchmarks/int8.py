"""Rows about 8-bit weights: how much faster, and what it costs."""

from __future__ import annotations

import statistics

import torch
from torch.nn import functional

from benchmarks.harness import Row, interleaved, ratios
from benchmarks.sentences import data_folder, some_sentences
from genpool import PairClassifier
from genpool.data import TableReader
from genpool.inference.quick_encoder import QuickEncoder
from genpool.inference.workers import WorkerPool

SENTENCES = 4096
BATCH = 128


def int8_rows(rounds: int) -> list[Row]:
    """On one thread: what a core gains, and so what each of several processes gains."""
    classifier = PairClassifier.from_pretrained()
    many = some_sentences(SENTENCES)
    plain = QuickEncoder(classifier.encoder)
    rounded = QuickEncoder(classifier.encoder, int8=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = interleaved(
            {
                "int8": lambda: rounded.encode(many, BATCH),
                "float32": lambda: plain.encode(many, BATCH),
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
    many = some_sentences(4 * SENTENCES)
    workers = torch.get_num_threads()
    quick = QuickEncoder(encoder)
    with (
        WorkerPool(encoder, workers) as plain,
        WorkerPool(encoder, workers, int8=True) as rounded,
    ):
        seconds = interleaved(
            {
                "threads": lambda: quick.encode(many, BATCH),
                "processes": lambda: plain.encode(many, BATCH),
                "int8": lambda: rounded.encode(many, BATCH),
            },
            rounds,
        )
    rows = []
    for name in ("processes", "int8"):
        ratio, spread = ratios(seconds["threads"], seconds[name])
        rates = [len(many) / statistics.median(seconds[each]) for each in (name, "threads")]
        note = f"{rates[0]:,.0f} against {rates[1]:,.0f} sentences/s of {workers} threads"
        rows.append(Row(f"workers-{name}", ratio, spread, 1.0, note=note))
    return rows


def _quality(classifier: PairClassifier) -> list[Row]:
    """Cosine to single precision, and points of accuracy lost on the SNLI test set."""
    plain = QuickEncoder(classifier.encoder)
    rounded = QuickEncoder(classifier.encoder, int8=True)
    file = data_folder() / "snli" / "test.raw.tsv.xz"
    if not file.is_file():
        first, second = (each.encode(some_sentences(SENTENCES)) for each in (plain, rounded))
        return [_cosine_row(first, second)]
    reader = TableReader(file)
    examples = list(reader.read(reader.splits()[0]))
    texts = [each.first for each in examples] + [str(each.second) for each in examples]
    vectors = [torch.from_numpy(each.encode(texts, BATCH)) for each in (plain, rounded)]
    gold = torch.tensor([classifier.labels.index(str(each.label)) for each in examples])
    with torch.no_grad():
        right = [
            float((classifier.mlp(classifier.features(each)).argmax(dim=1) == gold).float().mean())
            for each in vectors
        ]
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
