"""Classifiers on data sets: a prediction for every row, scored and written (`genpool predict`).

A table of predictions is .tsv, .csv, .jsonl or .parquet. The columns are those of a prediction file
(see `genpool.evaluation.predictions`), with the score, of a model of scores, and the texts after
`predicted`: text, or first and second. They are the same in every format.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from genpool.data import Example, TableReader
from genpool.data.columns import trained_columns
from genpool.data.reader import Reader
from genpool.disk.atomic import atomic_file
from genpool.errors import DataError, FolderError, InputError, counted, require_extra
from genpool.evaluation import AccuracyReport, Predictions, accuracy_report
from genpool.evaluation.predictions import (
    HEADER,
    PROBABILITY,
    SCORE_COLUMN,
    FurtherColumns,
    prediction_lines,
)
from genpool.evaluation.similarity import ScoreReport
from genpool.model import Classifier, PairClassifier, SentenceEncoder, TextClassifier, load_model

#: options of a table that is predicted: labels are not needed, and no row is left out for its text
PREDICTION_OPTIONS = {"labelled": False, "empty_texts": True}
NAME_LABEL = "Name the column of labels: label= (command line: --label)"

Columns = Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class TablePredictions:
    """Predictions for the rows of a table or split."""

    predictions: Predictions
    genres: list[str | None]
    place: str | Path | None = None  # the file or data set, for messages
    texts: dict[str, list[str]] = field(default_factory=dict)  # "text", or "first" and "second"
    scores: list[float] | None = None  # of a model of scores
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
    def without_text_note(self) -> str:
        """Says how many rows lack a text."""
        return f"rows without text, labelled by a blind guess: {self.without_text:,}"

    @property
    def further_columns(self) -> FurtherColumns:
        """The columns of a prediction file after the labels: the scores, if any, and the texts."""
        return self.texts if self.scores is None else {SCORE_COLUMN: self.scores, **self.texts}

    def write(self, path: str | Path) -> None:
        """Writes the predictions with their texts and probabilities, a row for every row.

        The name ends in .tsv, .csv, .jsonl or .parquet; an earlier file is replaced when the new
        one is complete. In .tsv, tabs and line breaks of a text become spaces.
        """
        suffix = require_prediction_suffix(path)
        try:
            with atomic_file(path) as temporary:
                if suffix == ".tsv":
                    lines = prediction_lines(self.predictions, self.further_columns)
                    temporary.write_bytes(b"".join(lines))
                else:
                    _WRITERS[suffix](temporary, self._columns())
        except UnicodeEncodeError as error:  # half a character, which JSON can spell
            raise InputError(f"{path}: {error.object!r} cannot be written as UTF-8") from None

    def _columns(self) -> Columns:
        rows, columns = self.predictions, dict[str, Sequence[object]]()
        columns |= zip(HEADER, (rows.ids, rows.gold, rows.predicted), strict=True)
        columns |= self.further_columns
        for place, label in enumerate(rows.labels):
            columns[PROBABILITY + label] = [row[place] for row in rows.probabilities]
        return columns

    def report(self) -> AccuracyReport:
        """Returns accuracy and calibration over the rows that have a gold label."""
        labelled = [row for row, label in enumerate(self.predictions.gold) if label is not None]
        if self.unlabelled and not labelled:
            total = len(self.predictions.gold)
            raise DataError(
                f"{total:,} of {total:,} rows have no label, so there is nothing to score. "
                f"{NAME_LABEL}, or predict the rows instead",
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
        """Returns how well the scores of a model of scores agree with those of the rows."""
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
    """Returns the classifier saved in a folder; without a path, the embedded NLI classifier."""
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

    Example:
        >>> predict_table(model, "pairs.tsv").predictions.predicted
        ('entailment', 'neutral')
    """
    if not isinstance(file, Reader):
        options = {"preferred": trained_columns(model.notes), **PREDICTION_OPTIONS, **options}
    reader = open_data(file, **options)
    reader.annotator = model.encoder.encoder.annotator_class
    split = reader.choose_split(split)
    examples: list[Example] = []
    ids: list[str] = []
    for row, example in enumerate(reader.read(split)):
        examples.append(example)
        # Rows that were left out count too: a number leads to the same row of the table.
        ids.append(example.id or str(row + reader.skipped.total()))
    sides = [[side for side in (row.first, row.second) if side is not None] for row in examples]
    _require_suitable(model, examples, sides, reader)
    tokenized = [
        [model.text.words(side, example.tokenized) for side in texts]
        for texts, example in zip(sides, examples, strict=True)
    ]
    with _annotations_of(model, examples, tokenized):
        probabilities = model.predict_tokenized(tokenized, batch_size)  # (rows, labels)
    gold_scores, scores = [example.score for example in examples], None
    gold = [example.label for example in examples]
    if model.predicts_scores:
        scores = model.scores_of(probabilities).tolist()
        gold = [None if score is None else f"{score:g}" for score in gold_scores]
    predictions = Predictions(
        tuple(ids),
        tuple(gold),
        tuple(model.labels[index] for index in probabilities.argmax(axis=1)),
        model.labels,
        tuple(tuple(float(value) for value in row) for row in probabilities),
    )
    names = ("text",) if model.sentences_per_example == 1 else ("first", "second")
    columns = {name: [texts[at] for texts in sides] for at, name in enumerate(names)}
    genres = [example.genre for example in examples]
    return TablePredictions(predictions, genres, reader.place, columns, scores, gold_scores)


def _annotations_of(
    model: PairClassifier | TextClassifier,
    examples: list[Example],
    tokenized: list[list[list[str]]],
) -> AbstractContextManager[None]:
    """Returns a block in which a model that reads annotations uses those of the data."""
    if model.text.annotator is None:
        return nullcontext()
    pairs = [
        pair
        for example, sides in zip(examples, tokenized, strict=True)
        for pair in zip(sides, example.annotations, strict=False)
    ]
    return model.text.annotator.knowing(*zip(*pairs, strict=True) if pairs else ((), ()))


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


def open_data(data: str | Path | Reader, labelled: bool = True, **options: Any) -> Reader:
    if not isinstance(data, Reader):
        return TableReader(data, labelled=labelled, **options)
    if options:
        names = ", ".join(options)
        raise InputError(f"a reader has its options already; pass {names} when you create it")
    return data


def require_prediction_suffix(path: str | Path) -> str:
    """Returns the suffix of a file of predictions; raises InputError if it is none."""
    suffix, allowed = Path(path).suffix.lower(), (".tsv", *_WRITERS)
    if suffix not in allowed:
        raise InputError(
            f"{path} ends in {suffix!r}; predictions are written as {', '.join(allowed)}."
        )
    return suffix


def _rows(columns: Columns) -> Iterator[list[object]]:
    """Yields the rows, their numbers with nine digits: they reproduce a 32-bit probability."""
    for row in zip(*columns.values(), strict=True):
        yield [float(f"{value:.9g}") if isinstance(value, float) else value for value in row]


def _write_csv(path: Path, columns: Columns) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(_rows(columns))  # None is an empty cell


def _write_json_lines(path: Path, columns: Columns) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(columns):
            values = dict(zip(columns, row, strict=True))
            file.write(json.dumps(values, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, columns: Columns) -> None:
    with require_extra("writing Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet
    arrays = {}
    for name, values in columns.items():
        is_number = name == SCORE_COLUMN or name.startswith(PROBABILITY)
        arrays[name] = pyarrow.array(values, pyarrow.float32() if is_number else pyarrow.string())
    parquet.write_table(pyarrow.table(arrays), path)


_WRITERS: dict[str, Callable[[Path, Columns], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}
