"""The endpoints: one function each, from a checked request to its answer."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from numpy.typing import NDArray

from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
from genpool.service import schemas
from genpool.service.core import MAX_QUERIES, Service, as_list
from genpool.service.problems import ServiceError, json_response
from genpool.service.served_model import ExplainedExample
from genpool.tensors.unit_rows import unit_rows
from genpool.text import Token

#: decimals of weights, cosines and probabilities in explanations; vectors are never rounded
DECIMALS = 6

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorResponse} for status in (400, 401, 408, 413, 422, 503)
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": schemas.ErrorResponse}}


def router_of(service: Service) -> APIRouter:
    """Returns the endpoints of a service that need its key, if it has one."""
    router = APIRouter(responses=ERRORS)
    model = service.model

    @router.post(
        "/v1/embeddings",
        response_model=schemas.EmbeddingResponse,
        responses=NOT_FOUND,
        summary="Vectors of texts",
    )
    async def embeddings(body: schemas.EmbeddingRequest, request: Request) -> Response:
        """Returns a vector of length 1 for each text. OpenAI's client libraries can call this."""
        _require_model(body.model, model.name)
        dim = _dimensions(body.dimensions, model.encoder.output_dim)
        texts = service.check_texts(as_list(body.input), "input")
        encoded = await service.encode(request, texts)
        vectors = unit_rows(np.stack([sentence.vector[:dim] for sentence in encoded]))
        rows = vectors.tolist() if body.encoding_format == "float" else _base64_rows(vectors)
        tokens = sum(sentence.tokens for sentence in encoded)
        data = [
            {"object": "embedding", "index": place, "embedding": row}
            for place, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_response({"object": "list", "data": data, "model": model.name, "usage": usage})

    @router.post(
        "/similarity", response_model=schemas.SimilarityResponse, summary="Cosines of texts"
    )
    async def similarity(body: schemas.SimilarityRequest, request: Request) -> Response:
        """Returns the cosine of every text of one group with every text of another."""
        first = service.check_texts(as_list(body.first), "first")
        second = service.check_texts(as_list(body.second), "second")
        limit = service.settings.max_cosines
        if len(first) * len(second) > limit:
            message = (
                f"{len(first):,} x {len(second):,} texts have more than {limit:,} cosines. Send "
                "them in several requests, or multiply the vectors of /v1/embeddings."
            )
            raise ServiceError(422, "too_many_sentences", message, "second")
        vectors = await service.unit_vectors(request, first + second)
        cosines = vectors[: len(first)].astype(float) @ vectors[len(first) :].T
        return json_response({"model": model.name, "similarities": cosines.tolist()})

    @router.post(
        "/classify",
        response_model=schemas.ClassifyResponse,
        responses=NOT_FOUND,
        summary="Labels of texts or pairs",
    )
    async def classify(body: schemas.ClassifyRequest, request: Request) -> Response:
        """Returns the label of each text, or of each pair, with all probabilities."""
        classifier = model.classifier
        if classifier is None:
            message = (
                "This service has no classifier. Start it with the folder of one: "
                "genpool serve FOLDER."
            )
            raise ServiceError(404, "no_classifier", message)
        examples = _examples(body.input, classifier.sentences_per_example)
        texts = [text for example in examples for text in example]
        service.check_texts(texts, "input")
        labels = list(classifier.labels)
        predictions = [
            {"label": labels[int(row.argmax())], "probabilities": row.tolist()}
            for row in await service.classify(request, examples)
        ]
        return json_response({"model": model.name, "labels": labels, "predictions": predictions})

    @router.post(
        "/search",
        response_model=schemas.SearchResponse,
        responses=NOT_FOUND,
        summary="Sentences of the index",
    )
    async def search(body: schemas.SearchRequest, request: Request) -> Response:
        """Returns the sentences of the index that are closest to each query."""
        if model.index is None:
            message = "This service has no index. Start it with one: genpool serve --index FOLDER."
            raise ServiceError(404, "no_index", message)
        queries = service.check_texts(as_list(body.query), "query", max_texts=MAX_QUERIES)
        results = await service.search(request, queries, body.top)
        return json_response(
            {
                "model": model.name,
                "results": [
                    {"query": query, "hits": [hit._asdict() for hit in hits]}
                    for query, hits in zip(queries, results, strict=True)
                ],
            }
        )

    @router.post("/explain", response_model=schemas.ExplainResponse, summary="What decides")
    async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
        """Returns the influence and the weight of every word, in every head."""
        limit = service.settings.max_explain_characters
        texts = service.check_texts(as_list(body.input), "input", limit)
        explained = await service.explain(request, texts)
        return json_response({"model": model.name, **_explained(explained, body.dimension_weights)})

    @router.get("/v1/models", response_model=schemas.ModelsResponse, summary="The model")
    async def models() -> Response:
        """Returns the name, the sizes and the limits of the model."""
        return json_response({"object": "list", "data": [_model_card(service)]})

    @router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def metrics() -> Response:
        """Returns counters of requests, times, batches and queues."""
        return Response(
            service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return router


def _require_model(name: str | None, served: str) -> None:
    if name is not None and name != served:
        message = f"There is no model of this name; this service has {served!r}."
        raise ServiceError(404, "model_not_found", message, "model")


def _dimensions(dimensions: int | None, output_dim: int) -> int:
    if dimensions is None:
        return output_dim
    if not 1 <= dimensions <= output_dim:
        message = f"dimensions is {dimensions}; expected 1 to {output_dim}."
        raise ServiceError(422, "invalid_request", message, "dimensions")
    return dimensions


def _base64_rows(vectors: NDArray[np.float32]) -> list[str]:
    rows = vectors.astype("<f4")  # (n, dim)
    return [b64encode(row.tobytes()).decode("ascii") for row in rows]


def _examples(given: str | list[str] | list[list[str]], sentences: int) -> list[list[str]]:
    """Returns the examples of a request; raises ServiceError if they are of the other kind."""
    texts: list[Any] = [given] if isinstance(given, str) else list(given)
    examples = [[text] if isinstance(text, str) else text for text in texts]
    if any(len(example) != sentences for example in examples):
        kind = "pairs of texts: [[first, second], ...]" if sentences == 2 else "a list of texts"
        message = f"input: the classifier of this service expects {kind}."
        raise ServiceError(422, "invalid_request", message, "input")
    return examples


def _explained(explained: ExplainedExample, with_dimensions: bool) -> dict[str, Any]:
    pair, prediction = explained.pair, explained.prediction
    return {
        "sentences": [_sentence(side, with_dimensions) for side in explained.sentences],
        "pair": None if pair is None else _pair(pair),
        "prediction": None if prediction is None else _prediction(prediction, explained.classified),
    }


def _pair(pair: PairExplanation) -> dict[str, Any]:
    return {
        "similarity": pair.similarity,
        "head_similarity": _rounded(pair.head_similarity),
        "similarity_influence": [_rounded(side) for side in pair.similarity_influence],
    }


def _prediction(prediction: LabelExplanation, classified: Sequence[Explanation]) -> dict[str, Any]:
    return {
        "label": prediction.label,
        "labels": list(prediction.labels),
        "probabilities": prediction.probabilities.tolist(),
        "tokens": [_tokens(side.tokens) for side in classified],
        "label_influence": [_rounded(side) for side in prediction.influence],
    }


def _sentence(explanation: Explanation, with_dimensions: bool) -> dict[str, Any]:
    return {
        "sentence": explanation.sentence,
        "tokens": _tokens(explanation.tokens),
        "truncated": explanation.truncated,
        "vector_influence": _rounded(explanation.vector_influence),
        "head_influence": _rounded(explanation.head_influence),
        "head_weights": _rounded(explanation.token_weights),
        "head_overlap": _rounded(explanation.head_overlap),
        "dimension_weights": _quantized(explanation.weights) if with_dimensions else None,
    }


def _tokens(tokens: list[Token]) -> list[dict[str, Any]]:
    return [{"text": token.text, "start": token.start, "end": token.end} for token in tokens]


def _rounded(values: NDArray[np.floating[Any]]) -> list[Any]:
    rounded: list[Any] = values.astype(float).round(DECIMALS).tolist()
    return rounded


def _quantized(weights: NDArray[np.float32]) -> dict[str, Any]:
    """Returns the weights as 8-bit values: half a million numbers are short enough then."""
    scale = float(weights.max(initial=0.0))
    values = np.rint(weights * (255 / scale if scale else 0)).astype(np.uint8)
    data = b64encode(values.tobytes()).decode("ascii")
    return {"shape": list(weights.shape), "scale": scale, "data": data}


def _model_card(service: Service) -> dict[str, Any]:
    model, settings = service.model, service.settings
    encoder, classifier, index = model.encoder, model.classifier, model.index
    kinds = {1: "text", 2: "pair"}
    return {
        "id": model.name,
        "object": "model",
        "created": 0,
        "owned_by": "genpool",
        "dimensions": encoder.output_dim,
        "heads": encoder.pooling.heads,
        "head_dimensions": encoder.pooling.input_dim,
        "pooling": encoder.settings.pooling.name,
        "max_tokens": encoder.text.max_length,
        "classifier": None if classifier is None else kinds[classifier.sentences_per_example],
        "labels": [] if classifier is None else list(classifier.labels),
        "index_rows": None if index is None else len(index),
        "limits": {
            "sentences": settings.max_sentences,
            "characters": settings.max_characters,
            "explain_characters": settings.max_explain_characters,
            "body_bytes": settings.max_body_bytes,
        },
    }
