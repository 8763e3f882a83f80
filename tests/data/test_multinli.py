"""MultiNLI 1.0 in its official formats, its unlabelled test sets and the submission file."""

from __future__ import annotations

import csv
import json

import pytest

from genpool.data import Example, MultiNliReader, write_submission
from genpool.errors import DataError, InputError

HEADER = [
    "gold_label",
    *(f"sentence{side}_{kind}" for kind in ("binary_parse", "parse") for side in (1, 2)),
    "sentence1",
    "sentence2",
    "promptID",
    "pairID",
    "genre",
    *(f"label{number}" for number in range(1, 6)),
]


def row(label="neutral", genre="fiction", pair="31193n", first="( Well ( , yes ) )"):
    return {
        "annotator_labels": [label],
        "genre": genre,
        "gold_label": label,
        "pairID": pair,
        "promptID": "31193",
        "sentence1": "Well, yes",
        "sentence1_binary_parse": first,
        "sentence1_parse": "(ROOT (UH Well))",
        "sentence2": 'No\tor "yes"\n',
        "sentence2_binary_parse": "( No way )",
        "sentence2_parse": "(ROOT (UH No))",
    }


def write(folder, stem, rows, suffix="jsonl"):
    if suffix == "jsonl":
        lines = [json.dumps(values) for values in rows]
    else:
        lines = ["\t".join(HEADER)]
        lines += ["\t".join(values.get(name, "").strip() for name in HEADER) for values in rows]
    (folder / f"{stem}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def clean(values):
    return {**values, "sentence2": "No"}


@pytest.fixture
def folder(tmp_path):
    for stem in ("1.0_train", "1.0_dev_matched", "1.0_dev_mismatched"):
        write(tmp_path, f"multinli_{stem}", [row(genre=stem), row("-")])
    for stem in ("matched", "mismatched"):
        rows = [row("hidden", pair=f"{stem}-{at}") for at in range(3)]
        write(tmp_path, f"multinli_0.9_test_{stem}_unlabeled", rows)
    return tmp_path


def test_all_five_sets_are_found_under_their_own_names(folder):
    names = ["train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched"]
    assert MultiNliReader(folder).splits() == names


@pytest.mark.parametrize("suffix", ["jsonl", "txt"])
def test_genre_and_pair_id_are_kept(tmp_path, suffix):
    write(tmp_path, "multinli_1.0_train", [clean(row(genre="slate"))], suffix)
    assert list(MultiNliReader(tmp_path).read("train")) == [
        Example("neutral", "Well , yes", "No way", genre="slate", id="31193n", tokenized=True)
    ]


def test_tabs_quotes_and_line_ends_inside_json_strings_belong_to_the_text(folder):
    example = next(MultiNliReader(folder, tokens="raw").read("train"))
    assert example.second == 'No\tor "yes"\n'


def test_pairs_without_a_gold_label_are_dropped_and_counted(folder):
    reader = MultiNliReader(folder)
    assert len(list(reader.read("dev_matched"))) == 1
    assert reader.skipped == {"no gold label": 1}


def test_pairs_without_a_gold_label_are_kept_to_predict_them(folder):
    reader = MultiNliReader(folder, labelled=False)
    assert [example.label for example in reader.read("dev_matched")] == ["neutral", None]
    assert not reader.skipped


@pytest.mark.parametrize("label", ["hidden", "-", None])
def test_the_test_sets_have_no_labels_whatever_their_files_say(tmp_path, label):
    values = row(label)
    if label is None:
        del values["gold_label"]
    write(tmp_path, "multinli_0.9_test_matched_unlabeled", [values])
    (example,) = MultiNliReader(tmp_path).read("test_matched")
    assert (example.label, example.id) == (None, "31193n")


def test_a_labelled_set_without_its_labels_is_an_error(tmp_path):
    values = row()
    del values["gold_label"]
    write(tmp_path, "multinli_1.0_dev_matched", [values])
    with pytest.raises(DataError, match="line 1: unknown column 'gold_label'"):
        list(MultiNliReader(tmp_path).read("dev_matched"))


def test_the_submission_has_the_columns_of_the_competition_and_every_pair(folder, tmp_path):
    reader = MultiNliReader(folder)
    answers = [(example.id, "contradiction") for example in reader.read("test_matched")]
    path = tmp_path / "submission.csv"
    assert reader.write_submission is write_submission
    assert write_submission(path, answers) == 3
    assert b"\r" not in path.read_bytes()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["pairID"] for row in rows] == ["matched-0", "matched-1", "matched-2"]
    assert {row["gold_label"] for row in rows} == {"contradiction"}
    assert rows[0].keys() == {"pairID", "gold_label"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([("1", "neutrl")], "Did you mean 'neutral'"),
        ([("1", "neutral"), ("1", "neutral")], "answer 2 repeats the pairID '1'"),
        ([(None, "neutral")], "answer 1 has no pairID"),
    ],
)
def test_a_wrong_submission_is_refused_and_the_old_file_stays(tmp_path, answers, message):
    path = tmp_path / "submission.csv"
    path.write_text("old")
    with pytest.raises(InputError, match=message):
        write_submission(path, answers)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
