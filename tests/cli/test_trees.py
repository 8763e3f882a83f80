"""Commands with models that read or choose syntax trees: how many trees, and which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier, SentenceEncoder
from tests.helpers.commands import Command
from tests.helpers.small_models import LABELS, lively

SENTENCES = ["a red dog runs", "the man sleeps.", ""]


@pytest.fixture
def sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def reader_of_trees(make_encoder, tmp_path: Path) -> SentenceEncoder:
    model = lively(make_encoder("last", "spinn"))
    model.save_pretrained(tmp_path / "spinn")
    return model


@pytest.mark.parametrize("workers", [1, 2])
def test_encode_says_how_many_trees_are_balanced(
    genpool: Command, reader_of_trees: SentenceEncoder, sentences: Path, workers: int
) -> None:
    """Those of worker processes too."""
    said = genpool("encode", "spinn", sentences, "-o", "v.npy", "--workers", workers)
    assert said.code == 0, said.err
    assert "syntax trees: 3 sentences: 3 balanced" in said.err.splitlines()
    vectors, expected = np.load("v.npy"), reader_of_trees.encode(SENTENCES)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


def test_predict_says_it_too(
    genpool: Command, reader_of_trees: SentenceEncoder, sentences: Path
) -> None:
    PairClassifier(reader_of_trees, LABELS).save_pretrained("pairs")
    Path("pairs.tsv").write_text("sentence1\tsentence2\na dog\tthe man runs\n", encoding="utf-8")
    said = genpool("predict", "pairs", "pairs.tsv", "-o", "labels.tsv")
    assert said.code == 0, said.err
    assert "syntax trees: 2 sentences: 2 balanced" in said.err.splitlines()


def test_explain_prints_the_tree_that_the_encoder_chose(
    genpool: Command, make_encoder, sentences: Path
) -> None:
    model = lively(make_encoder("last", "gumbel-tree"))
    model.save_pretrained("gumbel")
    said = genpool("explain", SENTENCES[0], "--model", "gumbel")
    assert said.code == 0, said.err
    (line,) = [line for line in said.out.splitlines() if line.startswith("tree ")]
    assert line == f"tree {model.explain(SENTENCES[0]).tree}"
    assert line.count("(") == line.count(")") == 3
