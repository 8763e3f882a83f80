"""Runs of encoders that read syntax trees: where the trees come from, and that they are used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import TextClassifier
from genpool.errors import DataError
from genpool.jobs.tables import predict_table
from genpool.text import tree_source
from genpool.training import RunSettings, read_settings, train
from genpool.training.preparation import prepare
from genpool.training.run_folder import RunFolder
from genpool.trees import TREE_KINDS

RECIPE = """
[reader]
name = "table"

[embedding]
word_dim = 6
frozen = false
characters = false

[encoder]
name = "spinn"
hidden_dim = 5
tracking_dim = 2

[pooling]
name = "last"

[classifier]
hidden_dim = 6

[training]
epochs = 2
batch_size = 4
learning_rate = 0.01
"""
#: a sentence with its tree, one with a tree of another length, and one without
ROWS = [
    ("good", "the best film of all", "( the ( best ( film ( of all ) ) ) )"),
    ("bad", "a waste of time", "( a waste )"),
    ("bad", "the worst film", ""),
]


class LeftParser:
    """Every word depends on the one before it; counts the sentences that it parses."""

    version = "left 1"
    parsed = 0

    def dependencies(self, sentences):
        type(self).parsed += len(sentences)
        return [
            np.array([[place - 1, 1] for place in range(len(words))], np.int32).reshape(-1, 2)
            for words in sentences
        ]


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> type[LeftParser]:
    monkeypatch.setitem(tree_source.PARSERS, "spacy", LeftParser)
    monkeypatch.setattr(LeftParser, "parsed", 0)
    return LeftParser


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, copies in (("train", 6), ("dev", 2)):
        lines = ["label\ttext\ttext_binary_tree"]
        lines += ["\t".join(row) for row in ROWS for _ in range(copies)]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def settings(*overrides: str) -> RunSettings:
    return read_settings(RECIPE, list(overrides))


def test_the_report_says_where_the_trees_came_from(data: Path, tmp_path: Path) -> None:
    train(settings(), data, tmp_path / "run", show_progress=False)
    expected = "24 sentences: 8 from the data, 16 balanced; 8 parses of the data do not fit"
    assert f"| trees | {expected} the tokens |" in (tmp_path / "run" / "report.md").read_text()
    assert not RunFolder(tmp_path / "run").trees.exists()  # no parser has made any


def test_batches_have_the_trees_of_the_data(data: Path) -> None:
    prepared = prepare(settings(), data)
    batch = prepared.train.batch([0, 6, 12], prepared.table)
    assert batch.trees is not None
    expected = [[0, 0, 0, 0, 4], [0, 1, 0, 2, 0], [0, 1, 1, 0, 0]]  # the tree, and two balanced
    assert batch.trees[:, :, 0].tolist() == expected


def test_trees_have_begin_and_end_tokens_where_the_sentences_have(data: Path) -> None:
    prepared = prepare(settings("text.sentence_ends=true"), data)
    batch = prepared.train.batch([12], prepared.table)
    assert batch.trees is not None and batch.trees[0, :, 0].tolist() == [0, 0, 1, 1, 2]


def test_trees_are_cut_with_their_sentences(data: Path) -> None:
    prepared = prepare(settings("text.max_length=3"), data)
    batch = prepared.train.batch([0], prepared.table)
    assert batch.trees is not None and batch.trees[0, :, 0].tolist() == [0, 0, 2]


def test_a_parser_makes_what_is_missing_and_keeps_it_beside_the_run(
    data: Path, tmp_path: Path, parser
) -> None:
    folder = tmp_path / "run"
    options = settings("text.parser=spacy", "training.epochs=1")
    train(options, data, folder, show_progress=False)
    assert parser.parsed == 2  # the sentences without a parse, each of them once
    assert "16 parsed" in (folder / "report.md").read_text()
    # A run that goes on reads them from the file.
    (folder / "results.json").unlink()
    train(options, data, folder, resume=True, show_progress=False)
    assert parser.parsed == 2


def test_evaluation_uses_the_trees_of_the_data_too(data: Path, tmp_path: Path) -> None:
    train(settings(), data, tmp_path / "run", show_progress=False)
    model = TextClassifier.from_pretrained(tmp_path / "run" / "best")
    table = predict_table(model, data / "dev.tsv")
    assert model.text.tree_source is not None
    report = model.text.tree_source.report
    assert (report.from_data, report.balanced) == (2, 4)
    # The same probabilities as when the run scored dev, which had the trees.
    lines = (tmp_path / "run" / "predictions" / "dev.tsv").read_text().splitlines()
    assert [line.split("\t")[2] for line in lines[1:]] == list(table.predictions.predicted)
    plain = model.predict_proba([text for _, text, _ in ROWS])
    assert np.abs(plain[0] - table.predictions.probabilities[0]).max() > 1e-6  # another tree
    assert np.abs(plain[2] - table.predictions.probabilities[4]).max() < 1e-6  # the same tree


def test_raw_sentences_are_parsed_as_in_training(data: Path, tmp_path: Path, parser) -> None:
    train(settings("text.parser=spacy"), data, tmp_path / "run", show_progress=False)
    saved = json.loads((tmp_path / "run" / "best" / "config.json").read_text())
    assert saved["settings"]["text"]["parser"] == "spacy"
    model = TextClassifier.from_pretrained(tmp_path / "run" / "best")
    sentence = "a waste of time"
    vector = model.encoder.encode(sentence)
    words = model.text.words(sentence)
    table = model.text.table()
    tree = TREE_KINDS["binary"].from_dependencies(LeftParser().dependencies([words])[0])
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
    recipe = RECIPE.replace('name = "spinn"\nhidden_dim = 5\ntracking_dim = 2', 'name = "tree-cnn"')
    options = read_settings(recipe, ["encoder.maps=5", "pooling.name=max"])
    prepared = prepare(options, folder)
    batch = prepared.train.batch([0, 1], prepared.table)
    assert batch.trees is not None
    assert batch.trees[:, :, 0].tolist() == [[1, -1, 0], [1, -1, 1]]
    train(options, folder, tmp_path / "run", show_progress=False)


def test_a_damaged_tree_stops_the_run_before_it_starts(data: Path, tmp_path: Path) -> None:
    (data / "dev.tsv").write_text("label\ttext\ttext_binary_tree\ngood\tbest film\t( best film\n")
    with pytest.raises(DataError, match=r"dev\.tsv, line 2: column 'text_binary_tree'"):
        train(settings(), data, tmp_path / "run", show_progress=False)
    assert not (tmp_path / "run").exists()
