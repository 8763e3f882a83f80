"""Yelp's reviews, drawn into a seeded split."""

from __future__ import annotations

import gzip
import json

import pytest

from genpool.data import Example, YelpReader
from genpool.errors import ConfigError, DataError

FILE = "yelp_academic_dataset_review.json"


def review(number, stars=None, text=None):
    stars = 1 + number % 5 if stars is None else stars
    return {"review_id": f"r{number}", "stars": stars, "text": text or f"review {number}", "x": {}}


def write(folder, reviews):
    path = folder / FILE
    path.write_text("".join(json.dumps(values) + "\n" for values in reviews), encoding="utf-8")
    return path


def ids(reader, split):
    return [example.id for example in reader.read(split)]


def test_stars_written_as_5_or_as_5_point_0_are_the_same_label(tmp_path):
    write(tmp_path, [review(0, 5), review(1, 5.0), review(2, "5")])
    reader = YelpReader(tmp_path, sizes=(3, 0, 0))
    assert [example.label for example in reader.read("train")] == ["5", "5", "5"]
    assert reader.labels == ("1", "2", "3", "4", "5")
    assert not reader.is_pair


def test_text_keeps_its_lines_and_tabs(tmp_path):
    write(tmp_path, [review(0, 1, 'Bad.\n\n\t"Never" again. \u2028')])
    assert list(YelpReader(tmp_path, sizes=(1, 0, 0)).read("train")) == [
        Example("1", 'Bad.\n\n\t"Never" again. \u2028', id="r0")
    ]


def test_the_paper_sizes_are_the_default(tmp_path):
    write(tmp_path, [review(0)])
    with pytest.raises(DataError, match=r"holds 1 rows.*asked for 504000 \(500000 train, 2000 dev"):
        next(YelpReader(tmp_path).read("train"))


def test_the_splits_have_the_sizes_asked_for_and_share_no_review(tmp_path):
    path = write(tmp_path, map(review, range(100)))
    reader = YelpReader(path, sizes=(50, 20, 10), seed=3)
    drawn = [ids(reader, split) for split in reader.splits()]
    assert [len(part) for part in drawn] == [50, 20, 10]
    assert len({name for part in drawn for name in part}) == 80


def test_the_seed_decides_the_split(tmp_path):
    path = write(tmp_path, map(review, range(100)))

    def dev(seed):
        return ids(YelpReader(path, sizes=(50, 20, 10), seed=seed), "dev")

    assert dev(1) == dev(1)
    assert dev(1) != dev(2)


def test_a_smaller_training_set_leaves_dev_and_test_as_they_are(tmp_path):
    path = write(tmp_path, map(review, range(100)))
    small, large = (YelpReader(path, sizes=(size, 20, 10)) for size in (5, "rest"))
    assert ids(small, "dev") == ids(large, "dev")
    assert ids(small, "test") == ids(large, "test")
    assert set(ids(small, "train")) < set(ids(large, "train"))
    assert len(ids(large, "train")) == 70


def test_blank_lines_are_not_reviews_and_leave_the_split_alone(tmp_path):
    path = write(tmp_path, map(review, range(20)))
    before = ids(YelpReader(path, sizes=("rest", 5, 5)), "test")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n") + b"\r\n")
    assert ids(YelpReader(path, sizes=("rest", 5, 5)), "test") == before


def test_a_file_with_too_few_reviews_says_how_many_and_the_remedy(tmp_path):
    path = write(tmp_path, map(review, range(10)))
    with pytest.raises(DataError, match=r"holds 10 rows.*asked for 11.*sizes=\[train") as caught:
        next(YelpReader(path, sizes=(5, 3, 3)).read("train"))
    assert caught.value.path == path
    assert """--set 'reader.sizes=["rest", 2000, 2000]'""" in caught.value.problem


@pytest.mark.parametrize("name", ["review.json", "review.json.gz"])
def test_the_file_is_found_in_a_folder_by_its_short_name_too(tmp_path, name):
    line = json.dumps(review(0)).encode()
    (tmp_path / name).write_bytes(gzip.compress(line) if name.endswith("gz") else line)
    (tmp_path / "business.json").touch()
    assert ids(YelpReader(tmp_path, sizes=(1, 0, 0)), "train") == ["r0"]


def test_half_stars_and_empty_reviews_are_located(tmp_path):
    path = write(tmp_path, [review(0), review(1, 4.5)])
    with pytest.raises(DataError, match=r"line 2: unknown label '4\.5'"):
        list(YelpReader(path, sizes=("rest", 0, 0)).read("train"))
    write(tmp_path, [review(0), review(1), review(2, 3, "  ")])
    with pytest.raises(DataError, match=r"line 3: column 'text' is empty"):
        list(YelpReader(path, sizes=("rest", 0, 0)).read("train"))


def test_bad_reviews_are_skipped_and_counted_on_request(tmp_path):
    path = write(tmp_path, [review(0), review(1, 4.5), review(2, 3, " ")])
    path.write_bytes(path.read_bytes() + b"{\n")
    reader = YelpReader(path, sizes=("rest", 0, 0), bad_rows="skip")
    assert ids(reader, "train") == ["r0"]
    assert reader.skipped == {"unknown label": 1, "empty side": 1, "invalid JSON": 1}


def test_half_a_character_in_json_is_a_bad_row(tmp_path):
    path = write(tmp_path, [review(0)])
    path.write_text('{"stars": 1, "text": "so sad \\ud83d"}\n')
    with pytest.raises(DataError, match=r"half a character \(U\+D83D\) at position 7"):
        next(YelpReader(path, sizes=(1, 0, 0)).read("train"))


@pytest.mark.parametrize("sizes", [(1, 2), (1, "rest", 2), (-1, 1, 1), ("all", 1, 1), (1, 1, 1.5)])
def test_sizes_must_be_three_numbers(tmp_path, sizes):
    path = write(tmp_path, [review(0)])
    with pytest.raises(ConfigError, match=r"expected three numbers.*--set 'reader\.sizes=\["):
        YelpReader(path, sizes=sizes)


def test_a_folder_without_the_file_says_so(tmp_path):
    (tmp_path / "yelp_academic_dataset_tip.json").touch()
    with pytest.raises(DataError, match=r"review\.json.*it holds: yelp_academic_dataset_tip\.json"):
        YelpReader(tmp_path)
