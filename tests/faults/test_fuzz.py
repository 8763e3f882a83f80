"""A few of the cases of `python -m benchmarks.faults.fuzz`, on tiny models."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from genpool import PairClassifier, TextClassifier
from genpool.service import ServedModel, create_app

pytest.importorskip("schemathesis")

from benchmarks.faults.fuzz import fuzz

CASES = 30


@pytest.fixture
def app(pair_classifier: PairClassifier) -> FastAPI:
    return create_app(ServedModel(pair_classifier.encoder, pair_classifier))


def test_no_case_of_a_fuzzer_fails_the_service(app: FastAPI) -> None:
    answered = fuzz(app, CASES)
    assert len(answered) == 8
    for label, statuses in answered.items():
        assert max(statuses) < 500, label
        assert label.startswith("GET") or sum(statuses.values()) >= CASES // 2, label
    assert answered["POST /v1/embeddings"][200] > 0
    assert answered["POST /v1/embeddings"][422] > 0


def test_no_case_of_a_fuzzer_fails_a_text_classifier(text_classifier: TextClassifier) -> None:
    app = create_app(ServedModel(text_classifier.encoder, text_classifier))
    statuses = fuzz(app, CASES)["POST /classify"]
    assert statuses[200] > 0 and max(statuses) < 500


def test_the_fuzzer_notices_an_answer_outside_the_schema(app: FastAPI) -> None:
    """A check of the check: an endpoint that answers with another shape than it promises."""
    broken = FastAPI()

    @broken.get("/broken", response_model=dict[str, int])
    async def wrong() -> JSONResponse:
        return JSONResponse({"a": "no number"})

    with pytest.raises(BaseExceptionGroup, match="failure") as raised:
        fuzz(broken, 3)
    assert "not of type" in str(raised.value.exceptions[0])
