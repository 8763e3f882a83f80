"""The official files of SNLI and MultiNLI, in both formats, and the submission file."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from genpool.data import Example, MultiNliReader, SnliReader, write_submission
from genpool.data.nli import leaves
from genpool.errors import ConfigError, DataError, InputError

HEADER = [
    "gold_label",
    *(f"sentence{side}_{kind}" for kind in ("binary_parse", "parse") for side in (1, 2)),
    "sentence1",
    "sentence2",
    "captionID",
    "pairID",
    "genre",
    *(f"label{number}" for number in range(1, 6)),
]


def row(label="neutral", first="( A ( man sleeps ) )", second="( He dreams )", pair="1.jpg#0r1n"):
    return {
        "annotator_labels": [label],
        "captionID": pair.split("r")[0],
        "gold_label": label,
        "pairID": pair,
        "sentence1": first.replace("( ", "").replace(" )", ""),
        "sentence1_binary_parse": first,
        "sentence1_parse": f"(ROOT {first})",
        "sentence2": second.replace("( ", "").replace(" )", ""),
        "sentence2_binary_parse": second,
        "sentence2_parse": f"(ROOT {second})",
    }


def write_jsonl(path: Path, rows, end="\n") -> Path:
    path.write_text(end.join(json.dumps(row) for row in rows) + end, encoding="utf-8", newline="")
    return path


def write_txt(path: Path, rows, end="\n") -> Path:
    lines = ["\t".join(HEADER)]
    for values in rows:
        known = {**values, "label1": values["gold_label"]}
        lines.append("\t".join(known.get(name, "") for name in HEADER))
    path.write_text(end.join(lines) + end, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("write", [write_jsonl, write_txt])
def test_tokens_are_the_leaves_of_the_binary_parse(tmp_path, write):
    suffix = "jsonl" if write is write_jsonl else "txt"
    write(tmp_path / f"snli_1.0_dev.{suffix}", [row()])
    reader = SnliReader(tmp_path)
    assert (reader.splits(), reader.is_pair) == (["dev"], True)
    assert reader.labels == ("entailment", "neutral", "contradiction")
    assert list(reader.read("dev")) == [
        Example("neutral", "A man sleeps", "He dreams", id="1.jpg#0r1n", tokenized=True)
    ]


def test_raw_text_is_given_as_it_was_written(tmp_path):
    assert leaves("( ( A -LRB- ( b -RRB- ) ) -LSB- )") == ["A", "(", "b", ")", "["]
    values = {**row(), "sentence1": 'A "man"\tsleeps. \n'}
    write_jsonl(tmp_path / "snli_1.0_dev.jsonl", [values])
    (example,) = SnliReader(tmp_path, tokens="raw").read("dev")
    assert (example.first, example.tokenized) == ('A "man"\tsleeps. \n', False)


def test_pairs_without_a_gold_label_are_dropped_and_counted(tmp_path):
    write_jsonl(tmp_path / "snli_1.0_train.jsonl", [row("-"), row("entailment"), row("-")])
    reader = SnliReader(tmp_path, bad_rows="error")
    for _ in range(2):  # a second reading does not count the same rows again
        assert [example.label for example in reader.read("train")] == ["entailment"]
    assert reader.skipped == {"no gold label": 2}


def test_json_is_preferred_to_text_and_plain_to_compressed(tmp_path):
    write_txt(tmp_path / "snli_1.0_dev.txt", [row(second="( text )")])
    path = write_jsonl(tmp_path / "snli_1.0_dev.jsonl", [row(second="( packed )")])
    (tmp_path / "snli_1.0_dev.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    write_jsonl(path, [row(second="( plain )")])
    assert next(SnliReader(tmp_path).read("dev")).second == "plain"
    # One file is read as the split that it is.
    reader = SnliReader(tmp_path / "snli_1.0_dev.txt")
    assert (reader.splits(), next(reader.read("dev")).second) == (["dev"], "text")
    path.unlink()
    assert next(SnliReader(tmp_path).read("dev")).second == "packed"
    (tmp_path / "snli_1.0_dev.jsonl.gz").unlink()
    assert next(SnliReader(tmp_path).read("dev")).second == "text"


def test_empty_fields_of_the_annotators_may_be_cut_off_at_the_end(tmp_path):
    path = write_txt(tmp_path / "snli_1.0_dev.txt", [row()])
    path.write_text(path.read_text().rstrip("\t\n") + "\n")
    assert next(SnliReader(tmp_path).read("dev")).id == "1.jpg#0r1n"
    path.write_text(path.read_text() + "neutral\t( A )\n")
    with pytest.raises(DataError, match=r"line 3: has 2 fields; expected 15"):
        list(SnliReader(tmp_path).read("dev"))


def test_bad_rows_are_counted_by_reason_when_they_are_skipped(tmp_path):
    rows = [row("maybe"), row(first="( )"), row(second=""), row(), row("-")]
    path = write_jsonl(tmp_path / "snli_1.0_dev.jsonl", rows)
    path.write_bytes(
        path.read_bytes() + b'{"gold_label": nope}\n\xff\n[1]\n{"gold_label": "neutral"}\n'
    )
    reader = SnliReader(tmp_path, bad_rows="skip")
    assert len(list(reader.read("dev"))) == 1
    assert reader.skipped == {
        "unknown label": 1,
        "empty side": 2,
        "no gold label": 1,
        "invalid JSON": 2,
        "bad UTF-8": 1,
        "missing field": 1,
    }
    path.write_bytes(b'{"gold_label": nope}\n')
    with pytest.raises(DataError, match=r"line 1: is not JSON: Expecting value at column 16"):
        list(SnliReader(tmp_path).read("dev"))


def test_a_missing_column_is_an_error_even_where_bad_rows_are_skipped(tmp_path):
    values = row()
    del values["sentence1_binary_parse"]
    write_jsonl(tmp_path / "snli_1.0_dev.jsonl", [values])
    with pytest.raises(DataError, match="Did you mean 'sentence2_binary_parse'"):
        list(SnliReader(tmp_path, bad_rows="skip").read("dev"))


def test_what_is_not_there_is_told_with_what_was_looked_for_and_what_is_there(tmp_path):
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(DataError, match=r"snli_1\.0_train\.jsonl.*it holds: notes\.md"):
        SnliReader(tmp_path)
    with pytest.raises(DataError, match=r"no such file or folder; .* holds: notes\.md"):
        SnliReader(tmp_path / "snli" / "deeper")
    write_jsonl(tmp_path / "snli_1.0_dev.jsonl", [row()])
    with pytest.raises(DataError, match=r"'train'.*Known: dev\. Looked for snli_1\.0_train\.jsonl"):
        SnliReader(tmp_path).read("train")
    with pytest.raises(ConfigError, match="Did you mean 'parse'"):
        SnliReader(tmp_path, tokens="prase")
    with pytest.raises(ConfigError, match="Did you mean 'skip'"):
        SnliReader(tmp_path, bad_rows="skipp")


def multinli_row(label="neutral", genre="fiction", pair="31193n"):
    return {**row(label, "( Well ( , yes ) )", "( No way )", pair), "genre": genre}


@pytest.fixture
def folder(tmp_path):
    for stem in ("1.0_train", "1.0_dev_matched", "1.0_dev_mismatched"):
        write_jsonl(tmp_path / f"multinli_{stem}.jsonl", [multinli_row(), multinli_row("-")])
    for stem in ("matched", "mismatched"):
        rows = [multinli_row("hidden", pair=f"{stem}-{at}") for at in range(3)]
        write_jsonl(tmp_path / f"multinli_0.9_test_{stem}_unlabeled.jsonl", rows)
    return tmp_path


@pytest.mark.parametrize("write", [write_jsonl, write_txt])
def test_genre_and_pair_id_are_kept(tmp_path, write):
    suffix = "jsonl" if write is write_jsonl else "txt"
    write(tmp_path / f"multinli_1.0_train.{suffix}", [multinli_row(genre="slate")])
    assert list(MultiNliReader(tmp_path).read("train")) == [
        Example("neutral", "Well , yes", "No way", genre="slate", id="31193n", tokenized=True)
    ]


def test_all_five_sets_are_found_and_pairs_without_a_gold_label_kept_to_predict_them(folder):
    reader = MultiNliReader(folder, labelled=False)
    names = ["train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched"]
    assert reader.splits() == names
    assert [example.label for example in reader.read("dev_matched")] == ["neutral", None]
    assert not reader.skipped


@pytest.mark.parametrize("label", ["hidden", "-", None])
def test_the_test_sets_have_no_labels_whatever_their_files_say(tmp_path, label):
    values = multinli_row(label)
    if label is None:
        del values["gold_label"]
    write_jsonl(tmp_path / "multinli_0.9_test_matched_unlabeled.jsonl", [values])
    (example,) = MultiNliReader(tmp_path).read("test_matched")
    assert (example.label, example.id) == (None, "31193n")


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
