"""The lines for other libraries in docs/guides/tools.md run where the library is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.search import ModelReference, index_writer

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "tools.md"
BLOCKS = re.findall(
    r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
#: the library of every block, in the order of the page
LIBRARIES = (
    "langchain_core",
    "llama_index",
    "txtai",
    "spacy",
    "faiss",
    "faiss",
    "lancedb",
    "qdrant_client",
    "fastapi",
)
SENTENCES = ["A dog runs.", "It rains.", "The price of oil fell."]


@pytest.mark.parametrize("number", range(len(LIBRARIES)), ids=lambda number: LIBRARIES[number])
def test_the_lines_for_a_library_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(BLOCKS) == len(LIBRARIES)
    assert LIBRARIES[number] in BLOCKS[number]
    if find_spec(LIBRARIES[number]) is None:
        pytest.skip(f"{LIBRARIES[number]} is not installed")
    monkeypatch.chdir(tmp_path)
    model = SentenceEncoder.from_pretrained()
    vectors = np.asarray(model.encode(SENTENCES))
    with index_writer(tmp_path / "library", model.output_dim, ModelReference("embedded")) as add:
        add(SENTENCES, vectors)
    namespace: dict[str, Any] = {"__name__": "page", "model": model, "sentences": SENTENCES}
    exec(compile(BLOCKS[number], str(PAGE), "exec", dont_inherit=True), namespace)
    if "an animal" in BLOCKS[number]:  # of the sentences, the one of the dog is the nearest
        printed = capsys.readouterr().out
        assert "A dog runs." in printed or printed.startswith("[(0, ")
    if LIBRARIES[number] == "fastapi":
        assert np.abs(np.array(namespace["vectors"](SENTENCES)) - vectors).max() < 1e-5
    if "write_faiss" in BLOCKS[number]:
        import faiss

        assert faiss.read_index("library.faiss").ntotal == len(SENTENCES)
