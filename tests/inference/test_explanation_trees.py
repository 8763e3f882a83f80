"""The tree of a sentence in its explanation: the one that an encoder chose, or that it read."""

from __future__ import annotations

import html

import pytest
import torch

from genpool import PairClassifier, SentenceEncoder
from genpool.cli.explain import explain_sentences
from genpool.config import TextSettings
from genpool.encoder import GumbelTreeEncoder
from genpool.tensors.dropout import dropout_disabled
from genpool.trees import parse_brackets
from tests.encoder.tree_cases import gumbel_tree
from tests.helpers.small_models import LABELS, lively
from tests.helpers.tree_shapes import reductions

SENTENCE = "The red dog, not 2 men, runs."


def chosen_by_the_reference(model: SentenceEncoder, words: list[str]) -> list[int]:
    """The reductions of the tree that a loop over NumPy vectors chooses."""
    assert isinstance(model.encoder, GumbelTreeEncoder)
    batch = model.text.batch([words])
    with torch.no_grad(), dropout_disabled():
        vectors = model.embedding(batch)[0].double().numpy()
    return reductions(gumbel_tree(model.encoder, vectors)[1], len(words))


@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_tree_is_printed_with_brackets(make_encoder, seed: int) -> None:
    model = lively(make_encoder("last", "gumbel-tree"), seed).train()  # without noise all the same
    explanation = model.explain(SENTENCE)
    words = [token.text for token in explanation.tokens]
    assert explanation.tree is not None
    assert parse_brackets(explanation.tree) == (words, chosen_by_the_reference(model, words))
    assert f"tree {explanation.tree}" in str(explanation).splitlines()
    assert html.escape(explanation.tree) in explanation.to_html()


def test_the_trees_of_a_pair_are_printed_below_their_tables(make_encoder) -> None:
    encoder = lively(make_encoder("last", "gumbel-tree"))
    model = PairClassifier(encoder, LABELS)
    pair = explain_sentences(model, [SENTENCE, "A <b> man rests."])
    lines = [line for line in str(pair).splitlines() if line.startswith("tree ")]
    assert lines == [f"tree {encoder.explain(side.sentence).tree}" for side in pair.sentences]
    assert all(f"<p>{html.escape(line)}</p>" in pair.to_html() for line in lines)
    assert "<b>" not in pair.to_html()


def test_a_tree_that_was_read_is_printed_too(make_encoder) -> None:
    model = make_encoder("last", "spinn")
    assert model.explain("a red dog runs").tree == "( ( a red ) ( dog runs ) )"


def test_begin_and_end_tokens_have_their_places_in_the_tree(make_encoder) -> None:
    model = make_encoder("last", "spinn", text=TextSettings(sentence_ends=True))
    assert model.explain("a dog").tree == "( <s> ( ( a dog ) </s> ) )"


@pytest.mark.parametrize(("sentence", "tree"), [("", ""), ("dog", "dog")])
def test_fewer_than_two_tokens_have_no_bracket(make_encoder, sentence: str, tree: str) -> None:
    for encoder in ("spinn", "gumbel-tree"):
        assert make_encoder("last", encoder).explain(sentence).tree == tree


def test_encoders_without_a_binary_tree_print_none(make_encoder) -> None:
    for encoder in ("bilstm", "tree-cnn"):
        explanation = make_encoder("last", encoder).explain(SENTENCE)
        assert explanation.tree is None and "tree" not in str(explanation)
