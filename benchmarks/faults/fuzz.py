"""Requests that a schema fuzzer makes up, right ones and wrong ones, against the service.

Run with `python -m benchmarks.faults.fuzz` (1,000 cases per endpoint, a few minutes). Every answer
must be below 500, of a status and a shape that /openapi.json describes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from genpool.search import ModelReference, SearchIndex
from genpool.service import ServedModel, create_app
from tests.helpers.small_indexes import write_index

INDEXED = ["A dog runs.", "An animal sleeps.", "The price of oil fell."]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def fuzz(app: FastAPI, cases: int) -> dict[str, Counter[int]]:
    """Returns how often every status was answered, by endpoint.

    Args:
        app: the service.
        cases: requests per endpoint; half of them fit the schema, half break it.

    Raises:
        FailureGroup: an answer of 500 or more, or one that the schema does not describe.
    """
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    results = list(schema.get_all_operations())
    operations = [result.ok() for result in results if isinstance(result, Ok)]
    if len(operations) < len(results):
        raise ValueError("the schema has operations that cannot be read")
    return {operation.label: fuzz_operation(operation, cases) for operation in operations}


def fuzz_operation(operation: Any, cases: int) -> Counter[int]:
    """Returns how often every status was answered by one endpoint."""
    statuses: Counter[int] = Counter()
    # An endpoint without a body has nothing that could break its schema.
    modes = list(GenerationMode) if operation.body else [GenerationMode.POSITIVE]
    for mode in modes:

        @seed(0)
        @settings(
            max_examples=cases // len(modes),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def answers(case: Any) -> None:
            response = case.call()
            statuses[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

        answers()
    return statuses


@contextmanager
def fuzzed_service() -> Iterator[FastAPI]:
    """Yields the service of the embedded models, with a small index."""
    model = ServedModel.load()
    with TemporaryDirectory() as folder:
        vectors, reference = model.encoder.encode(INDEXED), ModelReference.of(model.encoder)
        write_index(Path(folder) / "index", vectors, INDEXED, model=reference)
        index = SearchIndex.open(Path(folder) / "index")
        yield create_app(ServedModel(model.encoder, model.classifier, index))


def main() -> None:
    """Prints how often every status was answered, by endpoint."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with fuzzed_service() as app:
        for label, statuses in fuzz(app, cases).items():
            counts = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
            print(f"{label}: {sum(statuses.values())} cases: {counts}", flush=True)


if __name__ == "__main__":
    main()
