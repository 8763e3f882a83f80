"""Encoders on data sets: similarity and probes of their frozen vectors (`genpool evaluate`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray

from genpool import evaluation
from genpool.data import Example
from genpool.data.reader import SCORED_SPLITS, Reader
from genpool.errors import DataError
from genpool.evaluation.probes import FOLDS
from genpool.evaluation.vectors import Encode
from genpool.inference.sentence_vectors import map_by_length
from genpool.jobs.tables import NAME_LABEL, open_data
from genpool.model import SentenceEncoder

T = TypeVar("T")


def evaluate_similarity(
    encoder: SentenceEncoder, data: str | Path | Reader, split: str | None = None, **options: Any
) -> tuple[evaluation.SimilarityReport, evaluation.RelatednessReport | None]:
    """Correlates the cosine of sentence pairs with their gold scores.

    The second report, if there is a training split, says how well a regression on the frozen
    vectors predicts the scores. `data` is a table, a folder of tables or a reader; `options` of a
    table are those of `TableReader`. Without `split`: the only one, else "test", else "dev".
    """
    reader = open_data(data, **options)
    scored = reader.choose_split(split, SCORED_SPLITS)
    test = _scored(encoder, reader, scored)
    report = evaluation.similarity_report(test.scores, test.a, test.b)
    if "train" not in reader.splits() or scored == "train":
        return report, None
    return report, evaluation.relatedness_report(_scored(encoder, reader, "train"), test)


def evaluate_probe(
    encoder: SentenceEncoder,
    data: str | Path | Reader,
    folds: int = FOLDS,
    split: str | None = None,
    **options: Any,
) -> evaluation.ProbeReport:
    """Fits a logistic regression on the frozen sentence vectors and scores it.

    With a training split, the probe is fitted on it and scored on another one; otherwise it is
    cross-validated with `folds`. The other arguments are those of `evaluate_similarity`.
    """
    reader = open_data(data, **options)
    splits = reader.splits()
    scored = reader.choose_split(split, SCORED_SPLITS)
    if "train" not in splits or scored == "train":
        return evaluation.probe_cross_validated(_labelled(encoder, reader, scored), folds=folds)
    has_dev = "dev" in splits and scored != "dev"
    dev = _labelled(encoder, reader, "dev") if has_dev else None
    train, test = _labelled(encoder, reader, "train"), _labelled(encoder, reader, scored)
    return evaluation.probe(train, test, dev)


def _known(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]


def _scored(encoder: SentenceEncoder, reader: Reader, split: str) -> evaluation.ScoredPairs:
    rows = list(reader.read(split))
    scores, seconds = _known(row.score for row in rows), _known(row.second for row in rows)
    if min(len(scores), len(seconds)) < len(rows):
        problem = f"{split!r} has rows without a score or a second sentence; name the columns"
        raise DataError(f"{problem}: score, first, second", reader.place)
    encode = _encode(encoder, rows)
    return evaluation.scored_pairs(encode, scores, [row.first for row in rows], seconds)


def _labelled(encoder: SentenceEncoder, reader: Reader, split: str) -> evaluation.LabelledVectors:
    rows = list(reader.read(split))
    labels, seconds = _known(row.label for row in rows), _known(row.second for row in rows)
    if len(labels) < len(rows):
        problem = f"{split!r} has rows without a label; expected one in every row"
        raise DataError(f"{problem}. {NAME_LABEL}", reader.place)
    firsts = [row.first for row in rows]
    return evaluation.labelled_vectors(_encode(encoder, rows), labels, firsts, seconds or None)


def _encode(encoder: SentenceEncoder, examples: list[Example]) -> Encode:
    """Returns a function that encodes the sentences of these examples: as text, or as tokens."""
    if not any(example.tokenized for example in examples):
        return lambda sentences: encoder.encode(sentences)

    def encode(sentences: list[str]) -> NDArray[Any]:
        tokens = (encoder.text.words(sentence, tokenized=True) for sentence in sentences)
        chunks = list(map_by_length(tokens, len, encoder.encode_tokenized, batch_size=64))
        return torch.cat(chunks).float().cpu().numpy()

    return encode
