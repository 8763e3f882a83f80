"""What everything that encodes sentences can do: encode, encode a stream, compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.inference.batching import PART, map_by_length
from genpool.progress import progress
from genpool.text import TextPipeline

Vectors = NDArray[np.float32]


class StreamEncoder(Protocol):
    """Encodes a stream of sentences, in order."""

    def encode_stream(
        self, sentences: Iterable[str], batch_size: int = 64, done: Any = ...
    ) -> Iterator[Tensor]: ...


class SentenceVectors:
    """A mixin: all that a class has to bring is `text`, `output_dim` and `encode_tokenized`."""

    text: TextPipeline
    #: batches that `encode_tokenized` can work at side by side
    threads: int = 1

    @property
    def output_dim(self) -> int:
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        raise NotImplementedError

    @property
    def dtype(self) -> torch.dtype:
        raise NotImplementedError

    def encode_tokenized(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Vectors (sentences, output_dim) of tokenised sentences: one batch."""
        raise NotImplementedError

    def encode(
        self,
        sentences: str | Sequence[str],
        batch_size: int = 64,
        show_progress_bar: bool = False,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
    ) -> Vectors | Tensor:
        """Vectors (sentences, output_dim), in the order given; one string gives one vector.

        Tokens beyond `text.max_length` (256 in the embedded model) are left out, and counted in
        `text.cut`.

        truncate_dim: keep only so many numbers of each vector, the first ones. The embedded model
        has the most important ones first.
        """
        width = resolve_truncate_dim(self, truncate_dim)
        given = [sentences] if isinstance(sentences, str) else list(require_iterable(sentences))
        with progress("encoding", len(given), shown=show_progress_bar) as done:
            chunks = list(self.encode_stream(given, batch_size, done))
        vectors = chunks[0] if len(chunks) == 1 else torch.cat(chunks or [self._none()])
        vectors = vectors[:, :width]
        if normalize_embeddings:
            vectors = nn.functional.normalize(vectors, dim=1)
        if isinstance(sentences, str):
            vectors = vectors[0]
        return vectors if convert_to_tensor else vectors.float().cpu().numpy()

    def _none(self) -> Tensor:
        return torch.zeros(0, self.output_dim)

    def encode_stream(
        self, sentences: Iterable[str], batch_size: int = 64, done: Any = lambda count: None
    ) -> Iterator[Tensor]:
        """Vectors of a stream of any length, in chunks (n, output_dim) and in order."""
        words = self._split(require_texts(sentences), PART * batch_size)
        return map_by_length(words, len, self.encode_tokenized, batch_size, done, self.threads)

    @contextmanager
    def streaming_form(self, workers: int = 1, int8: bool = False) -> Iterator[StreamEncoder]:
        """Yields what encodes a long stream fastest; here, this encoder itself."""
        if workers > 1:
            raise InputError("several workers need a genpool model; leave --workers out.")
        if int8:
            raise InputError("int8 is for a genpool model; this encoder brings its own weights.")
        yield self

    def _split(self, texts: Iterator[str], together: int) -> Iterator[list[str]]:
        while some := list(islice(texts, together)):
            yield from self.text.words_batch(some)

    def similarity(
        self,
        first: str | Sequence[str] | NDArray[Any] | Tensor,
        second: str | Sequence[str] | NDArray[Any] | Tensor,
    ) -> Tensor:
        """Cosines (first, second) of all pairs; sentences are encoded. Zeros have cosine 0."""
        sides = [nn.functional.normalize(self._vectors(side), dim=1) for side in (first, second)]
        return sides[0] @ sides[1].T

    def _vectors(self, given: Any) -> Tensor:
        """Sentences or vectors as vectors (n, output_dim), of the model's type."""
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, Tensor | np.ndarray):
            return cast(Tensor, self.encode(texts, convert_to_tensor=True))
        if isinstance(texts, np.ndarray) and texts.dtype.kind not in "fiu":
            raise InputError(f"got an array of {texts.dtype}; expected vectors or a list of texts.")
        # A copy: PyTorch warns of arrays that it must not write to, such as those of np.load.
        made = torch.tensor(texts) if isinstance(texts, np.ndarray) else texts
        vectors: Tensor = made.to(self.device, self.dtype)
        vectors = vectors.unsqueeze(0) if vectors.dim() == 1 else vectors
        if vectors.dim() != 2 or vectors.shape[1] != self.output_dim:
            raise InputError(
                f"got vectors of shape {tuple(texts.shape)}; expected (n, {self.output_dim})."
            )
        return vectors


def require_iterable(given: Any) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise InputError(f"got {given!r} ({type(given).__name__}); expected a list of sentences.")
    return given


def require_text(sentence: object, place: str = "") -> str:
    """The sentence; anything else is told, with its place among many."""
    if not isinstance(sentence, str):
        kind = type(sentence).__name__
        raise InputError(f"{place}got {sentence!r} ({kind}); expected a sentence (str).")
    return sentence


def require_texts(sentences: Iterable[object]) -> Iterator[str]:
    for number, sentence in enumerate(sentences):
        yield require_text(sentence, f"sentence {number}: ")


def resolve_truncate_dim(encoder: SentenceVectors, truncate_dim: int | None) -> int:
    """How many numbers of a vector are kept."""
    if truncate_dim is None:
        return encoder.output_dim
    whole = isinstance(truncate_dim, int) and not isinstance(truncate_dim, bool)
    if not whole or not 1 <= truncate_dim <= encoder.output_dim:
        raise InputError(
            f"truncate_dim is {truncate_dim!r}; expected 1 to {encoder.output_dim}, the width of "
            "the vectors."
        )
    return truncate_dim
