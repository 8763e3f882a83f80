"""Models on data sets: what the commands predict and evaluate do, callable from Python."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.data import Example, TableReader
from genpool.data.reader import SCORED_SPLITS, Reader
from genpool.data.trained_columns import trained_columns
from genpool.errors import DataError, FolderError, InputError, counted
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
from genpool.evaluation.predictions import SCORE_COLUMN, FurtherColumns
from genpool.evaluation.probes import FOLDS
from genpool.evaluation.score_report import ScoreReport
from genpool.inference.batching import map_by_length
from genpool.jobs.prediction_files import write_prediction_table
from genpool.model import (
    Classifier,
    PairClassifier,
    SentenceEncoder,
    TextClassifier,
    load_model,
)

#: options of a table that is predicted: labels are not needed, and no row is left out for its text
PREDICTION_OPTIONS = {"labelled": False, "empty_texts": True}
_NAME_LABEL = "Name the column of labels: label= (command line: --label)"


@dataclass(frozen=True)
class TablePredictions:
    """Predictions for the rows of a table or split.

    Args:
        predictions: id, gold label (None if unknown) and predicted label of every row.
        genres: the genre of every row; None where it is unknown.
        place: the file or data set, for messages. Default None.
        texts: the texts of the rows by column: "text", or "first" and "second". Default empty.
        scores: the predicted score of every row, of a model of scores. Default None.
        gold_scores: the gold score of every row; None where it is unknown. Default empty.
    """

    predictions: Predictions
    genres: list[str | None]
    place: str | Path | None = None
    texts: dict[str, list[str]] = field(default_factory=dict)
    scores: list[float] | None = None
    gold_scores: list[float | None] = field(default_factory=list)

    @property
    def unlabelled(self) -> int:
        """The number of rows without a gold label, which are not scored."""
        return self.predictions.gold.count(None)

    @property
    def without_text(self) -> int:
        """The number of rows that lack a text; their labels are what the model guesses blindly."""
        return sum(
            not all(map(str.strip, sides)) for sides in zip(*self.texts.values(), strict=True)
        )

    @property
    def further_columns(self) -> FurtherColumns:
        """The columns of a prediction file after the labels: the scores, if any, and the texts."""
        return self.texts if self.scores is None else {SCORE_COLUMN: self.scores, **self.texts}

    def write(self, path: str | Path) -> None:
        """Writes the predictions with their texts and probabilities, a row for every row.

        Args:
            path: a name that ends in .tsv, .csv, .jsonl or .parquet.

        Raises:
            InputError: the name ends in something else.
            DataError: the file cannot be written.
            MissingExtraError: Parquet is asked for and the extra `parquet` is not installed.

        Example:
            >>> predict_table(model, "reviews.xlsx").write("labels.csv")
        """
        write_prediction_table(path, self.predictions, self.further_columns)

    def report(self) -> AccuracyReport:
        """Returns accuracy and calibration over the rows that have a gold label.

        Raises:
            DataError: no row has a gold label.
        """
        labelled = [row for row, label in enumerate(self.predictions.gold) if label is not None]
        if self.unlabelled and not labelled:
            total = len(self.predictions.gold)
            raise DataError(
                f"{total:,} of {total:,} rows have no label, so there is nothing to score. "
                f"{_NAME_LABEL}, or predict the rows instead",
                self.place,
            )
        return accuracy_report(
            [str(self.predictions.gold[row]) for row in labelled],
            [self.predictions.predicted[row] for row in labelled],
            self.predictions.labels,
            [self.genres[row] for row in labelled] if any(self.genres) else None,
            [max(self.predictions.probabilities[row]) for row in labelled],
        )

    def score_report(self) -> ScoreReport:
        """Returns how well the scores of a model of scores agree with those of the rows.

        Raises:
            DataError: no row has a score.
            InputError: the model predicts no scores.
        """
        if self.scores is None:
            raise InputError("the model predicts labels; expected one trained with task='score'.")
        known = [row for row, score in enumerate(self.gold_scores) if score is not None]
        if not known:
            raise DataError(
                "no row has a score, so there is nothing to compare with. Name the column of "
                "scores: score= (command line: --score), or predict the rows instead",
                self.place,
            )
        gold = np.array([self.gold_scores[row] for row in known], dtype=np.float64)
        return ScoreReport.from_scores(gold, np.array(self.scores, dtype=np.float64)[known])


def load_classifier(path: str | Path | None) -> PairClassifier | TextClassifier:
    """Returns the classifier saved in a folder; without a path, the embedded NLI classifier.

    Args:
        path: the folder of a PairClassifier or a TextClassifier, or None.

    Raises:
        FolderError: the folder holds no classifier.
    """
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
    split: str | None = None,
    **options: Any,
) -> TablePredictions:
    """Predicts the label of every row of a table; gold labels, if there are any, are kept.

    Columns that are not named are those that the model was trained on, where the table has them,
    or else found by their usual names. A row without text stays in its place; its label is the
    model's guess for a sentence without words.

    Args:
        model: the classifier.
        file: the path of a table, or a reader, whose `skipped` then counts the rows left out.
        batch_size: examples per batch. Default 64.
        split: the split to predict. None (default): the only one.
        **options: for a path, those of `TableReader`, such as first="body" or tokenized=True.

    Returns:
        The predictions, in the order of the rows.

    Raises:
        DataError: the data cannot be read, holds several splits and none was named, or does not
            suit the model (another number of sentences, other labels).
        InputError: `options` were passed beside a reader.

    Example:
        >>> predict_table(model, "pairs.tsv").predictions.predicted
        ('entailment', 'neutral')
    """
    if not isinstance(file, Reader):
        options = {"preferred": trained_columns(model.notes), **PREDICTION_OPTIONS, **options}
    reader = _open(file, **options)
    reader.request_trees(model.encoder.encoder.tree_kind)
    split = reader.choose_split(split)
    examples: list[Example] = []
    ids: list[str] = []
    for row, example in enumerate(reader.read(split)):
        examples.append(example)
        # Rows that were left out count too: a number leads to the same row of the table.
        ids.append(example.id or str(row + reader.skipped.total()))
    sides = [_sides(example) for example in examples]
    _require_suitable(model, examples, sides, reader)
    tokenized = [
        [model.text.words(side, example.tokenized) for side in texts]
        for texts, example in zip(sides, examples, strict=True)
    ]
    with _parses_of(model, examples, tokenized):
        probabilities = model.predict_tokenized(tokenized, batch_size)  # (rows, labels)
    gold_scores = [example.score for example in examples]
    predictions = Predictions(
        tuple(ids),
        tuple(_gold(model, example) for example in examples),
        tuple(model.labels[index] for index in probabilities.argmax(axis=1)),
        model.labels,
        tuple(tuple(float(value) for value in row) for row in probabilities),
    )
    names = ("text",) if model.sentences_per_example == 1 else ("first", "second")
    columns = {name: [texts[at] for texts in sides] for at, name in enumerate(names)}
    genres = [example.genre for example in examples]
    scores = model.scores_of(probabilities).tolist() if model.predicts_scores else None
    return TablePredictions(predictions, genres, reader.place, columns, scores, gold_scores)


def _gold(model: Classifier, example: Example) -> str | None:
    """Returns the gold label of an example, or for a model of scores its score, as text."""
    if not model.predicts_scores:
        return example.label
    return None if example.score is None else f"{example.score:g}"


def _parses_of(
    model: PairClassifier | TextClassifier,
    examples: list[Example],
    tokenized: list[list[list[str]]],
) -> AbstractContextManager[None]:
    """Returns a block in which a model that reads syntax trees uses those of the data."""
    source = model.text.tree_source
    if source is None:
        return nullcontext()
    sentences = [words for sides in tokenized for words in sides]
    trees = [
        example.tree(side, source.kind_name)
        for example, sides in zip(examples, tokenized, strict=True)
        for side in range(len(sides))
    ]
    return source.known_trees(sentences, trees)


def _sides(example: Example) -> list[str]:
    return [example.first] if example.second is None else [example.first, example.second]


def _require_suitable(
    model: Classifier, examples: Sequence[Example], sides: Sequence[list[str]], reader: Reader
) -> None:
    """Raises DataError if rows have another number of sentences or other labels than the model."""
    counts = {len(texts) for texts in sides} - {model.sentences_per_example}
    if counts:
        raise DataError(
            f"rows have {counted(counts.pop(), 'sentence')}; the model takes "
            f"{model.sentences_per_example}. Name the columns: first, second",
            reader.place,
        )
    if model.predicts_scores:  # a table of scores may have labels of another kind too
        return
    unknown = {example.label for example in examples if example.label is not None}
    unknown -= set(model.labels)
    if unknown:
        raise DataError(
            f"the labels {', '.join(sorted(unknown))} are not among the model's: "
            f"{', '.join(model.labels)}. For the official files of a data set, name its reader "
            "(command line: --reader)",
            reader.place,
        )


def evaluate_similarity(
    encoder: SentenceEncoder,
    data: str | Path | Reader,
    split: str | None = None,
    **options: Any,
) -> tuple[SimilarityReport, RelatednessReport | None]:
    """Correlates the cosine of sentence pairs with their gold scores.

    Args:
        encoder: the model.
        data: the path of a table or a folder of tables, or a reader.
        split: the split to score. None (default): the only one, else "test", else "dev".
        **options: for a path, those of `TableReader`.

    Returns:
        The correlation and, if there is a training split, how well a regression on the frozen
        vectors predicts the scores; otherwise None.

    Raises:
        DataError: the data cannot be read, or has rows without a score or a second sentence.
    """
    reader = _open(data, **options)
    scored = reader.choose_split(split, SCORED_SPLITS)
    test = _scored(encoder, reader, scored)
    report = similarity_report(test.scores, test.a, test.b)
    if "train" not in reader.splits() or scored == "train":
        return report, None
    return report, relatedness_report(_scored(encoder, reader, "train"), test)


def evaluate_probe(
    encoder: SentenceEncoder,
    data: str | Path | Reader,
    folds: int = FOLDS,
    split: str | None = None,
    **options: Any,
) -> ProbeReport:
    """Fits a logistic regression on the frozen sentence vectors and scores it.

    With a training split, the probe is fitted on it and scored on another one; otherwise it is
    cross-validated.

    Args:
        encoder: the model.
        data: the path of a table or a folder of tables, or a reader.
        folds: folds of the cross-validation. Default 10.
        split: the split to score. None (default): the only one, else "test", else "dev".
        **options: for a path, those of `TableReader`.

    Raises:
        DataError: the data cannot be read, or has rows without a label.
        InputError: there are too few rows.
    """
    reader = _open(data, **options)
    splits = reader.splits()
    scored = reader.choose_split(split, SCORED_SPLITS)
    if "train" not in splits or scored == "train":
        return probe_cross_validated(_labelled(encoder, reader, scored), folds=folds)
    has_dev = "dev" in splits and scored != "dev"
    dev = _labelled(encoder, reader, "dev") if has_dev else None
    train, test = _labelled(encoder, reader, "train"), _labelled(encoder, reader, scored)
    return probe(train, test, dev)


def _open(data: str | Path | Reader, labelled: bool = True, **options: Any) -> Reader:
    if not isinstance(data, Reader):
        return TableReader(data, labelled=labelled, **options)
    if options:
        names = ", ".join(options)
        raise InputError(f"a reader has its options already; pass {names} when you create it")
    return data


def _scored(encoder: SentenceEncoder, reader: Reader, split: str) -> ScoredPairs:
    examples = list(reader.read(split))
    scores = [example.score for example in examples if example.score is not None]
    seconds = [example.second for example in examples if example.second is not None]
    if len(scores) < len(examples) or len(seconds) < len(examples):
        raise DataError(
            f"{split!r} has rows without a score or a second sentence; name the columns: "
            "score, first, second",
            reader.place,
        )
    return scored_pairs(
        _encode(encoder, examples), scores, [example.first for example in examples], seconds
    )


def _labelled(encoder: SentenceEncoder, reader: Reader, split: str) -> LabelledVectors:
    examples = list(reader.read(split))
    labels = [example.label for example in examples if example.label is not None]
    seconds = [example.second for example in examples if example.second is not None]
    if len(labels) < len(examples):
        problem = f"{split!r} has rows without a label; expected one in every row"
        raise DataError(f"{problem}. {_NAME_LABEL}", reader.place)
    firsts = [example.first for example in examples]
    return labelled_vectors(_encode(encoder, examples), labels, firsts, seconds or None)


def _encode(encoder: SentenceEncoder, examples: list[Example]) -> Encode:
    """Returns a function that encodes the sentences of these examples: as text, or as tokens."""
    if not any(example.tokenized for example in examples):
        return lambda sentences: encoder.encode(sentences)

    def encode(sentences: list[str]) -> NDArray[Any]:
        tokens = (encoder.text.words(sentence, tokenized=True) for sentence in sentences)
        chunks = list(map_by_length(tokens, len, encoder.encode_tokenized, batch_size=64))
        return torch.cat(chunks).float().cpu().numpy()

    return encode
