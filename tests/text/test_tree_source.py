"""Where trees come from: the data, a parser with its cache, or balanced; all of it counted."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from genpool.errors import ConfigError
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer, tree_source
from genpool.text.tree_cache import TreeCache
from genpool.text.tree_source import TreeReport, TreeSource
from genpool.trees import TREE_KINDS

SENTENCES = [["A", "man", "sleeps"], ["Dogs", "run"], []]


class ChainParser:
    """Every word depends on the next; counts the sentences that it parses."""

    version = "chain 1"
    parsed = 0

    def dependencies(self, sentences):
        type(self).parsed += len(sentences)
        return [
            np.array(
                [[*range(1, len(words)), -1][: len(words)], [0] * len(words)], np.int32
            ).T.reshape(-1, 2)
            for words in sentences
        ]


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> type[ChainParser]:
    monkeypatch.setitem(tree_source.PARSERS, "chain", ChainParser)
    monkeypatch.setattr(ChainParser, "parsed", 0)
    return ChainParser


def binary(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32).reshape(-1, 1)


def test_without_a_parser_trees_are_balanced_and_counted() -> None:
    source = TreeSource("binary")
    trees = source.trees(SENTENCES)
    assert [tree.tolist() for tree in trees] == [
        TREE_KINDS["binary"].balanced(len(words)).tolist() for words in SENTENCES
    ]
    assert source.report == TreeReport(balanced=3)
    assert str(source.report) == "3 sentences: 3 balanced"


def test_trees_of_the_data_are_used_and_those_that_do_not_fit_are_not() -> None:
    source = TreeSource("binary")
    trees = source.trees(SENTENCES, [binary([0, 0, 2]), binary([0, 1, 1]), None])
    assert [tree[:, 0].tolist() for tree in trees] == [[0, 0, 2], [0, 1], []]
    assert source.report == TreeReport(from_data=1, balanced=2, unfit=1)
    assert str(source.report) == (
        "3 sentences: 1 from the data, 2 balanced; 1 parses of the data do not fit the tokens"
    )


def test_trees_of_truncated_sentences_are_truncated_too() -> None:
    source = TreeSource("binary")
    (tree,) = source.trees([["A", "man"]], [binary([0, 0, 2])], max_length=2)
    assert tree[:, 0].tolist() == [0, 1] and source.report.from_data == 1


def test_a_parser_makes_what_the_data_lacks(chain) -> None:
    source = TreeSource("dependency", "chain")
    trees = source.trees(SENTENCES, [None, np.array([[-1, 3], [0, 2]], np.int32), None])
    assert trees[0][:, 0].tolist() == [1, 2, -1] and trees[1].tolist() == [[-1, 3], [0, 2]]
    assert source.report == TreeReport(from_data=1, parsed=2)
    assert chain.parsed == 2
    # A chain to the right, as a binary tree: every word is joined with what came before it.
    (tree,) = TreeSource("binary", "chain").trees([["A", "man", "sleeps"]])
    assert tree[:, 0].tolist() == [0, 1, 1]


def test_known_trees_are_used_inside_their_block_only() -> None:
    source = TreeSource("binary")
    with source.known_trees(SENTENCES[:1], [binary([0, 0, 2])]):
        assert source.trees(SENTENCES[:1])[0][:, 0].tolist() == [0, 0, 2]
    assert source.trees(SENTENCES[:1])[0][:, 0].tolist() == [0, 1, 1]
    assert source.report == TreeReport(from_data=1, balanced=1)


def test_an_unknown_parser_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown parser 'spcy'. Did you mean 'spacy'\?"):
        TreeSource("binary", "spcy")


@pytest.mark.parametrize("how", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_has_the_same_kind_and_parser_and_its_own_counts(chain, how) -> None:
    source = TreeSource("binary", "chain")
    source.trees(SENTENCES)
    copied = how(source)
    assert (copied.kind_name, copied.parser, copied.report) == ("binary", "chain", TreeReport())


def test_the_cache_is_asked_before_the_parser_also_after_saving(chain, tmp_path: Path) -> None:
    cache = TreeCache()
    first = TreeSource("dependency", "chain", cache).trees([*SENTENCES, SENTENCES[0]])
    assert chain.parsed == 3 and len(cache) == 3
    cache.save(tmp_path / "trees.safetensors")
    loaded = TreeCache()
    loaded.load(tmp_path / "trees.safetensors")
    again = TreeSource("dependency", "chain", loaded).trees([*SENTENCES, SENTENCES[0]])
    assert chain.parsed == 3
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert b"sleeps" not in (tmp_path / "trees.safetensors").read_bytes()


def test_trees_of_another_version_of_the_parser_are_not_used(chain, tmp_path: Path) -> None:
    cache = TreeCache()
    TreeSource("binary", "chain", cache).trees(SENTENCES)
    chain.version = "chain 2"
    try:
        TreeSource("binary", "chain", cache).trees(SENTENCES)
    finally:
        chain.version = "chain 1"
    assert chain.parsed == 6


@pytest.mark.parametrize("content", [b"", b"not safetensors", b"\x08" + b"\0" * 7 + b'{"a":1} '])
def test_a_damaged_cache_is_no_cache(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trees.safetensors"
    path.write_bytes(content)
    cache = TreeCache()
    cache.load(path)
    assert len(cache) == 0
    cache.load(tmp_path / "missing")
    assert len(cache) == 0
    cache.save(tmp_path / "new")  # nothing to keep
    assert not (tmp_path / "new").exists()


def pipeline(**options) -> TextPipeline:
    return TextPipeline(WordTokenizer(), Vocabulary.build({}), Characters(""), **options)


def test_only_a_pipeline_for_trees_has_them_in_its_batches() -> None:
    text = pipeline()
    assert text.batch(SENTENCES).trees is None and text.with_trees(None, None) is text
    with_trees = text.with_trees("binary", None)
    assert text.tree_source is None
    trees = with_trees.batch(SENTENCES).trees
    assert trees is not None and trees[:, :, 0].tolist() == [[0, 1, 1], [0, 1, 0], [0, 0, 0]]


def test_begin_and_end_tokens_have_their_places_in_the_trees() -> None:
    batch = pipeline(sentence_ends=True).with_trees("binary", None).batch([["Dogs", "run"], []])
    assert batch.trees is not None
    assert batch.trees[:, :, 0].tolist() == [[0, 0, 1, 2], [0, 1, 0, 0]]
    assert batch.mask.sum(dim=1).tolist() == [4, 2]
