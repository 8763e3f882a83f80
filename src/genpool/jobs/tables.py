"""Models on tables: what the commands predict, evaluate and encode do, callable from Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.data import Example, TableReader
from genpool.data.base import Reader
from genpool.errors import DataError, FolderError, InputError
from genpool.evaluation import (
    AccuracyReport,
    Encode,
    LabelledVectors,
    Predictions,
    ProbeReport,
    RelatednessReport,
    ScoredPairs,
    SimilarityReport,
    accuracy_report,
    labelled_vectors,
    probe,
    probe_cross_validated,
    relatedness_report,
    scored_pairs,
    similarity_report,
)
from genpool.evaluation.probes import FOLDS
from genpool.inference.batching import map_by_length
from genpool.model import (
    PairClassifier,
    SentenceEncoder,
    TextClassifier,
    load_model,
)

_NAME_LABEL = "expected one in every row. Name their column: label= (command line: --label)"


@dataclass(frozen=True)
class TablePredictions:
    """Predictions of a table's rows, and the genre of each, where the table has one."""

    predictions: Predictions
    genres: list[str | None]
    place: str | Path | None = None

    def report(self) -> AccuracyReport:
        """Accuracy against the table's own labels."""
        gold = [label for label in self.predictions.gold if label is not None]
        without = len(self.predictions.gold) - len(gold)
        if without:
            problem = f"{without:,} of {len(self.predictions.gold):,} rows have no label"
            raise DataError(f"{problem}; {_NAME_LABEL}", self.place)
        genres = self.genres if any(self.genres) else None
        labels = self.predictions.labels
        return accuracy_report(gold, self.predictions.predicted, labels, genres)


def load_classifier(path: str | Path | None) -> PairClassifier | TextClassifier:
    """The classifier of a folder; without one, the embedded NLI classifier."""
    if path is None:
        return PairClassifier.from_pretrained()
    model = load_model(path)
    if isinstance(model, SentenceEncoder):
        raise FolderError(
            f"{path} holds a SentenceEncoder; expected a classifier. Give the folder of one, or "
            "None for the NLI classifier inside the package (command line: leave MODEL out)."
        )
    return model


def predict_table(
    model: PairClassifier | TextClassifier,
    file: str | Path | Reader,
    batch_size: int = 64,
    **options: Any,
) -> TablePredictions:
    """Labels for the rows of a table; its own labels, if any, are kept as gold.

    file: a path, or a reader of one table, which afterwards knows the rows that it `skipped`.
    options: for a path, those of `TableReader`, such as first="body" or tokenized=True.
    """
    reader = _opened(file, **{"labelled": False, **options})
    if len(reader.splits()) != 1:
        raise DataError("is a folder of several tables; expected one table", reader.place)
    ids: list[str] = []
    gold: list[str | None] = []
    genres: list[str | None] = []
    inputs: list[list[list[str]]] = []
    for row, example in enumerate(reader.read(reader.splits()[0])):
        sides = [example.first] if example.second is None else [example.first, example.second]
        if len(sides) != model.sentences_per_example:
            raise DataError(
                f"rows have {len(sides)} sentence(s); the model takes "
                f"{model.sentences_per_example}. Name the columns: first, second",
                reader.place,
            )
        inputs.append([model.text.words(side, example.tokenized) for side in sides])
        # Rows that were left out count too: a number leads to the same row of the table.
        ids.append(example.id or str(row + reader.skipped.total()))
        gold.append(example.label)
        genres.append(example.genre)
    found = model.predict_tokenized(inputs, batch_size)
    predicted = tuple(model.labels[number] for number in found.argmax(axis=1))
    rows = tuple(tuple(float(value) for value in row) for row in found)
    unknown = {label for label in gold if label is not None} - set(model.labels)
    if unknown:
        raise DataError(
            f"the labels {', '.join(sorted(unknown))} are not among the model's: "
            f"{', '.join(model.labels)}",
            reader.place,
        )
    predictions = Predictions(tuple(ids), tuple(gold), predicted, model.labels, rows)
    return TablePredictions(predictions, genres, reader.place)


def evaluate_similarity(
    encoder: SentenceEncoder, data: str | Path | Reader, **options: Any
) -> tuple[SimilarityReport, RelatednessReport | None]:
    """Correlation of the cosine with the scores of a table; of a folder, its test split.

    Where the folder has a training split, also a regression on top of frozen vectors.
    data, options: as in `predict_table`.
    """
    reader = _opened(data, **options)
    splits = reader.splits()
    scored = "test" if "test" in splits else splits[-1]
    test = _scored(encoder, reader, scored)
    report = similarity_report(test.scores, test.a, test.b)
    if "train" not in splits or scored == "train":
        return report, None
    return report, relatedness_report(_scored(encoder, reader, "train"), test)


def evaluate_probe(
    encoder: SentenceEncoder, data: str | Path | Reader, folds: int = FOLDS, **options: Any
) -> ProbeReport:
    """Logistic regression on frozen vectors: of a folder's splits, or cross-validated.

    folds: of the cross-validation. data, options: as in `predict_table`.
    """
    reader = _opened(data, **options)
    splits = reader.splits()
    if "train" in splits and "test" in splits:
        dev = _labelled(encoder, reader, "dev") if "dev" in splits else None
        train, test = _labelled(encoder, reader, "train"), _labelled(encoder, reader, "test")
        return probe(train, test, dev)
    return probe_cross_validated(_labelled(encoder, reader, splits[0]), folds=folds)


def _opened(data: str | Path | Reader, labelled: bool = True, **options: Any) -> Reader:
    if not isinstance(data, Reader):
        return TableReader(data, labelled=labelled, **options)
    if options:
        names = ", ".join(options)
        raise InputError(f"a reader has its options already; give {names} when it is made")
    return data


def _scored(encoder: SentenceEncoder, reader: Reader, split: str) -> ScoredPairs:
    examples = list(reader.read(split))
    scores = [each.score for each in examples if each.score is not None]
    seconds = [each.second for each in examples if each.second is not None]
    if len(scores) < len(examples) or len(seconds) < len(examples):
        raise DataError(
            f"{split!r} has rows without a score or a second sentence; name the columns: "
            "score, first, second",
            reader.place,
        )
    return scored_pairs(
        _encode(encoder, examples), scores, [each.first for each in examples], seconds
    )


def _labelled(encoder: SentenceEncoder, reader: Reader, split: str) -> LabelledVectors:
    examples = list(reader.read(split))
    labels = [each.label for each in examples if each.label is not None]
    seconds = [each.second for each in examples if each.second is not None]
    if len(labels) < len(examples):
        problem = f"{split!r} has rows without a label"
        raise DataError(f"{problem}; {_NAME_LABEL}", reader.place)
    firsts = [each.first for each in examples]
    return labelled_vectors(_encode(encoder, examples), labels, firsts, seconds or None)


def _encode(encoder: SentenceEncoder, examples: list[Example]) -> Encode:
    """A function that encodes sentences as these examples give them: as text, or as tokens."""
    if not any(each.tokenized for each in examples):
        return lambda sentences: np.asarray(encoder.encode(sentences))

    def encode(sentences: list[str]) -> NDArray[Any]:
        tokens = (encoder.text.words(sentence, tokenized=True) for sentence in sentences)
        chunks = list(map_by_length(tokens, len, encoder.encode_tokenized, batch_size=64))
        return torch.cat(chunks).float().cpu().numpy()

    return encode
