"""One shard, from a slice of an input file to a finished Parquet file.

Its bytes depend on the model, the options and the rows, not on the process that encodes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as arrow
import torch
from numpy.typing import NDArray
from pyarrow import parquet

from genpool.data.reader import BAD_ROW_FIX, BadRow, Record, parse_text, require_encodable, to_text
from genpool.data.table_files import RowFile
from genpool.disk.atomic import atomic_file
from genpool.disk.folder_format import file_checksum
from genpool.errors import DataError
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import WINDOW_BATCHES, map_by_length
from genpool.integrations.bulk import inputs
from genpool.integrations.bulk.inputs import ID, SCALE, TEXT_TYPE, VECTOR, BulkOptions, Shard
from genpool.jobs.encode_file import finish_vectors
from genpool.model import SentenceEncoder
from genpool.search.index_folder import require_finite
from genpool.tensors.packing import quantize_rows

#: the key of the metadata of the file, a JSON object
METADATA = "genpool"


@dataclass(frozen=True)
class ShardSettings:
    """What a worker has to know about a run, beside the model and the shard."""

    output: Path  # the folder of the run
    job: str  # the fingerprint of the run, which every shard carries
    options: BulkOptions
    dim: int  # of the vectors that are written
    types: dict[str, Any]  # the Arrow types of the copied columns


@dataclass(frozen=True)
class ShardResult:
    """A finished shard, as the manifest lists it."""

    name: str
    rows: int
    tokens: int
    cut_sentences: int  # that were longer than the maximum length of the model
    cut_tokens: int  # that were left out of them
    skipped: dict[str, int] = field(default_factory=dict)  # rows that were left out, by reason
    bytes: int = 0
    checksum: str = ""


#: a shard with its result, or with the reason why its rows could not be read
Outcome = tuple[Shard, ShardResult | str]


class Row(NamedTuple):
    """A row that is encoded."""

    id: str
    text: str
    copied: tuple[object, ...]


class UnreadableInput(DataError):
    """The rows of a shard cannot be read."""


def encode_shard(encoder: SentenceEncoder, shard: Shard, settings: ShardSettings) -> Outcome:
    """Encodes a shard, with one thread, because several could produce other last digits."""
    path = settings.output / shard.name
    try:
        return shard, _encode(encoder, shard, settings, path)
    except UnreadableInput as error:  # a result: other files can be read
        return shard, str(error)
    except DataError as error:
        if error.path != path:  # a row that cannot be used
            raise
        problem = f"{error.problem}; finished shards stay valid: make room, then run it again"
        raise DataError(problem, path) from error


def _encode(
    encoder: SentenceEncoder, shard: Shard, settings: ShardSettings, path: Path
) -> ShardResult:
    options, skipped, text = settings.options, Counter[str](), encoder.text
    # A fresh one: which words its table has would decide about the last digit of a vector.
    quick = QuickEncoder(encoder, int8=options.int8)
    cut_before, rows, tokens = replace(text.cut), 0, 0
    stream = read_rows(shard, settings, skipped)
    with atomic_file(path) as temporary:
        with shard_writer(temporary, settings) as writer:
            while chunk := list(islice(stream, WINDOW_BATCHES * options.batch_size)):
                words = text.words_batch([row.text for row in chunk])
                run = map_by_length(words, len, quick.encode_tokenized, options.batch_size)
                [vectors] = run  # (n, output_dim): one window
                finished = finish_vectors(vectors, settings.dim, options.normalize)
                require_finite(finished, rows)
                write_rows(writer, chunk, finished, settings)
                rows, tokens = rows + len(chunk), tokens + sum(map(len, words))
            cut, reasons = text.cut - cut_before, dict(sorted(skipped.items()))
            result = ShardResult(shard.name, rows, tokens, cut.sentences, cut.tokens, reasons)
            # All that is known before the file is closed, and the same in every run.
            known = {"job": settings.job, **asdict(result)}
            del known["bytes"], known["checksum"]
            writer.add_key_value_metadata({METADATA: json.dumps(known, sort_keys=True)})
        return _measured(result, temporary)


def find_finished(shard: Shard, settings: ShardSettings) -> ShardResult | None:
    """Returns the result of a shard whose file is complete, though no manifest says so."""
    path = settings.output / shard.name
    values = read_metadata(path)
    if values.pop("job", None) != settings.job or values.get("name") != shard.name:
        return None
    return _measured(ShardResult(**values), path)


def _measured(result: ShardResult, path: Path) -> ShardResult:
    return replace(result, bytes=path.stat().st_size, checksum=file_checksum(path))


def read_rows(shard: Shard, settings: ShardSettings, skipped: Counter[str]) -> Iterator[Row]:
    """Yields the rows of a shard that can be used, and counts the others, by reason."""
    file, count = inputs.open_rows(shard.path, settings.options), 0
    for count, record in enumerate(_records(file, shard), start=1):
        made_id = f"{shard.source}:{shard.start.row + count}"  # rows from 1
        try:
            yield _row(record, made_id, file.columns[0], settings)
        except BadRow as bad:
            if settings.options.bad_rows == "error":
                problem = f"{bad.problem.rstrip('.')}; {BAD_ROW_FIX}"
                raise DataError(problem, record.path, record.line) from None
            skipped[bad.reason] += 1
    if count < shard.rows:
        problem = f"has {shard.start.row + count:,} rows; there were more when the run began"
        raise UnreadableInput(problem, shard.path)


def _records(file: RowFile, shard: Shard) -> Iterator[Record]:
    try:
        with inputs.reading(shard.path):
            yield from file.read(shard.start, shard.rows, shard.head_lines)
    except DataError as error:
        raise UnreadableInput(error.problem, error.path, error.line) from error


def _row(record: Record, made_id: str, text: str, settings: ShardSettings) -> Row:
    options = settings.options
    if isinstance(record.values, BadRow):
        raise record.values
    values = record.values
    identifier = made_id if options.id is None else to_text(values.get(options.id))
    if identifier is None:
        raise BadRow("no id", f"column {options.id!r} is empty; expected an id")
    require_encodable(identifier, ID)
    sentence = parse_text(values, text, may_be_empty=True)
    copied = tuple(_copied(values.get(name), name, settings) for name in options.columns)
    return Row(identifier, sentence, copied)


def _copied(value: object, column: str, settings: ShardSettings) -> object:
    """Returns the value of a copied column, as text where the column is text."""
    if str(settings.types[column]) != TEXT_TYPE or value is None:
        return value
    if isinstance(value, bool | int | float | list | dict):
        value = json.dumps(value)
    return require_encodable(str(value), column)  # of a date, for one


def shard_writer(path: Path, settings: ShardSettings) -> Any:
    """Returns pyarrow's writer of the Parquet file of a shard."""
    options = settings.options
    element = arrow.from_numpy_dtype(np.dtype(options.vectors))
    vector = [(VECTOR, arrow.list_(element, settings.dim))]
    scale = [(SCALE, arrow.float32())] if options.vectors == "int8" else []
    copied = [(name, settings.types[name]) for name in options.columns]
    schema = arrow.schema([(ID, arrow.string()), *copied, *vector, *scale])
    texts = [ID, *options.columns]
    # Parquet has no integers of 8 bits: only as numbers of a dictionary do they take a byte each.
    bytes_of = [f"{VECTOR}.list.element"] if options.vectors == "int8" else []
    return parquet.ParquetWriter(
        path,
        schema,
        # Vectors neither repeat nor compress; texts do both.
        use_dictionary=[*options.columns, *bytes_of],
        compression={name: "zstd" if name in texts else "none" for name in schema.names},
    )


def write_rows(
    writer: Any, rows: Sequence[Row], vectors: NDArray[np.float32], settings: ShardSettings
) -> None:
    """Adds rows and their vectors (n, dim) to the file of a shard."""
    kind, names = settings.options.vectors, settings.options.columns
    arrays = [arrow.array([row.id for row in rows], arrow.string())]
    arrays += [
        arrow.array([row.copied[place] for row in rows], settings.types[name])
        for place, name in enumerate(names)
    ]
    scales = []
    if kind == "int8":
        integers, steps = quantize_rows(torch.from_numpy(vectors))  # (n, dim), (n, 1)
        flat, scales = integers.numpy().ravel(), [arrow.array(steps.squeeze(1).numpy())]
    else:
        flat = vectors.astype(kind).ravel()
    arrays += [arrow.FixedSizeListArray.from_arrays(arrow.array(flat), settings.dim), *scales]
    writer.write_table(arrow.table(arrays, schema=writer.schema))


def read_metadata(path: Path) -> dict[str, Any]:
    """Returns the JSON object of a finished shard; empty if the file is no such shard."""
    try:
        metadata = parquet.read_metadata(path).metadata or {}
        values = json.loads(metadata.get(METADATA.encode(), b"{}"))
    except (arrow.ArrowException, OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
