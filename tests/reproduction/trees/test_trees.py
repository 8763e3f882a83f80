"""Trees as integers per token: text forms, cutting, ends, binarizing, heads of phrases."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool.errors import InputError
from genpool.reproduction.trees import (
    RELATIONS,
    BinaryTrees,
    DependencyTrees,
    parse_brackets,
    relation_id,
    to_brackets,
    tree_rows,
)
from genpool.reproduction.trees.annotator import single_root
from genpool.reproduction.trees.head_rules import constituency_dependencies
from genpool.tensors.packing import Packing
from tests.helpers.tree_shapes import (
    every_tree,
    halves,
    middle_heads,
    random_dependencies,
    random_tree,
    reductions,
)


def column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32).reshape(-1, 1)


def check_heads(text: str) -> None:
    heads = [int(head) for head in text.split()]
    DependencyTrees.check(np.stack([heads, np.zeros(len(heads))], axis=1).astype(np.int32))


def nested_brackets(tree, words: list[str]) -> str:
    if isinstance(tree, int):
        return words[tree]
    return f"( {nested_brackets(tree[0], words)} {nested_brackets(tree[1], words)} )"


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("( ( A man ) sleeps )", ["A", "man", "sleeps"], [0, 1, 1]),
        ("( A ( man sleeps ) )", ["A", "man", "sleeps"], [0, 0, 2]),
        ("( ( A man ) ( is asleep ) )", ["A", "man", "is", "asleep"], [0, 1, 0, 2]),
        ("man", ["man"], [0]),
        ("( man )", ["man"], [0]),
        ("( ( A ) ( man ) )", ["A", "man"], [0, 1]),
        ("( A young man )", ["A", "young", "man"], [0, 0, 2]),
        ("A man", ["A", "man"], [0, 1]),
        ("", [], []),
    ],
)
def test_brackets_are_read_as_reductions(text, words, expected) -> None:
    assert parse_brackets(text) == (words, expected)
    tree = BinaryTrees.parse(text)
    BinaryTrees.check(tree)
    assert tree.tolist() == [[count] for count in expected]


def test_every_tree_of_seven_words_is_the_same_after_brackets_and_back() -> None:
    words, seen = list("abcdefg"), set()
    for tree in every_tree(0, 7):
        text = nested_brackets(tree, words)
        read, counts = parse_brackets(text)
        assert read == words and counts == reductions(tree, 7)
        assert to_brackets(words, column(counts)) == text
        BinaryTrees.check(column(counts))
        seen.add(tuple(counts))
    assert len(seen) == 132  # Catalan's number: no two trees have the same integers


@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 7, 8, 20, 100])
def test_balanced_trees_are_halves_of_halves_and_have_the_middle_as_their_root(tokens: int) -> None:
    tree, heads = BinaryTrees.balanced(tokens), DependencyTrees.balanced(tokens)
    BinaryTrees.check(tree)
    DependencyTrees.check(heads)
    assert tree[:, 0].tolist() == (reductions(halves(0, tokens), tokens) if tokens else [])
    assert heads[:, 0].tolist() == middle_heads(tokens)
    assert not tree.flags.writeable and not heads.flags.writeable


def without_tokens_from(tree, limit: int):
    """The tree without the tokens from `limit` on; a node with one child left is that child."""
    if isinstance(tree, int):
        return tree if tree < limit else None
    left, right = (without_tokens_from(child, limit) for child in tree)
    return left if right is None else right if left is None else (left, right)


def test_a_truncated_tree_is_what_is_left_of_it() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        tokens = int(random.integers(2, 20))
        tree, limit = random_tree(0, tokens, random), int(random.integers(1, tokens + 1))
        cut = BinaryTrees.truncated(column(reductions(tree, tokens)), limit)
        BinaryTrees.check(cut)
        assert cut[:, 0].tolist() == reductions(without_tokens_from(tree, limit), limit)
    assert BinaryTrees.truncated(column([0, 1]), 0).shape == (0, 1)


def test_begin_and_end_tokens_are_joined_around_the_sentence() -> None:
    tree = BinaryTrees.with_ends(column([0, 1, 1]))
    brackets = to_brackets(["<s>", "A", "man", "sleeps", "</s>"], tree)
    assert brackets == "( <s> ( ( ( A man ) sleeps ) </s> ) )"
    empty = BinaryTrees.with_ends(BinaryTrees.balanced(0))
    assert to_brackets(["<s>", "</s>"], empty) == "( <s> </s> )"
    # Of a dependency tree, they depend on the root.
    heads = DependencyTrees.with_ends(DependencyTrees.parse("2:det 3:nsubj 0:root"))
    assert heads[:, 0].tolist() == [3, 2, 3, -1, 3]
    none = DependencyTrees.with_ends(DependencyTrees.balanced(0))
    DependencyTrees.check(none)
    assert none[:, 0].tolist() == [-1, 0]


def test_heads_and_relations_are_read_with_the_names_of_other_schemes() -> None:
    tree = DependencyTrees.parse("2:det 3:nsubj 0:root")
    DependencyTrees.check(tree)
    assert tree.tolist() == [[1, relation_id("det")], [2, relation_id("nsubj")], [-1, 0]]
    assert RELATIONS[0] == "dep" and len(set(RELATIONS)) == len(RELATIONS)
    assert relation_id("nn") == relation_id("compound") == RELATIONS.index("compound")
    assert relation_id("nsubj:pass") == relation_id("nsubjpass")
    assert relation_id("OBJ") == relation_id("dobj")
    assert relation_id("nmod:tmod") == relation_id("nmod")
    assert relation_id("unheard") == relation_id("") == 0


def test_a_truncated_dependency_tree_keeps_the_nearest_head() -> None:
    # 0 and 4 are below 3, which is below 5, which is below 1; 2 is below 4.
    tree = DependencyTrees.parse("4:a 0:root 5:b 6:c 4:d 2:e")
    assert DependencyTrees.truncated(tree, 4)[:, 0].tolist() == [3, -1, 3, 1]
    # The root is cut: the first token of those that lose every head takes its place.
    cut = DependencyTrees.truncated(DependencyTrees.parse("3:a 3:b 0:root"), 2)
    DependencyTrees.check(cut)
    assert cut[:, 0].tolist() == [-1, 0]


def test_a_word_is_joined_with_its_right_dependents_first() -> None:
    # A(2) young(3) man(4) quickly(5)->eats; eats(0) red apples .
    words = ["A", "young", "man", "quickly", "eats", "red", "apples", "."]
    heads = DependencyTrees.parse("3:det 3:amod 5:nsubj 5:advmod 0:root 7:amod 5:dobj 5:punct")
    tree = BinaryTrees.from_dependencies(heads)
    BinaryTrees.check(tree)
    expected = "( ( A ( young man ) ) ( quickly ( ( eats ( red apples ) ) . ) ) )"
    assert to_brackets(words, tree) == expected


def test_crossing_arcs_and_further_roots_become_a_tree_too() -> None:
    assert single_root([1, -1, -1, 2, -1]) == [1, -1, 1, 2, 1]
    assert DependencyTrees.projective([2, 2, -1, 4, 2]) == [2, 2, -1, 4, 2]
    random = np.random.default_rng(3)
    for _ in range(100):
        tokens = int(random.integers(1, 12))
        tree = random_dependencies(tokens, random)
        BinaryTrees.check(BinaryTrees.from_dependencies(tree))
        lifted = DependencyTrees.projective(tree[:, 0].tolist())
        arcs = [(min(t, h), max(t, h)) for t, h in enumerate(lifted) if h >= 0]
        assert not any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_a_packing_without_trees_has_balanced_ones() -> None:
    mask = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    packing = Packing.from_mask(mask)
    for kind in (BinaryTrees, DependencyTrees):
        rows = packing.unpack(tree_rows(packing, kind))
        for sentence, real in enumerate(mask):
            expected = kind.balanced(int(real.sum())).tolist()
            assert rows[sentence, real].tolist() == expected


# --- From constituency parses to dependencies, worked out by hand ---------------------------------

PARSES = tomllib.loads(Path(__file__).with_name("parses.toml").read_text())["parses"]


@pytest.mark.parametrize("case", PARSES)
def test_heads_and_relations_are_those_worked_out_by_hand(case: dict[str, str]) -> None:
    words, tree = constituency_dependencies(case["parse"])
    DependencyTrees.check(tree)
    actual = [
        f"{word}>{words[head] if head >= 0 else ''}:{RELATIONS[relation]}"
        for word, (head, relation) in zip(words, tree.tolist(), strict=True)
    ]
    assert actual == case["expected"].split()


def test_phrases_of_any_label_and_depth_have_one_root() -> None:
    parse = "(X (. .) (CC and) (XX (-LRB- -LRB-) (FW foo) (-RRB- -RRB-)) (NP-TMP (NN day)))"
    words, tree = constituency_dependencies(parse)
    assert words == [".", "and", "-LRB-", "foo", "-RRB-", "day"]
    DependencyTrees.check(tree)


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (parse_brackets, "( A man", "1 brackets are not closed"),
        (parse_brackets, "A man )", "closed that was not opened"),
        (parse_brackets, "( A ( ) )", "nothing in it"),
        (DependencyTrees.parse, "2:det x:nsubj", "'x:nsubj' is no head"),
        (DependencyTrees.parse, "1:det 4:x", "head 4 is beyond the 2 tokens"),
        (check_heads, "-1 -1", "2 roots"),
        (check_heads, "1 0", "0 roots"),
        (check_heads, "-1 2 1", "a cycle"),
        (check_heads, "-1 5", "not all among"),
        *((constituency_dependencies, text, "brackets of the parse do not match") for text in
        ("", "(ROOT", "(ROOT (NN dog)))", "(ROOT (NP ))", "( )")),
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(read: Callable[[str], object], text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(text)
