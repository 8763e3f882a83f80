"""A parser for tests of syntax trees."""

from __future__ import annotations

import numpy as np
import pytest

from genpool.reproduction.trees import annotator


class LeftParser:
    """Every word depends on the one before it; counts the sentences that it parses."""

    parsed = 0

    def __call__(self, sentences):
        type(self).parsed += len(sentences)
        return [
            np.array([[at - 1, 1] for at in range(len(words))], np.int32).reshape(-1, 2)
            for words in sentences
        ]


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> type[LeftParser]:
    monkeypatch.setitem(annotator.PARSERS, "spacy", LeftParser)
    monkeypatch.setattr(LeftParser, "parsed", 0)
    return LeftParser
