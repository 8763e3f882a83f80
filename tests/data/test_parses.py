"""Readers whose examples carry the parses of the data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from genpool.data import Example, MultiNliReader, SnliReader, TableReader
from genpool.errors import DataError

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


def trees_of(example: Example, kind: str) -> list[list[list[int]] | None]:
    trees = (example.tree(sentence, kind) for sentence in range(2))
    return [None if tree is None else tree.tolist() for tree in trees]


def test_examples_carry_no_trees_unless_they_are_requested(tmp_path: Path) -> None:
    (example,) = SnliReader(nli_folder(tmp_path, ROW)).read("train")
    assert example.trees == () and example.tree(0, "binary") is None


@pytest.mark.parametrize("tokens", ["parse", "raw"])
def test_binary_trees_are_the_official_binary_parses(tmp_path: Path, tokens: str) -> None:
    reader = SnliReader(nli_folder(tmp_path, ROW), tokens=tokens)
    reader.request_trees("binary")
    (example,) = reader.read("train")
    assert trees_of(example, "binary") == [[[0], [1], [0], [2]], [[0], [1]]]
    assert example.tree(0, "dependency") is None


def test_dependency_trees_are_made_from_the_official_constituency_parses(tmp_path: Path) -> None:
    reader = MultiNliReader(nli_folder(tmp_path, ROW, name="multinli_1.0_train"))
    reader.request_trees("dependency")
    (example,) = reader.read("train")
    first, second = trees_of(example, "dependency")
    assert first is not None and [head for head, _ in first] == [1, 2, -1, 2]
    assert second is not None and [head for head, _ in second] == [1, -1]


def test_a_file_without_the_parses_has_examples_without_trees(tmp_path: Path) -> None:
    row = {key: value for key, value in ROW.items() if not key.endswith("_parse")}
    reader = SnliReader(nli_folder(tmp_path, row), tokens="raw")
    reader.request_trees("dependency")
    (example,) = reader.read("train")
    assert trees_of(example, "dependency") == [None, None]


def test_a_damaged_parse_is_a_bad_row_with_its_line(tmp_path: Path) -> None:
    damaged = {**ROW, "sentence2_binary_parse": "( He rests"}
    reader = SnliReader(nli_folder(tmp_path, ROW, damaged))
    reader.request_trees("binary")
    with pytest.raises(DataError, match=r"line 2: column 'sentence2_binary_parse' holds no binary"):
        list(reader.read("train"))
    reader = SnliReader(nli_folder(tmp_path, ROW, damaged), bad_rows="skip")
    reader.request_trees("binary")
    assert len(list(reader.read("train"))) == 1 and reader.skipped == {"bad parse": 1}


TABLE = """label\tpremise\thypothesis\tpremise_binary_tree\tpremise_dependency_tree\tmine
yes\tA man sleeps\tHe rests\t( ( A man ) sleeps )\t2:det 3:nsubj 0:root\t( He rests )
no\tA man runs\tHe rests\t\t\t
"""


def table(tmp_path: Path, **options) -> TableReader:
    (tmp_path / "pairs.tsv").write_text(TABLE)
    return TableReader(tmp_path / "pairs.tsv", **options)


def test_a_table_has_trees_of_both_kinds_in_columns_named_like_the_sentences(
    tmp_path: Path,
) -> None:
    reader = table(tmp_path)
    reader.request_trees("binary")
    first, second = reader.read("all")
    assert trees_of(first, "binary") == [[[0], [1], [1]], None]
    assert trees_of(second, "binary") == [None, None]  # the cell is empty
    reader = table(tmp_path)
    reader.request_trees("dependency")
    first, _ = reader.read("all")
    tree = trees_of(first, "dependency")[0]
    assert tree is not None and [head for head, _ in tree] == [1, 2, -1]


def test_the_columns_of_trees_can_be_named(tmp_path: Path) -> None:
    reader = table(tmp_path, second_tree="mine")
    reader.request_trees("binary")
    first, _ = reader.read("all")
    assert trees_of(first, "binary") == [[[0], [1], [1]], [[0], [1]]]
    reader = table(tmp_path, second_tree="yours")
    reader.request_trees("binary")
    with pytest.raises(DataError, match="unknown column 'yours'"):
        list(reader.read("all"))


def test_trees_of_another_kind_in_a_column_are_a_bad_row(tmp_path: Path) -> None:
    reader = table(tmp_path, first_tree="premise_binary_tree")
    reader.request_trees("dependency")
    with pytest.raises(
        DataError, match=r"line 2: column 'premise_binary_tree' holds no dependency"
    ):
        list(reader.read("all"))


def test_a_table_is_read_as_before_where_no_trees_are_requested(tmp_path: Path) -> None:
    first, _ = table(tmp_path).read("all")
    assert first == Example("yes", "A man sleeps", "He rests") and first.trees == ()
