"""Models on data sets: predictions of classifiers, similarity and probes of encoders."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool import evaluation
from genpool.data import Example, TableReader
from genpool.data.columns import trained_columns
from genpool.data.reader import SCORED_SPLITS, Reader
from genpool.disk.atomic import atomic_file
from genpool.errors import DataError, FolderError, InputError, counted, require_extra
from genpool.evaluation import Predictions
from genpool.evaluation import predictions as prediction_file
from genpool.evaluation.probes import FOLDS
from genpool.evaluation.similarity import ScoreReport
from genpool.evaluation.vectors import Encode
from genpool.inference.sentence_vectors import map_by_length
from genpool.model import Classifier, PairClassifier, SentenceEncoder, TextClassifier, load_model

#: options of a table that is predicted: labels are not needed, and no row is left out for its text
PREDICTION_OPTIONS = {"labelled": False, "empty_texts": True}
NAME_LABEL = "Name the column of labels: label= (command line: --label)"
#: suffixes of the files that predictions are written to
FORMATS = (".tsv", ".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class TablePredictions:
    """Predictions for the rows of a table or split.

    Their file has the columns of a prediction file (`genpool.evaluation.predictions`), with the
    score, of a model of scores, and the texts after `predicted`. All formats have the same columns.
    """

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
        rows = zip(*self.texts.values(), strict=True)
        return sum(not all(map(str.strip, sides)) for sides in rows)

    @property
    def without_text_note(self) -> str:
        """Says how many rows lack a text."""
        return f"rows without text, labelled by a blind guess: {self.without_text:,}"

    def tsv(self) -> bytes:
        """Returns the content of a prediction file; tabs and line breaks of a text are spaces."""
        return b"".join(prediction_file.prediction_lines(self.predictions, self._further))

    def write(self, path: str | Path) -> None:
        """Writes a row for every row as .tsv, .csv, .jsonl or .parquet, all or nothing."""
        suffix = require_prediction_suffix(path)
        try:
            with atomic_file(path) as temporary:
                if suffix == ".parquet":
                    _write_parquet(temporary, self._columns())
                else:
                    temporary.write_bytes(self.tsv() if suffix == ".tsv" else self._text(suffix))
        except UnicodeEncodeError as error:  # half a character, which JSON can spell
            raise InputError(f"{path}: {error.object!r} cannot be written as UTF-8") from None

    @property
    def _further(self) -> prediction_file.FurtherColumns:
        scores = {} if self.scores is None else {prediction_file.SCORE_COLUMN: self.scores}
        return {**scores, **self.texts}

    def _columns(self) -> dict[str, Sequence[object]]:
        rows = self.predictions
        names = [prediction_file.PROBABILITY + label for label in rows.labels]
        probabilities = [[row[place] for row in rows.probabilities] for place in range(len(names))]
        return {
            **dict(zip(prediction_file.HEADER, (rows.ids, rows.gold, rows.predicted), strict=True)),
            **self._further,
            **dict(zip(names, probabilities, strict=True)),
        }

    def _text(self, suffix: str) -> bytes:
        """Returns the content of a .csv or .jsonl file."""
        columns, text = self._columns(), io.StringIO(newline="")
        rows = [
            # Nine digits reproduce a 32-bit number.
            [float(f"{value:.9g}") if isinstance(value, float) else value for value in row]
            for row in zip(*columns.values(), strict=True)
        ]
        if suffix == ".csv":  # None is an empty cell
            csv.writer(text, lineterminator="\n").writerows([columns, *rows])
        else:
            objects = (dict(zip(columns, row, strict=True)) for row in rows)
            text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)
        return text.getvalue().encode()

    def report(self) -> evaluation.AccuracyReport:
        """Returns accuracy and calibration over the rows that have a gold label."""
        labelled = [row for row, label in enumerate(self.predictions.gold) if label is not None]
        if self.unlabelled and not labelled:
            total = len(self.predictions.gold)
            raise DataError(
                f"{total:,} of {total:,} rows have no label, so there is nothing to score. "
                f"{NAME_LABEL}, or predict the rows instead",
                self.place,
            )
        return evaluation.accuracy_report(
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
    if not isinstance(model, SentenceEncoder):
        return model
    raise FolderError(
        f"{path} holds a SentenceEncoder; expected a classifier. Give the folder of one, or "
        "None for the NLI classifier inside the package (command line: leave MODEL out)."
    )


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
    model's guess for a sentence without words. `options` of a path are those of `TableReader`; of a
    reader, `skipped` counts the rows left out. Without `split`: the only one.

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
    with ExitStack() as stack:
        if model.text.annotator is not None:
            annotations = [annotation for row in examples for annotation in row.annotations]
            both = zip(tokenized, examples, strict=True)
            words = [words for row, example in both for words in row[: len(example.annotations)]]
            stack.enter_context(model.text.annotator.knowing(words, annotations))
        probabilities = model.predict_tokenized(tokenized, batch_size)  # (rows, labels)
    gold_scores, scores = [example.score for example in examples], None
    gold = [example.label for example in examples]
    if model.predicts_scores:
        scores = model.scores_of(probabilities).tolist()
        gold = [None if score is None else f"{score:g}" for score in gold_scores]
    predicted = tuple(model.labels[index] for index in probabilities.argmax(axis=1))
    values = tuple(tuple(float(value) for value in row) for row in probabilities)
    rows = Predictions(tuple(ids), tuple(gold), predicted, model.labels, values)
    names = ("text",) if model.sentences_per_example == 1 else ("first", "second")
    texts = {name: [texts[at] for texts in sides] for at, name in enumerate(names)}
    genres = [example.genre for example in examples]
    return TablePredictions(rows, genres, reader.place, texts, scores, gold_scores)


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
    # A table of scores may have labels of another kind too.
    labels = {} if model.predicts_scores else {example.label for example in examples}
    if unknown := {label for label in labels if label is not None} - set(model.labels):
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
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        allowed = ", ".join(FORMATS)
        raise InputError(f"{path} ends in {suffix!r}; predictions are written as {allowed}.")
    return suffix


def _write_parquet(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    with require_extra("writing Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet
    text, numbers = pyarrow.string(), (prediction_file.SCORE_COLUMN, prediction_file.PROBABILITY)
    kinds = {name: pyarrow.float32() if name.startswith(numbers) else text for name in columns}
    parquet.write_table(pyarrow.table(dict(columns), schema=pyarrow.schema(kinds)), path)


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


def _scored(encoder: SentenceEncoder, reader: Reader, split: str) -> evaluation.ScoredPairs:
    rows = list(reader.read(split))
    scores = [row.score for row in rows if row.score is not None]
    seconds = [row.second for row in rows if row.second is not None]
    if min(len(scores), len(seconds)) < len(rows):
        problem = f"{split!r} has rows without a score or a second sentence; name the columns"
        raise DataError(f"{problem}: score, first, second", reader.place)
    encode = _encode(encoder, rows)
    return evaluation.scored_pairs(encode, scores, [row.first for row in rows], seconds)


def _labelled(encoder: SentenceEncoder, reader: Reader, split: str) -> evaluation.LabelledVectors:
    rows = list(reader.read(split))
    labels = [row.label for row in rows if row.label is not None]
    seconds = [row.second for row in rows if row.second is not None]
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
