"""Predictions with their texts, as a table: .tsv, .csv, .jsonl or .parquet.

The columns are those of a prediction file (see `genpool.evaluation.predictions`), with the score,
of a model of scores, and the texts after `predicted`: text, or first and second. They are the same
in every format.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra
from genpool.evaluation import Predictions
from genpool.evaluation.predictions import (
    HEADER,
    PROBABILITY,
    SCORE_COLUMN,
    FurtherColumns,
    prediction_lines,
)


def write_prediction_table(
    path: str | Path, predictions: Predictions, further: FurtherColumns
) -> None:
    """Writes predictions as a table in the format that the name of the file ends in.

    Args:
        path: a name that ends in .tsv, .csv, .jsonl or .parquet; an earlier file is replaced when
            the new one is complete. In .tsv, tabs and line breaks of a text become spaces.
        predictions: the rows.
        further: the texts of the rows, and their scores if there are any, by column.

    Raises:
        InputError: the name ends in something else, or a field cannot be written.
        DataError: the file cannot be written.
        MissingExtraError: Parquet is asked for and the extra `parquet` is not installed.
    """
    writer = _WRITERS[require_prediction_suffix(path)]
    try:
        with atomic_file(path) as temporary:
            writer(temporary, predictions, further)
    except UnicodeEncodeError as error:  # half a character, which JSON can spell
        raise InputError(f"{path}: {error.object!r} cannot be written as UTF-8") from None


def require_prediction_suffix(path: str | Path) -> str:
    """Returns the suffix of a file of predictions; raises InputError if it is none."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise InputError(
            f"{path} ends in {suffix!r}; predictions are written as {', '.join(_WRITERS)}."
        )
    return suffix


def _columns(predictions: Predictions, further: FurtherColumns) -> dict[str, Sequence[object]]:
    columns: dict[str, Sequence[object]] = dict(
        zip(HEADER, (predictions.ids, predictions.gold, predictions.predicted), strict=True)
    )
    columns |= further
    for at, label in enumerate(predictions.labels):
        columns[PROBABILITY + label] = [row[at] for row in predictions.probabilities]
    return columns


def _is_number(column: str) -> bool:
    return column == SCORE_COLUMN or column.startswith(PROBABILITY)


def _rounded(value: object) -> object:
    # Nine digits: as many as reproduce a 32-bit probability exactly.
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _write_tsv(path: Path, predictions: Predictions, further: FurtherColumns) -> None:
    path.write_bytes(b"".join(prediction_lines(predictions, further)))


def _write_csv(path: Path, predictions: Predictions, further: FurtherColumns) -> None:
    columns = _columns(predictions, further)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(["" if value is None else _rounded(value) for value in row])


def _write_json_lines(path: Path, predictions: Predictions, further: FurtherColumns) -> None:
    columns = _columns(predictions, further)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in zip(*columns.values(), strict=True):
            values = dict(zip(columns, map(_rounded, row), strict=True))
            file.write(json.dumps(values, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, predictions: Predictions, further: FurtherColumns) -> None:
    with require_extra("writing Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet
    columns = _columns(predictions, further)
    arrays = {
        name: pyarrow.array(values, pyarrow.float32() if _is_number(name) else pyarrow.string())
        for name, values in columns.items()
    }
    parquet.write_table(pyarrow.table(arrays), path)


#: what writes each format, by the end of the file's name
_WRITERS: dict[str, Callable[[Path, Predictions, FurtherColumns], None]] = {
    ".tsv": _write_tsv,
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}
