"""Many sentences to vectors: sorted by length, returned in order, in bounded memory.

`SentenceVectors` is what every encoder of sentences can do: encode a list or a stream, compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.progress import progress
from genpool.tensors.modules import dropout_disabled, map_threaded
from genpool.text import TextPipeline
from genpool.text.pipeline import text_groups
from genpool.text.validation import require_texts

Vectors = NDArray[np.float32]
Item = TypeVar("Item")

#: batches whose results are returned together
WINDOW_BATCHES = 64
#: batches that are sorted by length together
SORT_BATCHES = 32
#: where sentences are long a batch holds fewer: at most batch_size times this many padded tokens
PADDED_TOKENS_PER_SENTENCE = 128


def ignore_progress(count: int) -> None:
    """Does nothing."""


class SentenceVectors:
    """A mixin: a class brings `encode_tokenized` and the attributes; the rest is here.

    Attributes:
        text: splits sentences into words.
        output_dim: the dimension of a sentence vector.
        device: where the vectors are computed.
        dtype: the type of the vectors that `encode(..., convert_to_tensor=True)` returns.
        threads: how many batches `encode_tokenized` can encode at the same time. Default: 1.
    """

    text: TextPipeline
    output_dim: int
    device: torch.device
    dtype: torch.dtype
    threads: int = 1

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim) of tokenized sentences, as one batch."""
        raise NotImplementedError

    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int = 64,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        convert_to_tensor: Literal[False] = False,
        truncate_dim: int | None = None,
    ) -> Vectors: ...
    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int = 64,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        *,
        convert_to_tensor: Literal[True],
        truncate_dim: int | None = None,
    ) -> Tensor: ...
    @overload
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int = 64,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
    ) -> Vectors | Tensor: ...
    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int = 64,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
    ) -> Vectors | Tensor:
        """Returns the vectors of sentences, in the order of the sentences.

        A sentence has the same vector alone and in any batch, up to rounding. Tokens beyond
        `text.max_length` (256 in the embedded model) are left out and counted in `text.cut`. A
        sentence without tokens has a vector of zeros.

        Args:
            sentences: a list of sentences, a column of pandas or polars, or one sentence.
            batch_size: sentences per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar, or lines in a log, on standard error. Default: False.
            normalize_embeddings: scale every vector to length 1. Default: False.
            convert_to_tensor: return a tensor on the model's device, of the model's type, instead
                of a NumPy array of float32. Default: False.
            truncate_dim: keep only this number of leading dimensions, before vectors are
                normalized. The embedded model has the most important ones first. Default: None,
                all of them.

        Returns:
            Vectors (sentences, output_dim or truncate_dim); for one string, one vector.

        Raises:
            InputError: a sentence is not a string, a data frame was passed instead of one of its
                columns, or batch_size or truncate_dim is not possible.

        Example:
            >>> model.encode(["A man sleeps.", "A person rests."]).shape
            (2, 384)
        """
        dim = resolve_truncate_dim(self, truncate_dim)
        texts = [sentences] if isinstance(sentences, str) else sentences
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            texts = list(require_texts(texts))
        hidden = nullcontext(ignore_progress)
        with progress("encoding", len(texts)) if show_progress_bar else hidden as done:
            chunks = list(self._encode_texts(iter(texts), batch_size, done))
        vectors = torch.cat(chunks or [torch.zeros(0, self.output_dim)])
        vectors = vectors[:, :dim]  # (sentences, dim)
        if normalize_embeddings:
            vectors = nn.functional.normalize(vectors, dim=1)
        if isinstance(sentences, str):
            vectors = vectors[0]
        return vectors if convert_to_tensor else vectors.float().cpu().numpy()

    def encode_stream(
        self,
        sentences: Iterable[str],
        batch_size: int = 64,
        done: Callable[[int], object] = ignore_progress,
    ) -> Iterator[Tensor]:
        """Yields the vectors of a stream of any length, in order and in bounded memory.

        Args:
            sentences: any iterable of sentences; it is read as the vectors are taken.
            batch_size: sentences per batch. Default: 64.
            done: called with the number of sentences of every finished batch.

        Yields:
            Tensors (n, output_dim).

        Raises:
            InputError: one of them is not a string, or batch_size is below 1.
        """
        return self._encode_texts(require_texts(sentences), batch_size, done)

    def _encode_texts(
        self, texts: Iterator[str], batch_size: int, done: Callable[[int], object]
    ) -> Iterator[Tensor]:
        """`encode_stream` of what is known to be strings."""
        groups = text_groups(texts, SORT_BATCHES * batch_size)
        words = chain.from_iterable(map(self.text.words_batch, groups))
        return map_by_length(words, len, self.encode_tokenized, batch_size, done, self.threads)

    @contextmanager
    def streaming_form(self, workers: int = 1, int8: bool = False) -> Iterator[SentenceVectors]:
        """Yields what encodes a long stream fastest; here, this encoder itself and no other."""
        if workers > 1:
            raise InputError("several workers need a genpool model; leave --workers out.")
        if int8:
            raise InputError("int8 is for a genpool model; this encoder has weights of its own.")
        yield self

    def similarity(
        self,
        first: str | Sequence[str] | NDArray[Any] | Tensor,
        second: str | Sequence[str] | NDArray[Any] | Tensor,
    ) -> Tensor:
        """Returns the cosines of all pairs of two groups of sentences or vectors.

        Args:
            first: sentences, which are encoded, or vectors (n, output_dim); also a single one.
                Two groups of vectors may be cut by `truncate_dim`, alike.
            second: the same.

        Returns:
            Cosines (first, second); a vector of zeros has cosine 0 with every other.

        Raises:
            InputError: neither sentences nor vectors of at most output_dim dimensions, or two
                groups of vectors with different dimensions.

        Example:
            >>> model.similarity("A man sleeps.", ["A person rests.", "A dog runs."]).shape
            torch.Size([1, 2])
        """
        sides = [self._vectors(side) for side in (first, second)]
        dims = [side.shape[1] for side in sides]
        if dims[0] != dims[1]:
            raise InputError(
                f"got vectors of {dims[0]} and of {dims[1]} dimensions; expected the same number: "
                f"encode both with truncate_dim={min(dims)}."
            )
        unit = [nn.functional.normalize(side, dim=1) for side in sides]  # 2 x (n, dim)
        return unit[0] @ unit[1].T

    def _vectors(self, side: Any) -> Tensor:
        """Sentences or vectors as vectors (n, output_dim or less), of the model's type."""
        texts = [side] if isinstance(side, str) else side
        if not isinstance(texts, Tensor | np.ndarray):
            return self.encode(texts, convert_to_tensor=True)
        if isinstance(texts, np.ndarray) and texts.dtype.kind not in "fiu":
            raise InputError(f"got an array of {texts.dtype}; expected vectors or a list of texts.")
        # A copy: PyTorch warns of arrays that it must not write to, such as those of np.load.
        tensor = torch.tensor(texts) if isinstance(texts, np.ndarray) else texts
        vectors: Tensor = tensor.to(self.device, self.dtype)
        vectors = vectors.unsqueeze(0) if vectors.dim() == 1 else vectors
        if vectors.dim() != 2 or not 1 <= vectors.shape[1] <= self.output_dim:
            raise InputError(
                f"got vectors of shape {tuple(texts.shape)}; expected (n, {self.output_dim}), or "
                "fewer dimensions."
            )
        return vectors


def resolve_truncate_dim(encoder: SentenceVectors, truncate_dim: int | None) -> int:
    """Returns how many leading dimensions of a vector are kept; None keeps all of them."""
    if truncate_dim is None:
        return encoder.output_dim
    is_integer = isinstance(truncate_dim, int) and not isinstance(truncate_dim, bool)
    if not is_integer or not 1 <= truncate_dim <= encoder.output_dim:
        raise InputError(
            f"truncate_dim is {truncate_dim!r}; expected 1 to {encoder.output_dim}, the dimensions "
            "of the vectors."
        )
    return truncate_dim


def length_groups(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yields positions of sentences of similar length, the shortest first, batch_size together.

    Fewer where they are long, unless it is one sentence alone: memory is bounded for any texts.
    """
    max_padded = batch_size * PADDED_TOKENS_PER_SENTENCE
    group: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        size = len(group) + 1
        if group and (size > batch_size or size * lengths[position] > max_padded):
            yield group
            group = []
        group.append(position)
    if group:
        yield group


def require_batch_size(batch_size: int) -> None:
    """Raises InputError if batch_size is below 1."""
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected 1 or more.")


def map_by_length(
    items: Iterable[Item],
    length: Callable[[Item], int],
    run: Callable[[list[Item]], Tensor],
    batch_size: int,
    done: Callable[[int], object] = ignore_progress,
    threads: int = 1,
) -> Iterator[Tensor]:
    """Calls `run` with groups of similar length; yields its rows in the order of the items.

    Items are read one window of batches at a time; `done` is called with the size of every finished
    group; each of `threads` runs a group of its own.
    """
    require_batch_size(batch_size)
    stream = iter(items)
    order: list[int] = []  # of the items of a window: their positions, as they are run

    def groups(window: Iterator[Item]) -> Iterator[list[Item]]:
        # In parts: while threads run one part, the next one is read and split into words.
        while part := list(islice(window, SORT_BATCHES * batch_size)):
            start = len(order)
            for group in length_groups([length(item) for item in part], batch_size):
                order.extend(start + position for position in group)
                yield [part[position] for position in group]

    while True:
        order.clear()
        chunks: list[Tensor] = []
        batches = groups(islice(stream, WINDOW_BATCHES * batch_size))
        for chunk in map(run, batches) if threads == 1 else map_threaded(run, batches, threads):
            chunks.append(chunk)
            done(len(chunk))
        if not chunks:
            return
        rows = torch.cat(chunks)
        if len(rows) != len(order):
            raise ValueError(f"{len(order)} sentences went in, {len(rows)} rows came out")
        yield rows[torch.tensor(order).argsort().to(rows.device)]


@contextmanager
def evaluation_mode() -> Iterator[None]:
    """No dropout and no gradients inside, in the current thread; no module is changed.

    For genpool's models: their only layers that differ in training are its own `Dropout`.
    """
    with torch.no_grad(), dropout_disabled():
        yield
