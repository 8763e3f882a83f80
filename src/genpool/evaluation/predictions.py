"""Prediction files: what a model predicted for every row of a data set.

A TSV with a header; the probability columns, in the order of the model's labels, may be absent:

    id      gold            predicted       p:contradiction   p:entailment   p:neutral
    4705.1  neutral         neutral         0.07              0.02           0.91

An empty `gold` is a row without a gold label. Fields are written as they are, without quotes, so
none may hold a tab or a line break. After `predicted`, the score of a model of scores may follow,
and the texts that were classified: text, or first and second, with tabs and line breaks as spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from genpool.disk.atomic import atomic_file
from genpool.disk.files import decode_utf8, raw_lines
from genpool.errors import DataError, InputError, unknown_name

HEADER = ("id", "gold", "predicted")
PROBABILITY = "p:"
#: the column of the predicted scores, of a model that predicts scores
SCORE_COLUMN = "score"
#: columns after `predicted` that are not read back
FURTHER_COLUMNS = (SCORE_COLUMN, "text", "first", "second")
FurtherColumns = Mapping[str, Sequence[str] | Sequence[float]]
_EXPECTED = "expected a tab-separated header: id, gold, predicted, then p:LABEL columns or none"


@dataclass(frozen=True)
class Predictions:
    """The rows of one prediction file, by column.

    Columns that differ in length, and a row that contradicts itself, raise an InputError. A gold
    label need not be one of `labels`: a data set may have more labels than the model.

    Example:
        >>> Predictions(("1", "2"), ("yes", None), ("yes", "no"))
    """

    ids: tuple[str, ...]
    gold: tuple[str | None, ...]  # None where it is unknown
    predicted: tuple[str, ...]
    labels: tuple[str, ...] = ()  # of the columns of `probabilities`
    probabilities: tuple[tuple[float, ...], ...] = ()  # of each label, row by row

    def __post_init__(self) -> None:
        counts = len(self.ids), len(self.gold), len(self.predicted), len(self.probabilities)
        if len(set(counts[: 4 if self.labels else 3])) > 1 or (counts[3] and not self.labels):
            raise InputError(
                "{} ids, {} gold labels, {} predicted labels and {} rows of probabilities; "
                "expected one of each per row, probabilities with labels".format(*counts)
            )
        if len(set(self.labels)) != len(self.labels):
            raise InputError(f"a label is named twice: {', '.join(self.labels)}")
        for row, predicted in enumerate(self.predicted):
            probabilities = self.probabilities[row] if self.labels else ()
            if problem := _row_problem(predicted, self.labels, probabilities):
                raise InputError(f"row {row + 1} (id {self.ids[row]!r}): {problem}")


def write_predictions(
    path: str | Path, predictions: Predictions, further: FurtherColumns | None = None
) -> None:
    """Writes a prediction file; if interrupted, the previous file stays as it was.

    Args:
        path: the .tsv file to write.
        predictions: its rows.
        further: columns of `FURTHER_COLUMNS`, such as the texts of the rows.

    Raises:
        InputError: a field holds a tab, a line break, or a character that UTF-8 cannot encode.
        DataError: the file cannot be written.

    Example:
        >>> write_predictions("test.tsv", Predictions(("1",), ("yes",), ("no",)))
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(b"".join(prediction_lines(predictions, further)))


def prediction_lines(
    predictions: Predictions, further: FurtherColumns | None = None
) -> Iterator[bytes]:
    """Yields the lines of a prediction file, the header first; see `write_predictions`."""
    further = further or {}
    yield _join([*HEADER, *further, *(PROBABILITY + label for label in predictions.labels)], 1)
    columns = zip(predictions.ids, predictions.gold, predictions.predicted, strict=True)
    for row, (identity, gold, predicted) in enumerate(columns):
        others = [_further_text(column[row]) for column in further.values()]
        values = predictions.probabilities[row] if predictions.labels else ()
        fields = [identity, gold or "", predicted, *others, *map(_further_text, values)]
        yield _join(fields, row + 2)


def _further_text(value: str | float) -> str:
    # Nine digits: as many as reproduce a 32-bit number exactly.
    return re.sub(r"[\t\r\n]", " ", value) if isinstance(value, str) else f"{value:.9g}"


def _join(fields: Sequence[str], line: int) -> bytes:
    for field in fields:
        if any(separator in field for separator in "\t\n\r"):
            raise InputError(f"{field!r} (line {line}) holds a tab or a line break: replace it")
    try:
        return ("\t".join(fields) + "\n").encode()
    except UnicodeEncodeError as error:
        raise InputError(f"line {line} holds a character that UTF-8 cannot write") from error


def read_predictions(path: str | Path) -> Predictions:
    """Reads a prediction file: one of `write_predictions`, or of another program.

    Args:
        path: a .tsv file with the columns id, gold and predicted, and optionally a column
            p:LABEL with the probability of each label.

    Raises:
        DataError: the file cannot be read, or a line is wrong.

    Example:
        >>> read_predictions("test.tsv").predicted
        ('no',)
    """
    raw = raw_lines(Path(path))
    lines = ((line, decode_utf8(data, path, line).split("\t")) for line, _, data in raw)
    header = next(lines, (1, [""]))[1]
    labels = _labels_of_header(header, path)
    rows: list[tuple[str, str | None, str, tuple[float, ...]]] = []
    for line, fields in lines:
        if len(fields) != len(header):
            raise DataError(f"has {len(fields)} fields; expected {len(header)}", path, line)
        try:
            values = tuple(map(float, fields[len(header) - len(labels) :]))
        except ValueError as error:
            raise DataError(f"a probability is not a number: {error}", path, line) from None
        if problem := _row_problem(fields[2], labels, values):
            raise DataError(problem, path, line)
        rows.append((fields[0], fields[1] or None, fields[2], values))
    ids, gold, predicted, probabilities = zip(*rows, strict=True) if rows else ((),) * 4
    return Predictions(ids, gold, predicted, labels, probabilities if labels else ())


def _labels_of_header(header: Sequence[str], path: str | Path) -> tuple[str, ...]:
    if tuple(header[:3]) != HEADER:
        raise DataError(f"{_EXPECTED}; found {', '.join(header) or 'nothing'}", path, 1)
    names = list(dropwhile(FURTHER_COLUMNS.__contains__, header[3:]))
    for name in names:
        if not name.startswith(PROBABILITY):
            raise DataError(f"{_EXPECTED}; found the column {name!r}", path, 1)
        if header.count(name) > 1:
            raise DataError(f"the column {name!r} appears {header.count(name)} times", path, 1)
    return tuple(name.removeprefix(PROBABILITY) for name in names)


def _row_problem(
    predicted: str, labels: Sequence[str], probabilities: Sequence[float]
) -> str | None:
    if not predicted:
        return "the predicted label is empty"
    if labels and predicted not in labels:
        return unknown_name("predicted label", predicted, labels)
    if len(probabilities) != len(labels):
        return f"{len(probabilities)} probabilities for {len(labels)} labels"
    for label, value in zip(labels, probabilities, strict=True):
        if not 0 <= value <= 1:  # also refuses NaN
            return f"the probability of {label!r} is {value}, not within 0 to 1"
    return None
