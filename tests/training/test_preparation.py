"""From data and settings to a model and its splits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier, TextClassifier
from genpool.errors import ConfigError, DataError
from genpool.reproduction.rules import RulesReader
from genpool.training.preparation import Prepared, data_notes, prepare
from genpool.training.settings import read_settings
from tests.helpers.training_runs import RECIPE, reviews, settings, write_table


def folder_of(place: Path, **tables: list[tuple[str, str]]) -> Path:
    place.mkdir(exist_ok=True)
    for name, rows in tables.items():
        write_table(place / f"{name}.tsv", rows)
    return place


def refused(data: Path | None, *overrides: str) -> str:
    with pytest.raises((DataError, ConfigError)) as error:
        prepare(settings(*overrides), data)
    return str(error.value)


def labels_of(prepared: Prepared, split: str = "train") -> Counter[str]:
    return Counter(prepared.model.labels[number] for number in getattr(prepared, split).labels)


# --- Which rows ----------------------------------------------------------------------------------


def test_train_dev_and_all_other_tables_are_found(tables):
    prepared = prepare(settings(), tables)
    assert len(prepared.train) == 48
    assert len(prepared.dev) == 20
    assert {name: len(split) for name, split in prepared.tests.items()} == {"test": 16}
    assert isinstance(prepared.model, TextClassifier)
    assert prepared.model.labels == ("bad", "good")
    assert labels_of(prepared) == Counter(good=24, bad=24)


def test_pairs_make_a_pair_classifier():
    rules = read_settings(RECIPE, ["reader.name=rules", "reader.sizes=[12, 6, 3]"])
    prepared = prepare(rules, None)
    assert isinstance(prepared.model, PairClassifier)
    assert prepared.train.sides == 2
    first = next(RulesReader(sizes=(12, 6, 3)).read("train"))
    assert prepared.train.lengths[0].tolist() == [
        len(prepared.model.text.words(first.first)),
        len(prepared.model.text.words(str(first.second))),
    ]


def test_a_dev_share_is_taken_out_of_train_and_keeps_the_labels_in_proportion(tmp_path):
    rows = [("good", f"word{number}") for number in range(60)]
    rows += [("bad", f"other{number}") for number in range(20)]
    data = write_table(tmp_path / "all.tsv", rows)
    prepared = prepare(settings("data.dev_share=0.25"), data)
    assert labels_of(prepared, "dev") == Counter(good=15, bad=5)
    assert labels_of(prepared) == Counter(good=45, bad=15)
    assert not set(prepared.train.ids) & set(prepared.dev.ids)
    assert "20 rows held out" in prepared.notes["dev set"]
    again = prepare(settings("data.dev_share=0.25"), data)
    assert again.dev.ids == prepared.dev.ids
    other = prepare(settings("data.dev_share=0.25", "training.seed=1"), data)
    assert other.dev.ids != prepared.dev.ids
    several = folder_of(tmp_path / "several", train=rows, dev=rows[:9], test=rows[:9])
    chosen = prepare(settings("data.dev_share=0.25", "data.test=['test']"), several)
    assert len(chosen.dev) == 20 and chosen.tests.keys() == {"test"}


def test_training_rows_are_drawn_by_seed(tables):
    chosen = prepare(settings("data.train_rows=10"), tables)
    assert len(chosen.train) == 10
    assert len(chosen.dev) == 20
    assert chosen.notes["training rows"] == "10 of 48, chosen by seed"
    assert prepare(settings("data.train_rows=10"), tables).train.ids == chosen.train.ids
    other = prepare(settings("data.train_rows=10", "training.seed=5"), tables)
    assert other.train.ids != chosen.train.ids
    assert "training rows" not in prepare(settings("data.train_rows=99"), tables).notes


def test_begin_and_end_can_count_towards_the_length_that_is_dropped(tmp_path):
    rows = [("good", "a b c"), ("bad", "a b c d"), ("good", "a"), ("bad", "a b c d e")]
    data = folder_of(tmp_path / "data", train=rows, dev=rows)
    ends = ("text.sentence_ends=true", "data.drop_length=6")
    prepared = prepare(settings(*ends, "data.drop_counts_ends=true"), data)
    assert prepared.train.lengths.ravel().tolist() == [5, 3]  # with the two ends
    assert prepared.dev.lengths.ravel().tolist() == [5, 6, 3, 7]
    assert prepared.notes["long training rows"] == (
        "2 left out (6 tokens or more, begin and end counted)"
    )
    prepared = prepare(settings(*ends), data)
    assert prepared.train.lengths.ravel().tolist() == [5, 6, 3, 7]


def test_bad_rows_that_are_skipped_are_counted(tmp_path):
    rows = [("good", "a"), ("bad", ""), ("bad", "b"), ("", "c"), ("good", " ")]
    data = folder_of(tmp_path / "data", train=rows, dev=[("good", "a"), ("bad", "b")])
    prepared = prepare(settings("reader.bad_rows=skip"), data)
    assert len(prepared.train) == 2
    assert prepared.notes["rows left out"] == "2 empty side, 1 no label"


@pytest.mark.parametrize("tokenized", [True, False])
def test_a_maximum_length_cuts_tokenised_text_too_and_is_counted(tmp_path, tokenized):
    rows = [("good", "a b c"), ("bad", "a b c d e")]
    data = folder_of(tmp_path / "data", train=rows, dev=rows)
    limited = settings("text.max_length=3", f"reader.tokenized={str(tokenized).lower()}")
    prepared = prepare(limited, data)
    assert prepared.train.lengths.ravel().tolist() == [3, 3]
    assert prepared.notes["maximum length"] == "2 sentences were truncated by 4 tokens in total"


# --- Words and vectors ---------------------------------------------------------------------------


def test_the_vocabulary_is_that_of_the_training_rows_alone(tmp_path):
    data = folder_of(
        tmp_path / "data",
        train=[("good", "joy joy film"), ("bad", "waste")],
        dev=[("good", "delight"), ("bad", "waste")],
    )
    assert prepare(settings(), data).model.text.vocabulary.words[4:] == ("joy", "film", "waste")
    rare = prepare(settings("vocabulary.minimum_count=2"), data)
    assert rare.model.text.vocabulary.words[4:] == ("joy",)


def vector_file(path: Path, width: int = 12, **vectors: float) -> Path:
    lines = [f"{word} {' '.join([str(value)] * width)}" for word, value in vectors.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_words_of_the_vector_file_get_their_vectors_and_the_rest_small_ones(tables, tmp_path):
    vectors = vector_file(tmp_path / "vectors.txt", film=2.0, plot=3.0, unseen=4.0)
    prepared = prepare(settings(f"vectors.path={vectors}"), tables)
    vocabulary = prepared.model.text.vocabulary
    table = prepared.model.encoder.embedding.words.detach().numpy()
    assert "unseen" not in vocabulary.ids
    assert (table[vocabulary.id("film")] == 2).all()
    assert (table[vocabulary.id("plot")] == 3).all()
    rest = np.delete(table, [0, vocabulary.id("film"), vocabulary.id("plot")], axis=0)
    assert 0 < np.abs(rest).max() < 0.06
    assert not table[0].any()
    assert prepared.notes["coverage"].startswith("vectors for 2 of 16 words")
    known = prepare(settings(f"vectors.path={vectors}", "vocabulary.vector_words=true"), tables)
    unseen = known.model.encoder.embedding.words[known.model.text.vocabulary.id("unseen")]
    assert (unseen == 4).all()


@pytest.mark.parametrize("fallback", [True, False])
def test_vectors_can_be_looked_up_exactly_as_written(tmp_path, fallback):
    rows = [("good", "Film plot"), ("bad", "FILM")]
    data = folder_of(tmp_path / "data", train=rows, dev=rows)
    vectors = vector_file(tmp_path / "vectors.txt", film=2.0, plot=3.0)
    rule = f"vectors.lower_case_fallback={str(fallback).lower()}"
    model = prepare(settings(f"vectors.path={vectors}", rule), data).model
    ids = [model.text.vocabulary.id(word) for word in ("Film", "FILM", "plot")]
    found = model.encoder.embedding.words.detach()[ids].amax(dim=1).tolist()
    assert found[2] == 3
    assert found[:2] == [2, 2] if fallback else max(found[:2]) < 0.06


# --- Refused, with the remedy --------------------------------------------------------------------


def test_a_frozen_word_table_without_vectors_is_refused_with_the_two_ways_out(tables, tmp_path):
    assert "needs the place of the data: --data" in refused(None)
    frozen = "embedding.frozen=true"
    for problem in (refused(tables, frozen), refused(tmp_path / "none", frozen)):  # nothing is read
        assert "the word table would stay random" in problem
        assert "--set vectors.path=" in problem
        assert "--set embedding.frozen=false" in problem
    vectors = vector_file(tmp_path / "vectors.txt", film=2.0)
    prepare(settings(frozen, f"vectors.path={vectors}"), tables)
    with pytest.raises(ConfigError, match="would stay random"):
        prepare(settings(frozen), RulesReader())


def test_splits_with_another_number_of_sentences_are_refused(tmp_path):
    data = folder_of(tmp_path / "data", train=reviews(8, 0))
    write_table(data / "dev.tsv", [("good", "a", "b")] * 2, ("label", "premise", "hypothesis"))
    expected = r"'dev' has 2 sentences per row, the training set 1.*--first NAME --second NAME"
    assert re.search(expected, refused(data))


def test_a_vector_file_of_another_width_is_refused_with_the_remedy(tables, tmp_path):
    vectors = vector_file(tmp_path / "vectors.txt", width=4, film=2.0)
    problem = refused(tables, f"vectors.path={vectors}")
    assert "the vectors have 4 dimensions, but embedding.word_dim is 12" in problem
    assert "--set embedding.word_dim=4" in problem
    prepare(settings(f"vectors.path={vectors}", "embedding.word_dim=4"), tables)


def test_scores_are_read_from_their_column_and_may_be_missing_in_test_alone(tmp_path):
    rows = [("1", "a b"), ("3", "c"), ("2.4", "d")]
    data = folder_of(tmp_path / "data")
    for name, table in {"train": rows, "dev": rows, "test": [*rows, ("", "e")]}.items():
        write_table(data / f"{name}.tsv", table, ("score", "text"))
    scored = ("data.task=score", "reader.labelled=false", "reader.score=score")
    prepared = prepare(settings(*scored), data)
    assert prepared.model.labels == ("1", "2", "3")
    assert prepared.train.labels.tolist() == prepared.dev.labels.tolist() == [0, 2, 1]
    assert prepared.tests["test"].labels.tolist() == [0, 2, 1, -1]
    write_table(data / "train.tsv", [*rows, ("", "e")], ("score", "text"))
    assert "a training row has no score; name the column" in refused(data, *scored)


TRAIN, DEV = reviews(8, 0), reviews(4, 1)


@pytest.mark.parametrize(
    ("data", "overrides", "problem"),
    [
        ({"train": TRAIN, "dev": DEV, "run": DEV}, "", "no split to score may be named 'run'"),
        ({"train": TRAIN, "test": DEV}, "", "no dev set.*--set data.dev_share=0.1"),
        ({"train": [], "dev": DEV}, "", "the training set is empty"),
        ({"train": TRAIN, "dev": DEV}, "data.drop_length=2", "leaves no training row"),
        ({"train": TRAIN, "dev": []}, "", "'dev' is empty.*--set data.dev_share=0.1"),
        ({"train": TRAIN, "dev": [("", "a")]}, "reader.labelled=false", "rows without a label"),
        ({"train": [("", "a")], "dev": DEV}, "reader.labelled=false", "no label.*--task score"),
        ({"dev": DEV, "test": DEV}, "", "expected a split named 'train', found dev, test"),
        (
            {"train": TRAIN, "dev": DEV, "test": [("mixed", "so so")]},
            "",
            "the label 'mixed' appears in 'test' but in no training row; training has bad, good",
        ),
        ({"train": [("good", "a")] * 3, "dev": DEV}, "", "all training rows have the label 'good'"),
        ({"train": TRAIN, "dev": DEV}, "data.test=['tset']", "no split named 'tset'; found train"),
        ({"train": TRAIN, "dev": DEV}, "data.dev=val", "no split named 'val'"),
        (
            {"train": TRAIN, "dev": DEV, "test": DEV},
            "data.dev_share=0.25",
            r"data.dev_share is 0.25, and .* a split named 'dev': choose one.*data.test=\['test'\]",
        ),
        ({"train": TRAIN, "dev": DEV, "test": DEV}, "data.dev=test", "is 'test', and the data has"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(tmp_path, data, overrides, problem):
    with pytest.raises(DataError, match=problem):
        prepare(settings(*overrides.split()), folder_of(tmp_path / "data", **data))


# --- Fingerprints --------------------------------------------------------------------------------


def test_the_fingerprint_changes_with_words_labels_and_rows(tmp_path):
    def fingerprint(train: list[tuple[str, str]], dev: list[tuple[str, str]] = DEV) -> int:
        return prepare(settings(), folder_of(tmp_path / "data", train=train, dev=dev)).fingerprint()

    changes = [
        [(label, text.replace("a", "the")) for label, text in TRAIN],
        [("bad", TRAIN[0][1]), *TRAIN[1:]],
        TRAIN[::-1],
        TRAIN[:-1],
    ]
    prints = {fingerprint(TRAIN), fingerprint(TRAIN, DEV[::-1]), *map(fingerprint, changes)}
    assert fingerprint(TRAIN) in prints
    assert len(prints) == len(changes) + 2


# --- What is said about the training rows, on rows worked out by hand -----------------------------


def notes_of(
    folder: Path, rows: Sequence[tuple[str, ...]], header: tuple[str, ...]
) -> dict[str, str]:
    folder.mkdir()
    write_table(folder / "train.tsv", rows, header)
    write_table(folder / "dev.tsv", rows[:1], header)
    prepared = prepare(settings(), folder)
    return data_notes(prepared.train, prepared.model.labels, from_scratch=False)


def test_equal_texts_with_different_labels_are_counted(tmp_path):
    # Not the texts of one label, nor the same words in another order.
    labelled = {"one film": "aba", "two films": "aa", "film one": "b", "three": "ba"}
    rows = [(label, text) for text, labels in labelled.items() for label in labels]
    many = [(label, f"text {label}") for label in "cdefghi"]
    notes = notes_of(tmp_path / "texts", [*rows, *many], ("label", "text"))
    assert notes["duplicate texts"] == "2 with different labels (5 rows)"
    assert notes["labels with one row"].startswith("'c', 'd', 'e', 'f', 'g', ...: too few")
    pairs = [
        ("a", "x y", "z"),
        ("b", "x", "y z"),
        ("a", "p", "q"),
        ("b", "p", "q"),
        ("b", "q", "p"),
    ]
    notes = notes_of(tmp_path / "pairs", pairs, ("label", "sentence1", "sentence2"))
    assert notes == {"duplicate texts": "1 with different labels (2 rows)"}
