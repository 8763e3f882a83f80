"""Vectors of a file: sentences stream in, vectors stream out, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from torch.nn import functional

from genpool.data import TableReader
from genpool.data.sentences import is_table, read_sentences
from genpool.errors import InputError
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.jobs.count_sentences import count_sentences
from genpool.jobs.vector_files import FORMATS, Write, file_writer
from genpool.progress import progress
from genpool.search import ModelReference, index_writer, is_folder_name


@dataclass(frozen=True)
class EncodeOptions:
    """How `encode_file` encodes.

    Attributes:
        batch_size: sentences per batch. Default: 64.
        normalize: scale every vector to length 1. Default: False.
        truncate_dim: keep only this number of leading dimensions. Default: None, all of them.
        workers: processes that encode at the same time. Default: 1, this process alone.
        int8: round the weights to 8 bits: faster, a little less exact. Default: False.
        model_path: where the encoder is saved, so that a search of an index finds it. Default:
            None, the encoder inside the package.
        show_progress: show a bar, or lines in a log, on standard error. Default: True.
    """

    batch_size: int = 64
    normalize: bool = False
    truncate_dim: int | None = None
    workers: int = 1
    int8: bool = False
    model_path: str | Path | None = None
    show_progress: bool = True


def encode_file(
    encoder: SentenceVectors,
    source: str | Path | TableReader,
    output: str | Path,
    options: EncodeOptions | None = None,
) -> int:
    """Writes the vector of every sentence of a file, in order and in bounded memory.

    The output appears only when it is complete; until then, and if anything goes wrong, an earlier
    one stays. A run that was stopped cannot be continued.

    Args:
        encoder: what encodes, such as a `SentenceEncoder`.
        source: a text file with one sentence per line, "-" for standard input, or a column of a
            table, from `genpool.data.sentences.column_reader`.
        output: .npy (an array), .parquet or .jsonl (sentences and vectors), or the name of a
            folder ("index/", "index"), for `genpool search`.
        options: how to encode. Default: None, the defaults of `EncodeOptions`.

    Returns:
        The number of sentences.

    Raises:
        InputError: an option or the kind of output is not possible, or a vector is not finite.
        DataError: the source cannot be read, or the output cannot be written.
        FolderError: the output is a folder with something other than an index.
        KeyboardInterrupt: Ctrl-C; its message says how far the run was.

    Example:
        >>> encode_file(model, "sentences.txt", "vectors.npy", EncodeOptions(normalize=True))
    """
    options = options or EncodeOptions()
    dim = resolve_truncate_dim(encoder, options.truncate_dim)
    if not isinstance(source, TableReader) and is_table(source):
        raise InputError(f"{source} is a table; say which column holds the sentences: --column.")
    finished, total = 0, None
    try:
        with _writer(encoder, output, dim, options.model_path) as write:
            total = count_sentences(source)
            unwritten: list[str] = []

            def sentences() -> Iterator[str]:
                for sentence in read_sentences(source):
                    unwritten.append(sentence)
                    yield sentence

            with (
                encoder.streaming_form(options.workers, options.int8) as quick,
                progress("encoding", total, options.show_progress) as show,
            ):

                def done(count: int) -> None:
                    nonlocal finished
                    finished += count
                    show(count)

                for chunk in quick.encode_stream(sentences(), options.batch_size, done):
                    vectors = _finish_vectors(chunk, dim, options.normalize)  # (n, dim)
                    write(unwritten[: len(vectors)], vectors.float().cpu().numpy())
                    del unwritten[: len(vectors)]
    except KeyboardInterrupt:
        of_total = "" if total is None else f" of {total:,}"
        raise KeyboardInterrupt(
            f"stopped after {finished:,}{of_total} sentences; nothing was written to {output}; "
            "run the command again"
        ) from None
    return finished


def _writer(
    encoder: SentenceVectors, output: str | Path, dim: int, model_path: str | Path | None
) -> AbstractContextManager[Write]:
    if is_folder_name(output):
        return index_writer(output, dim, ModelReference.of(encoder, model_path))
    path = Path(output)
    if path.suffix not in FORMATS:
        expected = f"{', '.join(FORMATS)}, or a folder: a name without a suffix"
        raise InputError(f"{path} ends in {path.suffix!r}; expected {expected}.")
    return file_writer(path, dim)


def _finish_vectors(vectors: Tensor, dim: int, normalize: bool) -> Tensor:
    vectors = vectors[:, :dim]
    return functional.normalize(vectors, dim=1) if normalize else vectors
