"""Vectors of whole files: sentences stream in, vectors stream out, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch.nn import functional

from genpool.data import TableReader
from genpool.data.sentences import is_table, read_sentences
from genpool.errors import InputError
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.jobs.vector_files import KINDS, file_writer
from genpool.progress import progress
from genpool.search import ModelReference, index_writer, is_folder_name


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
    width = resolve_truncate_dim(encoder, truncate_dim)
    target = Path(output)
    folder = is_folder_name(output)
    if not folder and target.suffix not in KINDS:
        expected = f"{', '.join(KINDS)}, or a folder: a name without a suffix"
        raise InputError(f"{target} ends in {target.suffix!r}; expected {expected}.")
    if column is None and not isinstance(source, TableReader) and is_table(source):
        raise InputError(f"{source} is a table; say which column holds the sentences: --column.")
    waiting: list[str] = []

    def remembered() -> Iterator[str]:
        for sentence in read_sentences(source, column):
            waiting.append(sentence)
            yield sentence

    writing = (
        index_writer(output, width, ModelReference.of(encoder, model_path))
        if folder
        else file_writer(target, width)
    )
    count = 0
    with (
        writing as write,
        encoder.streaming_form(workers, int8) as quick,
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
