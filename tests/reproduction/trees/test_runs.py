"""Encoders with trees in training, in commands and in explanations."""

from __future__ import annotations

import html
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.cli.explain import explain_sentences
from genpool.data import Example
from genpool.jobs.tables import predict_table
from genpool.reproduction.encoders import GumbelTreeEncoder
from genpool.reproduction.trees import BinaryTrees, parse_brackets
from genpool.tensors.modules import dropout_disabled
from genpool.training import RunSettings, read_settings, train
from genpool.training.dataset import WordIds, read_split
from genpool.training.preparation import prepare
from tests.helpers.commands import Command
from tests.helpers.small_models import LABELS, lively
from tests.helpers.tree_shapes import reductions
from tests.reproduction.encoders.cases import gumbel_tree

pytestmark = pytest.mark.reproduce

SMALL = """
embedding.word_dim=6 embedding.frozen=false embedding.characters=false classifier.hidden_dim=6
pooling.name=last training.epochs=2 training.batch_size=4 training.learning_rate=0.01
"""
SPINN = ("encoder.name=spinn", "encoder.hidden_dim=5", "encoder.tracking_dim=2")
#: a sentence with its tree, one with a tree of another length, and one without
ROWS = [
    ("good", "the best film of all", "( the ( best ( film ( of all ) ) ) )"),
    ("bad", "a waste of time", "( a waste )"),
    ("bad", "the worst film", ""),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, copies in (("train", 6), ("dev", 2)):
        lines = ["label\ttext\ttext_binary_tree"]
        lines += ["\t".join(row) for row in ROWS for _ in range(copies)]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def settings(*overrides: str, encoder: tuple[str, ...] = SPINN) -> RunSettings:
    return read_settings('reader.name = "table"', [*SMALL.split(), *encoder, *overrides])


def test_batches_have_the_trees_of_the_data(data: Path) -> None:
    prepared = prepare(settings(), data)
    batch = prepared.train.batch([0, 6, 12], prepared.table)
    assert batch.annotations is not None
    expected = [[0, 0, 0, 0, 4], [0, 1, 0, 2, 0], [0, 1, 1, 0, 0]]  # the tree, and two balanced
    assert batch.annotations[:, :, 0].tolist() == expected
    assert prepare(settings(), data).fingerprint() == prepared.fingerprint()
    counts = (
        "24 sentences: 8 from the data, 16 balanced; 8 parses of the data do not fit the tokens"
    )
    assert prepared.notes["syntax trees"] == counts
    for option, row, tree in (
        ("text.sentence_ends=true", 12, [0, 0, 1, 1, 2]),
        ("text.max_length=3", 0, [0, 0, 2]),
    ):
        prepared = prepare(settings(option), data)
        batch = prepared.train.batch([row], prepared.table)
        assert batch.annotations is not None and batch.annotations[0, :, 0].tolist() == tree


def test_a_parser_makes_what_is_missing(data: Path, parser) -> None:
    prepared = prepare(settings("encoder.parser=spacy"), data)
    assert parser.parsed == 2 * 2  # in each split the sentences without a parse, each once
    assert "16 parsed" in prepared.notes["syntax trees"]
    assert prepared.fingerprint() != prepare(settings(), data).fingerprint()


def test_evaluation_uses_the_trees_of_the_data_too(data: Path, tmp_path: Path) -> None:
    train(settings(), data, tmp_path / "run", show_progress=False)
    model = TextClassifier.from_pretrained(tmp_path / "run" / "best")
    table = predict_table(model, data / "dev.tsv")
    assert model.text.annotator is not None
    counts = model.text.annotator.counts
    assert (counts["from the data"], counts["balanced"]) == (2, 4)
    # The same probabilities as when the run scored dev, which had the trees.
    lines = (tmp_path / "run" / "predictions" / "dev.tsv").read_text().splitlines()
    assert [line.split("\t")[2] for line in lines[1:]] == list(table.predictions.predicted)
    plain = model.predict_proba([text for _, text, _ in ROWS])
    assert np.abs(plain[0] - table.predictions.probabilities[0]).max() > 1e-6  # another tree
    assert np.abs(plain[2] - table.predictions.probabilities[4]).max() < 1e-6  # the same tree


def test_raw_sentences_are_parsed_as_in_training(data: Path, tmp_path: Path, parser) -> None:
    train(settings("encoder.parser=spacy"), data, tmp_path / "run", show_progress=False)
    saved = json.loads((tmp_path / "run" / "best" / "config.json").read_text())
    assert saved["settings"]["encoder"]["parser"] == "spacy"
    model = TextClassifier.from_pretrained(tmp_path / "run" / "best")
    sentence = "a waste of time"
    vector = model.encoder.encode(sentence)
    words = model.text.words(sentence)
    table = model.text.table()
    tree = BinaryTrees.from_dependencies(parser()([words])[0])
    with torch.no_grad():
        expected = model.encoder(table.batch([table.row(words, False)], [tree])).vector[0]
    np.testing.assert_allclose(vector, expected.numpy(), rtol=0, atol=1e-6)


def test_dependency_trees_are_read_by_the_tree_cnn(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text(
            "label\ttext\ttext_dependency_tree\n"
            "good\tbest film\t2:amod 0:root\n"
            "bad\tworst film ever\t2:amod 0:root 2:advmod\n"
        )
    tree_cnn = ("encoder.name=tree-cnn", "encoder.maps=5")
    prepared = prepare(settings("pooling.name=max", encoder=tree_cnn), folder)
    batch = prepared.train.batch([0, 1], prepared.table)
    assert batch.annotations is not None
    assert batch.annotations[:, :, 0].tolist() == [[1, -1, 0], [1, -1, 1]]


def test_chosen_rows_keep_their_own_parses(make_encoder) -> None:
    trees = [BinaryTrees.parse(text) for text in ("( a b )", "( a ( b c ) )")]
    examples = [
        Example("x", "a b", annotations=(trees[0],)),
        Example("x", "a b c", annotations=(trees[1],)),
    ]
    word_ids, text = WordIds(), make_encoder("last", "spinn").text
    split = read_split(examples, word_ids, lambda text, _: text.split())
    taken = split.take([1]).with_table(text.table(), word_ids, text)
    assert taken.annotations is not None and taken.annotations[:, 0].tolist() == [0, 0, 2]
    without = make_encoder("last", "lstm").text
    assert split.with_table(without.table(), word_ids, without).annotations is None


# --- Commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])  # trees of worker processes are counted too
def test_encode_says_how_many_trees_are_balanced(
    genpool: Command, make_encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.chdir(tmp_path)
    sentences = ["a red dog runs", "the man sleeps.", ""]
    Path("sentences.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    model = lively(make_encoder("last", "spinn"))
    model.save_pretrained("spinn")
    said = genpool("encode", "spinn", "sentences.txt", "-o", "v.npy", "--workers", workers)
    assert said.code == 0, said.err
    assert "syntax trees: 3 sentences: 3 balanced" in said.err.splitlines()
    np.testing.assert_allclose(np.load("v.npy"), model.encode(sentences), rtol=0, atol=1e-6)


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


def test_trees_that_were_read_and_those_of_fewer_than_two_tokens(make_encoder) -> None:
    read = make_encoder("last", "spinn")
    assert read.explain("a red dog runs").tree == "( ( a red ) ( dog runs ) )"
    for model in (read, make_encoder("last", "gumbel-tree")):
        assert [model.explain(sentence).tree for sentence in ("", "dog")] == ["", "dog"]


def test_encoders_without_a_binary_tree_print_none(make_encoder) -> None:
    for encoder in ("bilstm", "tree-cnn"):
        explanation = make_encoder("last", encoder).explain(SENTENCE)
        assert explanation.tree is None and "tree" not in str(explanation)
