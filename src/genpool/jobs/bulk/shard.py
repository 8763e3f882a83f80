"""One shard, from a slice of an input file to a finished Parquet file.

Every engine calls `encode_shard`, and nothing of an earlier shard is used in it: the bytes of a
shard depend on the model, the options and the rows, not on the process that encodes it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from genpool.data.reader import BAD_ROW_FIX
from genpool.data.rows import BadRow, Record, parse_text, require_encodable, to_text
from genpool.disk.atomic import atomic_file
from genpool.errors import DataError
from genpool.inference.batching import WINDOW_BATCHES, map_by_length
from genpool.inference.quick_encoder import QuickEncoder
from genpool.jobs.bulk.options import ID, ShardSettings
from genpool.jobs.bulk.plan import TEXT_TYPE, Shard, open_rows
from genpool.jobs.bulk.shard_file import read_metadata, shard_writer
from genpool.jobs.encode_file import finish_vectors
from genpool.saving.checksums import stream_checksum
from genpool.search.index_folder import require_finite
from genpool.sentence_encoder import SentenceEncoder


class Row(NamedTuple):
    """A row that is encoded."""

    id: str
    text: str
    copied: tuple[object, ...]


@dataclass(frozen=True)
class ShardResult:
    """A finished shard, as the manifest lists it.

    Attributes:
        name: of its file.
        rows: the rows in it.
        tokens: the tokens that were encoded.
        cut_sentences: sentences that were longer than the maximum length of the model.
        cut_tokens: the tokens that were left out of them.
        skipped: rows that were left out, by reason.
        bytes: the size of the file.
        checksum: its SHA-256.
        seconds: that it took; 0 for one that was found finished.
    """

    name: str
    rows: int
    tokens: int
    cut_sentences: int
    cut_tokens: int
    skipped: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    checksum: str = ""
    seconds: float = 0.0


class UnreadableInput(DataError):
    """The rows of a shard cannot be read."""


class UnusableRow(DataError):
    """A row cannot be used, though its file can be read."""


def encode_shard(encoder: SentenceEncoder, shard: Shard, settings: ShardSettings) -> ShardResult:
    """Encodes a shard; its file appears under its name when it is complete.

    Args:
        encoder: the model. PyTorch must use one thread: several could give other last digits.
        shard: what to encode.
        settings: of the run.

    Raises:
        UnreadableInput: the rows cannot be read.
        UnusableRow: one of them cannot be used.
        InputError: a vector is not finite.
        DataError: the file cannot be written.
    """
    began, options, skipped = time.monotonic(), settings.options, Counter[str]()
    # A fresh one: which words its table has would decide about the last digit of a vector.
    quick = QuickEncoder(encoder, int8=options.int8)
    cut = encoder.text.cut
    before = cut.sentences, cut.tokens
    rows = tokens = 0
    path = settings.output / shard.name
    stream = read_rows(shard, settings, skipped)
    with atomic_file(path) as temporary:
        with shard_writer(temporary, settings) as file:
            while chunk := list(islice(stream, WINDOW_BATCHES * options.batch_size)):
                words = encoder.text.words_batch([row.text for row in chunk])
                run = map_by_length(words, len, quick.encode_tokenized, options.batch_size)
                [vectors] = run  # (n, output_dim): one window
                finished = finish_vectors(vectors, settings.dim, options.normalize)
                require_finite(finished, rows)
                columns = zip(*(row.copied for row in chunk), strict=True)
                file.write([row.id for row in chunk], list(columns), finished)
                rows, tokens = rows + len(chunk), tokens + sum(map(len, words))
            result = ShardResult(
                shard.name,
                rows,
                tokens,
                cut.sentences - before[0],
                cut.tokens - before[1],
                dict(sorted(skipped.items())),
            )
            file.add_metadata(_to_metadata(result, settings.job))
        size, checksum = _measure(temporary)
    return replace(
        result, bytes=size, checksum=checksum, seconds=round(time.monotonic() - began, 3)
    )


def find_finished(shard: Shard, settings: ShardSettings) -> ShardResult | None:
    """Returns the result of a shard whose file is complete, though no manifest says so."""
    path = settings.output / shard.name
    if not path.is_file():
        return None
    values = read_metadata(path)
    if values.pop("job", None) != settings.job or values.get("name") != shard.name:
        return None
    size, checksum = _measure(path)
    return ShardResult(**values, bytes=size, checksum=checksum)


def read_rows(shard: Shard, settings: ShardSettings, skipped: Counter[str]) -> Iterator[Row]:
    """Yields the rows of a shard that can be used.

    Args:
        shard: the slice.
        settings: of the run; with bad_rows="error" a row that cannot be used is an error.
        skipped: counts the others, by reason.

    Raises:
        UnreadableInput: the file cannot be read.
        UnusableRow: a row cannot be used.
    """
    options = settings.options
    try:
        file = open_rows(shard.path, options)
        records = file.read(shard.start, shard.rows, shard.head_lines)
        count = 0
        for count, record in enumerate(records, start=1):
            number = shard.start.row + count  # from 1
            try:
                yield _row(record, f"{shard.source}:{number}", file.columns[0], settings)
            except BadRow as bad:
                if options.bad_rows == "error":
                    problem = f"{bad.problem.rstrip('.')}; {BAD_ROW_FIX}"
                    raise UnusableRow(problem, record.path, record.line) from None
                skipped[bad.reason] += 1
        if count < shard.rows:
            problem = f"has {shard.start.row + count:,} rows; there were more when the run began"
            raise DataError(problem, shard.path)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise UnreadableInput(problem, shard.path) from error
    except UnusableRow:
        raise
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
    text = str(value)  # of a date, for one
    require_encodable(text, column)
    return text


def _to_metadata(result: ShardResult, job: str) -> dict[str, object]:
    """All that is known before the file is closed, and the same in every run."""
    return {
        "job": job,
        "name": result.name,
        "rows": result.rows,
        "tokens": result.tokens,
        "cut_sentences": result.cut_sentences,
        "cut_tokens": result.cut_tokens,
        "skipped": result.skipped,
    }


def _measure(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, stream_checksum(file)


def job_fingerprint(description: dict[str, object]) -> str:
    """Returns a short checksum of what a run is."""
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
