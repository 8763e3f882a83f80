"""Tables in folders and files: their columns by name, and their bad rows."""

from __future__ import annotations

from typing import Any

import pytest

from genpool import TextClassifier
from genpool.data import Example, TableReader
from genpool.data.columns import COLUMNS_NOTE, read_trained_columns, trained_columns
from genpool.errors import ConfigError, DataError


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding, newline="")
    return path


def read(path, split="all", **options):
    return list(TableReader(path, **options).read(split))


def pairs(examples):
    return [(example.label, example.first) for example in examples]


@pytest.mark.parametrize(
    ("header", "second"),
    [
        ("label\tpremise\thypothesis", "b"),
        ("gold_label\tsentence1\tsentence2", "b"),
        ("Label\tsentence_A\tsentence_B", "b"),
        ("label\ttext\tother", None),
        ("label\tSentence\tother", None),
    ],
)
def test_usual_columns_are_found_by_the_header(tmp_path, header, second):
    path = write(tmp_path / "t.tsv", f"{header}\nyes\ta\tb\n")
    assert read(path) == [Example("yes", "a", second)]
    assert TableReader(path).is_pair is (second is not None)


def test_columns_are_chosen_by_name(tmp_path):
    path = write(tmp_path / "t.csv", "n,topic,q,a,grade,class\n7,law,x,y,2.5,good\n")
    names: dict[str, Any] = {"label": "class", "first": "q", "second": "a", "score": "grade"}
    reader = TableReader(path, **names, genre="topic", id="n")
    assert reader.columns("all") == {**names, "genre": "topic", "id": "n"}
    expected = Example("good", "x", "y", genre="law", id="7", score=2.5)
    assert list(reader.read("all")) == [expected]
    with pytest.raises(DataError, match="no column of text"):
        TableReader(path).columns("all")
    path = write(tmp_path / "s.tsv", "score\tsentence1\tsentence2\n5.000\ta\tb\n")
    assert read(path) == [Example(None, "a", "b", score=5.0)]
    path = write(tmp_path / "t.csv", ",label,text\n17,yes,a\n")  # as pandas writes its index
    assert read(path) == [Example("yes", "a")]
    # A first column alone makes single sentences.
    path = write(tmp_path / "t.tsv", "label\tpremise\thypothesis\nyes\ta\tb\n")
    reader = TableReader(path, first="hypothesis")
    assert list(reader.read("all")) == [Example("yes", "b")]
    assert not reader.is_pair


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("label\tbody", "no column of text.*'label', 'body'; name it: first="),
        ("text\tclass", "no column of labels.*'text', 'class'; name it: label="),
        ("label\ttext\ttext", "column 'text' appears 2 times"),
        ("label,text", "no column of text.*delimiter="),
    ],
)
def test_a_header_that_cannot_be_used_says_what_it_has_and_the_remedy(tmp_path, header, message):
    path = write(tmp_path / "t.tsv", f"{header}\n")
    with pytest.raises(DataError, match=message):
        read(path)


def test_missing_columns_are_told_in_one_message_with_the_candidates(tmp_path):
    path = write(tmp_path / "t.csv", "stars,review\n5,fine\n")
    with pytest.raises(DataError) as caught:
        read(path, first="reviews", label="star", id="number")
    assert str(caught.value).endswith(
        "t.csv, line 1: unknown column 'star'. Did you mean 'stars'? Known: review, stars; unknown "
        "column 'reviews'. Did you mean 'review'? Known: review, stars; unknown column 'number'. "
        "Known: review, stars"
    )
    path = write(tmp_path / "t.csv", "Star Rating,Review Body,Date\n5,fine,today\n")
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert "no column of text was found (premise and hypothesis or" in message
    assert "; this table has: 'Star Rating', 'Review Body', 'Date'; name it: first=" in message
    assert "--first, --second), perhaps first='Review Body'; no column of labels" in message
    assert message.endswith("--label, --score), perhaps label='Star Rating'")


def test_preferred_columns_are_taken_where_the_table_has_them(tmp_path):
    path = write(tmp_path / "t.csv", "text,body,stars\nx,one,5\n")
    preferred = {"first": "body", "label": "stars"}
    assert pairs(read(path, preferred=preferred)) == [("5", "one")]
    assert pairs(read(path, preferred=preferred, first="text")) == [("5", "x")]
    assert pairs(read(path, preferred={"first": "review", "label": "stars"})) == [("5", "x")]
    # A preferred column that has another use now is left to it.
    assert pairs(read(path, preferred={"first": "body"}, label="body")) == [("one", "x")]
    # Preferred sentences of a pair are taken both or not at all.
    path = write(tmp_path / "t.csv", "a,b,text,label\none,two,three,yes\n")
    reader = TableReader(path, preferred={"first": "a", "second": "b"})
    assert list(reader.read("all")) == [Example("yes", "one", "two")]
    assert reader.is_pair
    reader = TableReader(path, preferred={"first": "a", "second": "c"})
    assert list(reader.read("all")) == [Example("yes", "three")]
    assert not reader.is_pair
    with pytest.raises(ConfigError, match=r"unknown use of a column 'text'.*first"):
        TableReader(path, preferred={"text": "body"})
    with pytest.raises(ConfigError, match="second='b' needs first="):
        TableReader(path, second="b")


def test_a_table_without_labels_is_read_when_none_are_needed(tmp_path):
    path = write(tmp_path / "t.tsv", "text\none\n")
    assert read(path, labelled=False) == [Example(None, "one")]
    path = write(tmp_path / "u.tsv", "label\ttext\n\tone\nyes\ttwo\n")
    assert pairs(read(path, labelled=False)) == [(None, "one"), ("yes", "two")]
    write(tmp_path / "train.tsv", "label\ttext\nyes\tone\n")
    write(tmp_path / "test.tsv", "id\tsentence\n5\ttwo\n")
    reader = TableReader(tmp_path, labelled=False)  # each split has its own columns
    assert list(reader.read("train")) == [Example("yes", "one")]
    assert list(reader.read("test")) == [Example(None, "two", id="5")]


@pytest.mark.parametrize(
    ("row", "message", "reason"),
    [
        ("yes\tone\t1\t2", "has 4 fields; expected 3", "wrong number of fields"),
        ("yes", "has 1 fields; expected 3", "wrong number of fields"),
        ("yes\t \t1", "column 'text' is empty; expected text", "empty side"),
        ("\tone\t1", "column 'label' is empty; expected a label", "no label"),
        ("yse\tone\t1", "unknown label 'yse'. Did you mean 'yes'? Known: no, yes", "unknown label"),
        ("yes\tone\thigh", "column 'score' holds 'high'; expected a finite number", "bad score"),
        ("yes\tone\tnan", "column 'score' holds 'nan'; expected a finite number", "bad score"),
    ],
)
def test_a_bad_row_is_located_or_counted(tmp_path, row, message, reason):
    path = write(tmp_path / "t.tsv", f"label\ttext\tscore\nyes\tgood\t1\n{row}\nno\tfine\t2\n")
    with pytest.raises(DataError) as caught:
        read(path, labels=["yes", "no"])
    assert message in str(caught.value)
    assert 'bad_rows="skip"' in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, 3)
    reader = TableReader(path, labels=["yes", "no"], bad_rows="skip")
    assert pairs(reader.read("all")) == [("yes", "good"), ("no", "fine")]
    assert reader.skipped == {reason: 1}


def test_labels_keep_the_order_in_which_they_are_given(tmp_path):
    path = write(tmp_path / "t.tsv", "label\ttext\nb\tone\n")
    assert read(path, tokenized=True)[0].tokenized
    assert TableReader(path, labels=["c", "b", "a"]).labels == ("c", "b", "a")
    assert TableReader(path).labels is None


def test_a_folder_has_a_split_for_each_table(tmp_path):
    for name in ("test.tsv", "all.csv", "Train.jsonl", "train.tsv", "validation.tsv", "notes.md"):
        write(tmp_path / name, "label\ttext\n")
    write(tmp_path / ".hidden.tsv", "")
    assert TableReader(tmp_path).splits() == ["train", "dev", "test", "Train", "all"]


@pytest.mark.parametrize(
    ("names", "path", "message"),
    [
        (["dev.tsv", "valid.csv"], "", r"dev\.tsv and valid\.csv are both 'dev'"),
        (["notes.md"], "", r"looked for.*train\.tsv.*it holds: notes\.md"),
        (["t.docx"], "t.docx", r"expected \.tsv, \.csv"),
    ],
)
def test_a_folder_or_file_that_holds_no_table_is_refused(tmp_path, names, path, message):
    for name in names:
        write(tmp_path / name, "")
    with pytest.raises(DataError, match=message):
        TableReader(tmp_path / path)


def test_splits_can_be_given_as_files_by_name(tmp_path):
    train = write(tmp_path / "a.csv", "label,text\nyes,one\n")
    dev = write(tmp_path / "b.jsonl", '{"label": "no", "text": "two"}\n')
    reader = TableReader({"dev": dev, "train": str(train)})
    assert reader.splits() == ["train", "dev"]
    assert pairs(reader.read("dev")) == [("no", "two")]


COLUMNS = {"label": "stars", "first": "body"}


def test_a_saved_model_keeps_the_columns_in_its_notes(text_classifier, tmp_path):
    text_classifier.notes = {COLUMNS_NOTE: COLUMNS, "seed": 1}
    text_classifier.save_pretrained(tmp_path / "model")
    assert read_trained_columns(tmp_path / "model") == COLUMNS
    assert trained_columns(TextClassifier.from_pretrained(tmp_path / "model").notes) == COLUMNS
    card = (tmp_path / "model" / "README.md").read_text()
    assert "| columns | label = stars, first = body |" in card


@pytest.mark.parametrize("columns", [None, "stars", {"label": 5}, {"second": "b"}, {"words": "b"}])
def test_notes_without_columns_that_can_be_used_have_none(columns):
    assert trained_columns({COLUMNS_NOTE: columns}) == trained_columns({}) == {}


def test_a_folder_that_cannot_be_read_has_none(tmp_path):
    assert read_trained_columns(tmp_path) == read_trained_columns(None) == {}
    for config in ("{", "[]", '{"notes": 3}', '{"notes": {"columns": 3}}'):
        (tmp_path / "config.json").write_text(config)
        assert read_trained_columns(tmp_path) == {}
