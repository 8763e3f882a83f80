"""The work of a service: checks of what was sent, and the queues before the model."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from genpool.search import Hit
from genpool.service.batcher import AbandonedError, Batcher, QueueFullError
from genpool.service.middleware import Metrics
from genpool.service.problems import ServiceError, overloaded
from genpool.service.served_model import EncodedSentence, ExplainedExample, ServedModel
from genpool.service.settings import ServiceSettings
from genpool.tensors.unit_rows import unit_rows

#: queries of one request, which share a pass over the index
MAX_QUERIES = 64

Item = TypeVar("Item")
Result = TypeVar("Result")


class Query(NamedTuple):
    """The vector of a query (dim,), its number of tokens, and how many hits are wanted."""

    vector: NDArray[np.float32]
    tokens: int
    top: int


class Service:
    """One model, used by one thread; requests wait for it in queues.

    Args:
        model: what is served.
        settings: limits and batches.
    """

    def __init__(self, model: ServedModel, settings: ServiceSettings) -> None:
        self.model, self.settings, self.metrics = model, settings, Metrics()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="genpool-model")
        # A search reads the whole index, which needs no model: on a thread of its own.
        self._search_executor = ThreadPoolExecutor(1, thread_name_prefix="genpool-search")
        self._vectors: Batcher[str, EncodedSentence] = self._batcher("encode", model.encode)
        self._labels: Batcher[list[str], NDArray[np.float32]] = self._batcher(
            "classify", model.classify
        )
        self._searches: Batcher[Query, list[Hit]] = self._batcher(
            "search", self._find, batch_items=MAX_QUERIES, executor=self._search_executor
        )
        # Explanations gain nothing from each other, and one after the other leaves room between.
        self._explanations: Batcher[list[str], ExplainedExample] = self._batcher(
            "explain",
            lambda examples: [model.explain(example) for example in examples],
            batch_items=1,
            max_queued=max(1, settings.max_queued_sentences // 64),
            window_seconds=0.0,
        )

    def _batcher(
        self,
        work: str,
        process: Callable[[list[Item]], list[Result]],
        batch_items: int | None = None,
        max_queued: int | None = None,
        window_seconds: float | None = None,
        executor: ThreadPoolExecutor | None = None,
    ) -> Batcher[Item, Result]:
        """Returns the queue of one kind of work, with the limits of the settings by default."""
        settings = self.settings
        batcher = Batcher(
            process,
            executor or self._executor,
            batch_items or settings.batch_sentences,
            max_queued or settings.max_queued_sentences,
            settings.window_seconds if window_seconds is None else window_seconds,
            self.metrics.observe_batches(work),
        )
        self.metrics.watch_queue(work, lambda: batcher.queued)
        return batcher

    def close(self) -> None:
        """Ends the threads of the service, after what they are doing."""
        self._executor.shutdown()
        self._search_executor.shutdown()

    async def encode(self, request: Request, sentences: list[str]) -> list[EncodedSentence]:
        """Returns the vectors of sentences, in order."""
        return await _submitted(self._vectors, request, sentences)

    async def unit_vectors(self, request: Request, sentences: list[str]) -> NDArray[np.float32]:
        """Returns vectors of length 1 (sentences, output_dim)."""
        encoded = await self.encode(request, sentences)
        return unit_rows(np.stack([sentence.vector for sentence in encoded]))

    async def classify(
        self, request: Request, examples: list[list[str]]
    ) -> list[NDArray[np.float32]]:
        """Returns the probabilities (labels,) of examples, in order."""
        return await _submitted(self._labels, request, examples)

    async def explain(self, request: Request, example: list[str]) -> ExplainedExample:
        """Returns the explanation of one text or two."""
        [explained] = await _submitted(self._explanations, request, [example])
        return explained

    async def search(self, request: Request, queries: list[str], top: int) -> list[list[Hit]]:
        """Returns the sentences of the index that are closest to each query, best first."""
        encoded = await self.encode(request, queries)
        dim = self.model.required_index.card.dim
        wanted = [Query(sentence.vector[:dim], sentence.tokens, top) for sentence in encoded]
        return await _submitted(self._searches, request, wanted)

    def _find(self, queries: list[Query]) -> list[list[Hit]]:
        """Returns the hits of queries, which share one pass over the index."""
        top = max(query.top for query in queries)
        vectors = np.stack([query.vector for query in queries])  # (queries, dim)
        results = self.model.required_index.search(vectors, top)
        # Without words, all sentences of the index are equally close: no hits.
        return [
            hits[: query.top] if query.tokens else []
            for query, hits in zip(queries, results, strict=True)
        ]

    def check_texts(
        self,
        texts: list[str],
        param: str,
        max_characters: int | None = None,
        max_texts: int | None = None,
    ) -> list[str]:
        """Returns the texts of a field; raises ServiceError if there are too few, many or long."""
        if not texts:
            message = f"{param} is an empty list; expected one text or more."
            raise ServiceError(422, "empty_input", message, param)
        limit = max_texts or self.settings.max_sentences
        if len(texts) > limit:
            message = (
                f"{param} has {len(texts):,} texts; expected at most {limit:,}. Send them in "
                "several requests."
            )
            raise ServiceError(422, "too_many_sentences", message, param)
        characters = max_characters or self.settings.max_characters
        for place, text in enumerate(texts):
            where = param if len(texts) == 1 else f"{param}: text {place}"
            if len(text) > characters:
                message = (
                    f"{where} has {len(text):,} characters; expected at most {characters:,}. "
                    "Split it into sentences."
                )
                raise ServiceError(422, "too_many_characters", message, param)
            if not is_unicode(text):
                message = f"{where} contains half of a surrogate pair; expected valid Unicode."
                raise ServiceError(422, "invalid_text", message, param)
        return texts


def is_unicode(text: str) -> bool:
    """Returns whether a text can be written as UTF-8; JSON can contain halves of characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_list(texts: str | list[str]) -> list[str]:
    """Returns a list of texts; a single one becomes a list."""
    return [texts] if isinstance(texts, str) else texts


async def _submitted(
    batcher: Batcher[Item, Result], request: Request, items: list[Item]
) -> list[Result]:
    try:
        return await batcher.submit(items, request.is_disconnected)
    except QueueFullError:
        raise overloaded() from None
    except AbandonedError:
        # Nobody reads it; it is what the log and the metrics say of a client that hung up.
        raise ServiceError(408, "client_disconnected", "The client hung up.") from None
