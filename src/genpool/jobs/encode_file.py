"""Vectors of a file: sentences stream in, vectors stream out, in order: .npy, .parquet, .jsonl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from genpool.data import Example, LinesReader, TableReader
from genpool.data.sentences import count_rows, read_rows
from genpool.data.text_files import table_format
from genpool.disk.arrays import growing_array
from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, require_extra
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.progress import progress
from genpool.search import ModelReference, index_writer, is_folder_name
from genpool.search.index_folder import Write, require_finite, to_scalar

Vectors = NDArray[np.float32]
Values = Sequence[Sequence[object]]
#: opens an output for vectors of a dimension, and columns of a table
OpenOutput = Callable[[int, Sequence[str], Path | None], AbstractContextManager[Write]]
SENTENCE, VECTOR = "sentence", "vector"


@dataclass(frozen=True)
class EncodeOptions:
    """How `encode_file` encodes."""

    batch_size: int = 64
    normalize: bool = False  # to length 1
    truncate_dim: int | None = None  # keep only this number of leading dimensions
    workers: int = 1  # processes that encode at the same time; 1: this process alone
    int8: bool = False  # weights of 8 bits: faster, a little less exact
    id: str | None = None  # the column of an index by which its rows can be deleted
    append: bool = False  # to the index at the output, instead of replacing it
    model_path: str | Path | None = None  # for a search of an index; None: the embedded encoder
    show_progress: bool = True


def encode_file(
    encoder: SentenceVectors,
    source: str | Path | TableReader,
    output: str | Path,
    options: EncodeOptions | None = None,
    open_output: OpenOutput | None = None,
) -> int:
    """Writes the vector of every sentence of a file in order, in bounded memory; returns how many.

    The output appears only when it is complete; until then, and if anything goes wrong, an earlier
    one stays. A run that was stopped cannot be continued.

    Args:
        encoder: what encodes, such as a `SentenceEncoder`.
        source: a text file with one sentence per line, "-" for standard input, or a column of a
            table, from `genpool.data.sentences.column_reader`, with the columns that it keeps.
        output: .npy (an array), .parquet or .jsonl (sentences and vectors), or the name of a
            folder ("index/", "index"), for `genpool search`.
        options: how to encode. Default: None, the defaults of `EncodeOptions`.
        open_output: opens an output of another kind, such as a table of LanceDB. Default: None.

    Example:
        >>> encode_file(model, "sentences.txt", "vectors.npy", EncodeOptions(normalize=True))
    """
    options = options or EncodeOptions()
    dim = resolve_truncate_dim(encoder, options.truncate_dim)
    if not isinstance(source, TableReader) and table_format(Path(source)):
        raise InputError(f"{source} is a table; say which column holds the sentences: --column.")
    reader = source if isinstance(source, TableReader) else LinesReader(source)
    finished, total, unwritten = 0, None, list[Example]()

    def sentences() -> Iterator[str]:
        for row in read_rows(reader):
            unwritten.append(row)
            yield row.first

    def done(count: int) -> None:
        nonlocal finished
        finished += count
        show(count)

    try:
        with _writer(encoder, output, dim, options, reader, open_output) as write:
            total = count_rows(reader)
            with (
                encoder.streaming_form(options.workers, options.int8) as quick,
                progress("encoding", total, options.show_progress) as show,
            ):
                for chunk in quick.encode_stream(sentences(), options.batch_size, done):
                    vectors = finish_vectors(chunk, dim, options.normalize)  # (n, dim)
                    rows, unwritten[: len(vectors)] = unwritten[: len(vectors)], []
                    write([row.first for row in rows], vectors, [row.kept for row in rows])
    except KeyboardInterrupt:
        of_total = "" if total is None else f" of {total:,}"
        raise KeyboardInterrupt(
            f"stopped after {finished:,}{of_total} sentences; nothing was written to {output}; "
            "run the command again"
        ) from None
    return finished


def _writer(
    encoder: SentenceVectors,
    output: str | Path,
    dim: int,
    options: EncodeOptions,
    reader: LinesReader | TableReader,
    open_output: OpenOutput | None,
) -> AbstractContextManager[Write]:
    columns, place = (reader.kept, reader.place) if isinstance(reader, TableReader) else ((), None)
    if open_output is not None:
        return open_output(dim, columns, place)
    if is_folder_name(output):
        model = ModelReference.of(encoder, options.model_path)
        return index_writer(output, dim, model, columns, options.id, options.append)
    if options.append:
        raise InputError(f"{output} cannot be extended, only an index: -o FOLDER/ --append.")
    path = Path(output)
    if path.suffix not in FORMATS:
        expected = f"{', '.join(FORMATS)}, or a folder: a name without a suffix"
        raise InputError(f"{path} ends in {path.suffix!r}; expected {expected}.")
    return file_writer(path, dim, columns, place)


def finish_vectors(vectors: Tensor, dim: int, normalize: bool) -> Vectors:
    """Returns vectors (n, dim) as they are written: cut to the first dimensions, then scaled."""
    vectors = vectors[:, :dim]
    vectors = functional.normalize(vectors, dim=1) if normalize else vectors
    return vectors.float().cpu().numpy()


@contextmanager
def file_writer(
    path: Path, dim: int, columns: Sequence[str] = (), table: Path | None = None
) -> Iterator[Write]:
    """Yields a function that writes sentences, vectors (n, dim) and the values of `columns`.

    The suffix of `path` says how. Values keep their types if `table` is Parquet.
    """
    if columns and path.suffix == ".npy":
        raise InputError(
            f"{path} holds an array only; columns are kept in .parquet, .jsonl and FOLDER/."
        )
    if {SENTENCE, VECTOR}.intersection(columns):
        raise InputError(
            f"the columns {SENTENCE} and {VECTOR} of {path} are written by genpool; leave them out "
            f"of the columns that are kept: {', '.join(columns)}."
        )
    rows, open_file = 0, FORMATS[path.suffix]
    with atomic_file(path) as temporary, open_file(temporary, dim, columns, table) as write_rows:

        def write(sentences: list[str], vectors: Vectors, values: Values = (), /) -> None:
            nonlocal rows
            require_finite(vectors, rows)
            write_rows(sentences, vectors, values)
            rows += len(vectors)

        yield write


@contextmanager
def _npy(path: Path, dim: int, columns: Sequence[str], table: Path | None) -> Iterator[Write]:
    """An array (sentences, dim)."""
    with growing_array(path, "<f4", (dim,)) as append:
        yield lambda sentences, vectors, values=(), /: append(vectors)


@contextmanager
def _jsonl(path: Path, dim: int, columns: Sequence[str], table: Path | None) -> Iterator[Write]:
    """A JSON object per line: the columns that are kept, sentence and vector."""
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def write(sentences: list[str], vectors: Vectors, values: Values = (), /) -> None:
            for place, (sentence, vector) in enumerate(zip(sentences, vectors, strict=True)):
                kept = map(to_scalar, values[place]) if columns else ()
                row: dict[str, Any] = dict(zip(columns, kept, strict=True))
                row |= {SENTENCE: sentence, VECTOR: [float(f"{x:.7g}") for x in vector]}
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")

        yield write


@contextmanager
def _parquet(path: Path, dim: int, columns: Sequence[str], table: Path | None) -> Iterator[Write]:
    """The columns that are kept, sentence (string) and vector (list of dim float32)."""
    with require_extra("writing Parquet", "parquet"):
        import pyarrow as arrow
        from pyarrow import parquet
    text, single = arrow.string(), arrow.float32()
    # The values of other tables may be of any type in any row, which is known only at their end.
    types = dict.fromkeys(columns, text)
    if table is not None and table.suffix.lower() == ".parquet":
        stored = parquet.read_schema(table)
        types = {name: stored.field(name).type for name in columns}
    own = [(SENTENCE, text), (VECTOR, arrow.list_(single, dim))]
    schema = arrow.schema([*types.items(), *own])
    with parquet.ParquetWriter(path, schema) as writer:

        def write(sentences: list[str], vectors: Vectors, values: Values = (), /) -> None:
            arrays = []
            for place, kind in enumerate(types.values()):
                cells = [row[place] for row in values]
                arrays.append(arrow.array(map(_as_text, cells) if kind == text else cells, kind))
            flat = arrow.array(vectors.ravel(), single)
            lists = arrow.FixedSizeListArray.from_arrays(flat, dim)
            arrays += [arrow.array(sentences, text), lists]
            writer.write_table(arrow.table(arrays, schema=schema))

        yield write


def _as_text(value: object) -> str | None:
    scalar = to_scalar(value)
    return None if scalar is None else str(scalar)


#: what opens a file for vectors, by its suffix
FORMATS = {".npy": _npy, ".parquet": _parquet, ".jsonl": _jsonl}
