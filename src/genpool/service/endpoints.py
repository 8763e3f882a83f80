"""The queues before the model, and the endpoints: from a checked request to its answer."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from numpy.typing import NDArray
from prometheus_client import generate_latest

from genpool.service import schemas
from genpool.service.batcher import Batcher
from genpool.service.http import Metrics, ServiceError, json_response
from genpool.service.served_model import ServedModel, ServiceSettings
from genpool.tensors.arrays import unit_rows

#: queries of one request, which share a pass over the index
MAX_QUERIES = 64

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorResponse} for status in (400, 401, 404, 408, 413, 422, 503)
}


class Service:
    """One model, used by one thread; requests wait for it in queues."""

    def __init__(self, model: ServedModel, settings: ServiceSettings) -> None:
        self.model, self.settings, self.metrics = model, settings, Metrics()
        worker = ThreadPoolExecutor(1, "genpool-model")
        # A search reads the whole index, which needs no model: on a thread of its own.
        searcher = ThreadPoolExecutor(1, "genpool-search")
        self.executors = (worker, searcher)
        batch, queued = settings.batch_sentences, settings.max_queued_sentences
        window = settings.window_seconds
        self.vectors = Batcher(model.encode, worker, batch, queued, window)
        self.labels = Batcher(model.classify, worker, batch, queued, window)
        self.searches = Batcher(model.search, searcher, MAX_QUERIES, queued, window)
        # Explanations gain nothing from each other, and one after the other leaves room between.
        self.explanations = Batcher(model.explain, worker, 1, max(1, queued // 64), 0.0)
        for batcher in (self.vectors, self.labels, self.searches, self.explanations):
            work = batcher.process.__name__  # as the method of the model
            batcher.observe = self.metrics.batches.labels(work).observe
            self.metrics.queued.labels(work).set_function(partial(getattr, batcher, "queued"))

    async def encode(
        self, request: Request, texts: list[str], dim: int | None = None
    ) -> tuple[NDArray[np.float32], list[int]]:
        """Returns vectors of length 1 (texts, dim or output_dim), and the tokens of each text."""
        encoded = await self.vectors.submit(texts, request.is_disconnected)
        vectors, counts = zip(*encoded, strict=True)
        return unit_rows(np.stack(vectors)[:, :dim]), list(counts)

    def check_texts(
        self,
        texts: str | list[str],
        param: str,
        max_characters: int | None = None,
        max_texts: int | None = None,
    ) -> list[str]:
        """Returns the texts of a field; raises ServiceError if there are too few, many or long."""
        texts = [texts] if isinstance(texts, str) else texts
        limit = max_texts or self.settings.max_sentences
        characters = max_characters or self.settings.max_characters

        def refused(code: str, message: str) -> ServiceError:
            return ServiceError(422, code, message, param)

        if not texts:
            raise refused("empty_input", f"{param} is an empty list; expected one text or more.")
        if len(texts) > limit:
            message = f"{param} has {len(texts):,} texts; expected at most {limit:,}."
            raise refused("too_many_sentences", f"{message} Send them in several requests.")
        for place, text in enumerate(texts):
            where = param if len(texts) == 1 else f"{param}: text {place}"
            if len(text) > characters:
                message = f"{where} has {len(text):,} characters; expected at most {characters:,}."
                raise refused("too_many_characters", f"{message} Split it into sentences.")
            try:
                text.encode()
            except UnicodeEncodeError:  # JSON can contain halves of characters
                message = f"{where} contains half of a surrogate pair; expected valid Unicode."
                raise refused("invalid_text", message) from None
        return texts


def router_of(service: Service) -> APIRouter:
    """Returns the endpoints of a service that need its key, if it has one."""
    router = APIRouter(responses=ERRORS)
    model = service.model

    @router.post("/v1/embeddings", response_model=schemas.EmbeddingResponse)
    async def embeddings(body: schemas.EmbeddingRequest, request: Request) -> Response:
        """Returns a vector of length 1 for each text. OpenAI's client libraries can call this."""
        if body.model not in (None, model.name):
            message = f"There is no model of this name; this service has {model.name!r}."
            raise ServiceError(404, "model_not_found", message, "model")
        dim, output_dim = body.dimensions, model.encoder.output_dim
        if dim is not None and not 1 <= dim <= output_dim:
            message = f"dimensions is {dim}; expected 1 to {output_dim}."
            raise ServiceError(422, "invalid_request", message, "dimensions")
        texts = service.check_texts(body.input, "input")
        vectors, counts = await service.encode(request, texts, dim)
        rows: list[Any] = vectors.tolist()
        if body.encoding_format == "base64":
            rows = [_base64(vector) for vector in vectors.astype("<f4")]
        data = [
            {"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": sum(counts), "total_tokens": sum(counts)}
        return json_response({"object": "list", "data": data, "model": model.name, "usage": usage})

    @router.post("/similarity", response_model=schemas.SimilarityResponse)
    async def similarity(body: schemas.SimilarityRequest, request: Request) -> Response:
        """Returns the cosine of every text of one group with every text of another."""
        first = service.check_texts(body.first, "first")
        second = service.check_texts(body.second, "second")
        limit = service.settings.max_cosines
        if len(first) * len(second) > limit:
            message = (
                f"{len(first):,} x {len(second):,} texts have more than {limit:,} cosines. Send "
                "them in several requests, or multiply the vectors of /v1/embeddings."
            )
            raise ServiceError(422, "too_many_sentences", message, "second")
        vectors, _ = await service.encode(request, first + second)
        cosines = vectors[: len(first)].astype(float) @ vectors[len(first) :].T
        return json_response({"model": model.name, "similarities": cosines.tolist()})

    @router.post("/classify", response_model=schemas.ClassifyResponse)
    async def classify(body: schemas.ClassifyRequest, request: Request) -> Response:
        """Returns the label of each text, or of each pair, with all probabilities."""
        classifier = model.classifier
        if classifier is None:
            message = "This service has no classifier. Start it with one: genpool serve FOLDER."
            raise ServiceError(404, "no_classifier", message)
        texts: list[Any] = [body.input] if isinstance(body.input, str) else list(body.input)
        examples = [[text] if isinstance(text, str) else text for text in texts]
        sentences = classifier.sentences_per_example
        if any(len(example) != sentences for example in examples):
            kind = "pairs of texts: [[first, second], ...]" if sentences == 2 else "a list of texts"
            message = f"input: the classifier of this service expects {kind}."
            raise ServiceError(422, "invalid_request", message, "input")
        service.check_texts([text for example in examples for text in example], "input")
        labels = list(classifier.labels)
        rows = await service.labels.submit(examples, request.is_disconnected)
        predictions = [
            {"label": labels[int(row.argmax())], "probabilities": row.tolist()} for row in rows
        ]
        return json_response({"model": model.name, "labels": labels, "predictions": predictions})

    @router.post("/search", response_model=schemas.SearchResponse)
    async def search(body: schemas.SearchRequest, request: Request) -> Response:
        """Returns the sentences of the index that are closest to each query."""
        if model.index is None:
            message = "This service has no index. Start it with one: genpool serve --index FOLDER."
            raise ServiceError(404, "no_index", message)
        texts = service.check_texts(body.query, "query", max_texts=MAX_QUERIES)
        vectors, counts = await service.encode(request, texts, model.index.card.dim)
        # Without words, all sentences of the index are equally close: no hits.
        tops = (body.top if tokens else 0 for tokens in counts)
        queries = list(zip(vectors, tops, strict=True))
        found = await service.searches.submit(queries, request.is_disconnected)
        results = [
            {"query": text, "hits": [hit._asdict() for hit in hits]}
            for text, hits in zip(texts, found, strict=True)
        ]
        return json_response({"model": model.name, "results": results})

    @router.post("/explain", response_model=schemas.ExplainResponse)
    async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
        """Returns the influence and the weight of every word, in every head."""
        limit = service.settings.max_explain_characters
        texts = service.check_texts(body.input, "input", limit)
        [explained] = await service.explanations.submit([texts], request.is_disconnected)
        parts = {"model": model.name, **explained._asdict()}
        if (label := explained.prediction) is not None:
            tokens = [side.tokens for side in explained.classified]
            parts["prediction"] = {**vars(label), "label": label.label, "tokens": tokens}
        answer = schemas.ExplainResponse.model_validate(parts)
        if body.dimension_weights:
            for sentence, side in zip(answer.sentences, explained.sentences, strict=True):
                sentence.dimension_weights = _quantized(side.weights)
        return json_response(answer)

    @router.get("/v1/models", response_model=schemas.ModelsResponse)
    async def models() -> Response:
        """Returns the name, the sizes and the limits of the model."""
        encoder, classifier, index = model.encoder, model.classifier, model.index
        kinds = {1: "text", 2: "pair"}
        card = {
            "id": model.name,
            "dimensions": encoder.output_dim,
            "heads": encoder.pooling.heads,
            "head_dimensions": encoder.pooling.input_dim,
            "pooling": encoder.settings.pooling.name,
            "max_tokens": encoder.text.max_length,
            "classifier": None if classifier is None else kinds[classifier.sentences_per_example],
            "labels": [] if classifier is None else list(classifier.labels),
            "index_rows": None if index is None else len(index),
            "limits": service.settings,
        }
        cards = [schemas.ModelCard.model_validate(card)]
        return json_response({"object": "list", "data": cards})

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Returns counters of requests, times, batches and queues, for Prometheus."""
        text = generate_latest(service.metrics.registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _base64(values: NDArray[Any]) -> str:
    return b64encode(values.tobytes()).decode("ascii")


def _quantized(weights: NDArray[np.float32]) -> schemas.DimensionWeights:
    """Returns the weights as 8-bit values: half a million numbers are short enough then."""
    scale = float(weights.max(initial=0.0))
    values = np.rint(weights * (255 / scale if scale else 0)).astype(np.uint8)
    shape = list(weights.shape)
    return schemas.DimensionWeights(shape=shape, scale=scale, data=_base64(values))
