"""Vectors of whole files: sentences stream in, vectors stream out, in order."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch.nn import functional

from genpool.data import TableReader
from genpool.errors import DataError, InputError, MissingExtraError
from genpool.files import SAVE_AS_UTF8, bare_name, raw_lines, replacing
from genpool.growing_array import growing_array
from genpool.progress import progress
from genpool.search import ModelMark, is_folder_name, writing_index
from genpool.sentence_vectors import SentenceVectors, kept_numbers
from genpool.workers import streaming

Chunk = NDArray[np.float32]
#: sentences and their vectors, once for each chunk
Write = Callable[[list[str], Chunk], None]
#: opens a file for vectors of a width
Kind = Callable[[Path, int], AbstractContextManager[Write]]


def encode_file(
    encoder: SentenceVectors,
    source: str | Path | TableReader,
    output: str | Path,
    column: str | None = None,
    normalize: bool = False,
    batch_size: int = 64,
    show_progress: bool = True,
    model_path: str | Path | None = None,
    workers: int = 1,
    int8: bool = False,
    truncate_dim: int | None = None,
) -> int:
    """Writes the vector of every sentence of a file; gives their number.

    source: a text file with one sentence a line, a table (with `column`), or "-" for standard
    input. output: .npy (an array), .parquet or .jsonl (sentence and vector), or the name of a
    folder ("index/", "index"), for `genpool search`. The output appears only when it is complete.
    model_path: where the encoder is saved, so that a search finds it by itself. workers: processes
    that encode side by side. int8: with 8-bit weights, a little faster and less exact.
    truncate_dim: write only so many numbers of each vector, the first ones.
    """
    width = kept_numbers(encoder, truncate_dim)
    target = Path(output)
    kinds = {".npy": _npy, ".parquet": _parquet, ".jsonl": _jsonl}
    folder = is_folder_name(output)
    if not folder and target.suffix not in kinds:
        expected = f"{', '.join(kinds)}, or a folder: a name without a suffix"
        raise InputError(f"{target} ends in {target.suffix!r}; expected {expected}.")
    if column is None and not isinstance(source, TableReader) and _is_table(source):
        raise InputError(f"{source} is a table; say which column holds the sentences: --column.")
    waiting: list[str] = []

    def remembered() -> Iterator[str]:
        for sentence in read_sentences(source, column):
            waiting.append(sentence)
            yield sentence

    writing = (
        writing_index(output, width, ModelMark.of(encoder, model_path))
        if folder
        else _file(target, kinds[target.suffix], width)
    )
    count = 0
    with (
        writing as write,
        streaming(encoder, workers, int8) as quick,
        progress("encoding", None, show_progress) as done,
    ):
        for vectors in quick.encode_stream(remembered(), batch_size, done):
            vectors = vectors[:, :width]
            if normalize:
                vectors = functional.normalize(vectors, dim=1)
            write(waiting[: len(vectors)], vectors.float().cpu().numpy())
            del waiting[: len(vectors)]
            count += len(vectors)
    return count


def _is_table(source: str | Path) -> bool:
    name = Path(bare_name(Path(source)))
    return name.suffix.lower() in (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")


def column_reader(source: str | Path, column: str, bad_rows: str = "error") -> TableReader:
    """A reader of one column of a table; it counts the bad rows that it was told to skip."""
    if str(source) == "-":
        raise InputError("standard input has one sentence a line; a column needs a file.")
    return TableReader(source, first=column, labelled=False, empty_texts=True, bad_rows=bad_rows)


def read_sentences(source: str | Path | TableReader, column: str | None = None) -> Iterator[str]:
    """The sentences of a file; an empty line or cell is a sentence without tokens."""
    if not isinstance(source, TableReader) and column is not None:
        source = column_reader(source, column)
    if isinstance(source, TableReader):
        for example in source.read(source.splits()[0]):
            yield example.first
        return
    name = "standard input" if str(source) == "-" else source
    for number, data in _lines(source):
        try:
            yield data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"is not UTF-8 text: {error.reason}; {SAVE_AS_UTF8}", name, number
            ) from None


def _lines(source: str | Path) -> Iterator[tuple[int, bytes]]:
    if str(source) == "-":
        # As bytes, like a file: what a line is must not hang on the terminal's settings.
        for number, line in enumerate(sys.stdin.buffer, start=1):
            yield number, line.rstrip(b"\r\n")
    else:
        yield from ((number, data) for number, _, data in raw_lines(Path(source)))


@contextmanager
def _file(target: Path, kind: Kind, dim: int) -> Iterator[Write]:
    with replacing(target) as temporary, kind(temporary, dim) as write:
        yield write


@contextmanager
def _npy(path: Path, dim: int) -> Iterator[Write]:
    """An array (sentences, dim)."""
    with growing_array(path, "<f4", (dim,)) as append:
        yield lambda sentences, vectors: append(vectors)


@contextmanager
def _jsonl(path: Path, dim: int) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(sentences: list[str], vectors: Chunk) -> None:
            for sentence, vector in zip(sentences, vectors, strict=True):
                row = {"sentence": sentence, "vector": [float(f"{x:.7g}") for x in vector]}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

        yield write


@contextmanager
def _parquet(path: Path, dim: int) -> Iterator[Write]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing Parquet", "parquet") from error
    schema = arrow.schema(
        [("sentence", arrow.string()), ("vector", arrow.list_(arrow.float32(), dim))]
    )
    with parquet.ParquetWriter(path, schema) as writer:

        def write(sentences: list[str], vectors: Chunk) -> None:
            flat = arrow.array(vectors.ravel(), arrow.float32())
            columns = [
                arrow.array(sentences, arrow.string()),
                arrow.FixedSizeListArray.from_arrays(flat, dim),
            ]
            writer.write_table(arrow.table(columns, schema=schema))

        yield write
