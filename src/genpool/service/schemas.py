"""Requests and answers of the service, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

#: decimals of weights, cosines and influences in explanations; vectors are never rounded
DECIMALS = 6


def _rounded(values: NDArray[np.floating[Any]]) -> Any:
    return values.astype(float).round(DECIMALS).tolist()


Texts = Annotated[str | list[str], Field(description="One text, or a list of texts.")]
Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
Row = Annotated[list[float], BeforeValidator(_rounded)]
Table = Annotated[list[list[float]], BeforeValidator(_rounded)]


def _example(**content: Any) -> ConfigDict:
    # Strict: "3" is no number and 3 no text. What the fields mean is then what the schema says.
    return ConfigDict(strict=True, json_schema_extra={"examples": [content]})


class _Described(BaseModel, from_attributes=True):
    """Answers that are made of genpool's own objects, whose attributes have these names."""


class EmbeddingRequest(BaseModel):
    """Texts to encode, in the shape of OpenAI's API."""

    model_config = _example(input=["A dog runs.", "An animal moves."], encoding_format="float")

    input: Texts
    model: str | None = Field(None, description="The name that GET /v1/models returns.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Lists of numbers, or the bytes of 32-bit floats (little-endian)."
    )
    dimensions: int | None = Field(
        None, description="Keep this number of leading dimensions. Default: all of them."
    )
    user: str | None = Field(None, description="Accepted and not used.")


class Embedding(BaseModel):
    """The vector of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingResponse(BaseModel):
    """Vectors of length 1, in the order of the texts; zeros for a text without words."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: dict[Literal["prompt_tokens", "total_tokens"], int]


class SimilarityRequest(BaseModel):
    """Two groups of texts to compare."""

    model_config = _example(first="A dog runs.", second=["An animal moves.", "Oil is cheap."])

    first: Texts
    second: Texts


class SimilarityResponse(BaseModel):
    """The cosines of all pairs: a row for each text of the first group."""

    model: str
    similarities: list[list[float]]


class ClassifyRequest(BaseModel):
    """Examples to label."""

    model_config = _example(input=[["A dog runs.", "An animal moves."]])

    input: str | list[str] | list[Pair] = Field(
        description="Pairs of texts for a pair classifier; else one text, or a list."
    )


class Prediction(BaseModel):
    """The most probable label, and the probabilities in the order of the labels."""

    label: str
    probabilities: list[float]


class ClassifyResponse(BaseModel):
    """The predictions, in the order of the examples."""

    model: str
    labels: list[str]
    predictions: list[Prediction]


class SearchRequest(BaseModel):
    """Queries for the index of the service."""

    model_config = _example(query="energy is getting cheaper", top=3)

    query: Texts
    top: int = Field(10, ge=1, le=100, description="Hits per query.")


class SearchHit(BaseModel):
    """A sentence of the index, and its cosine with the query."""

    row: int
    score: float
    sentence: str
    values: dict[str, str | int | float | bool | None] = Field(
        description="The columns that the index keeps; empty if it keeps none."
    )


class SearchResult(BaseModel):
    """The closest sentences, best first; none for a query without words."""

    query: str
    hits: list[SearchHit]


class SearchResponse(BaseModel):
    """The results, in the order of the queries."""

    model: str
    results: list[SearchResult]


class ExplainRequest(BaseModel):
    """One text, or two to compare."""

    model_config = _example(input=["A dog runs.", "An animal moves."], dimension_weights=False)

    input: str | Annotated[list[str], Field(min_length=1, max_length=2)] = Field(
        description="One text, or a list of one or two."
    )
    dimension_weights: bool = Field(
        False, description="Also return the weights of every dimension, as 8-bit values."
    )


class TokenSpan(_Described):
    """A word and its place in the text, in Unicode code points; -1 for an added token."""

    text: str
    start: int
    end: int


class DimensionWeights(BaseModel):
    """Weights (heads, tokens, dimensions) as bytes in base64: weight = byte / 255 * scale."""

    shape: Annotated[list[int], Field(min_length=3, max_length=3)]
    scale: float
    data: str


class SentenceExplanation(_Described):
    """What the heads looked at in one text. Influence is in degrees that a vector turns."""

    sentence: str
    tokens: list[TokenSpan]
    truncated: bool
    vector_influence: Row
    head_influence: Table
    head_weights: Table = Field(validation_alias="token_weights")
    head_overlap: Table
    dimension_weights: DimensionWeights | None = None


class SimilarityExplanation(_Described):
    """The cosine of two texts, and how much of it is lost without each token."""

    similarity: float
    head_similarity: Row
    similarity_influence: list[Row]


class PredictionExplanation(BaseModel):
    """The label, and how much of its probability is lost without each token."""

    label: str
    labels: list[str]
    probabilities: Annotated[list[float], BeforeValidator(np.ndarray.tolist)]
    tokens: list[list[TokenSpan]]
    label_influence: list[Row] = Field(validation_alias="influence")


class ExplainResponse(BaseModel):
    """Explanations of the texts; `pair` with two texts, `prediction` if they fit the classifier."""

    model: str
    sentences: list[SentenceExplanation]
    pair: SimilarityExplanation | None
    prediction: PredictionExplanation | None


class Limits(_Described):
    """What one request may contain."""

    sentences: int = Field(validation_alias="max_sentences")
    characters: int = Field(validation_alias="max_characters")
    explain_characters: int = Field(validation_alias="max_explain_characters")
    body_bytes: int = Field(validation_alias="max_body_bytes")


class ModelCard(BaseModel):
    """The model of this service."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "genpool"
    dimensions: int
    heads: int
    head_dimensions: int
    pooling: str
    max_tokens: int | None
    classifier: Literal["pair", "text"] | None
    labels: list[str]
    index_rows: int | None
    limits: Limits


class ModelsResponse(BaseModel):
    """All models of this service: one."""

    object: Literal["list"]
    data: list[ModelCard]


class ErrorResponse(BaseModel):
    """What was wrong with a request, and how to fix it."""

    error: dict[Literal["message", "type", "param", "code"], str | None]
