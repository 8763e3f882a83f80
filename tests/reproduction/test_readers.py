"""Yelp's reviews and the folders of PAN author profiling, in seeded splits."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.data import Example
from genpool.errors import ConfigError, DataError
from genpool.reproduction.readers import PanReader, YelpReader, draw_parts, strip_markup

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


@pytest.mark.parametrize("name", [FILE, "review.json", "review.json.gz"])  # of several years
def test_stars_written_as_5_or_as_5_point_0_are_the_same_label(tmp_path, name):
    text = 'Bad.\n\n\t"Never" again. \u2028'
    path = write(tmp_path, [review(0, 5, text), review(1, 5.0), review(2, "5")])
    content = path.read_bytes()
    path.unlink()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (tmp_path / "business.json").touch()
    reader = YelpReader(tmp_path, sizes=(3, 0, 0))
    examples = list(reader.read("train"))
    assert [example.label for example in examples] == ["5", "5", "5"]
    assert examples[0] == Example("5", text, id="r0")
    assert reader.labels == ("1", "2", "3", "4", "5")
    assert not reader.is_pair


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


def test_wrong_sizes_and_a_file_with_too_few_reviews_are_told_with_the_remedy(tmp_path):
    path = write(tmp_path, map(review, range(10)))
    with pytest.raises(DataError, match=r"asked for 504000 \(500000 train, 2000 dev"):
        next(YelpReader(tmp_path).read("train"))  # the paper's sizes
    with pytest.raises(DataError, match=r"holds 10 rows.*asked for 11.*sizes=\[train") as caught:
        next(YelpReader(path, sizes=(5, 3, 3)).read("train"))
    assert caught.value.path == path
    assert """--set 'reader.sizes=["rest", 2000, 2000]'""" in caught.value.problem
    for sizes in [(1, 2), (1, "rest", 2), (-1, 1, 1), ("all", 1, 1), (1, 1, 1.5)]:
        with pytest.raises(ConfigError, match=r"expected three numbers.*--set 'reader\.sizes=\["):
            YelpReader(path, sizes=sizes)  # type: ignore[arg-type]


def test_bad_reviews_are_located_or_on_request_skipped_and_counted(tmp_path):
    bad = {r"unknown label '4\.5'": review(1, 4.5), "column 'text' is empty": review(2, 3, " ")}
    for problem, values in bad.items():
        path = write(tmp_path, [review(0), values])
        with pytest.raises(DataError, match=f"line 2: {problem}"):
            list(YelpReader(path, sizes=("rest", 0, 0)).read("train"))
    path = write(tmp_path, [review(0), *bad.values()])
    path.write_bytes(path.read_bytes() + b"{\n")
    reader = YelpReader(path, sizes=("rest", 0, 0), bad_rows="skip")
    assert ids(reader, "train") == ["r0"]
    assert reader.skipped == {"unknown label": 1, "empty side": 1, "invalid JSON": 1}


def test_a_split_is_drawn_without_keeping_the_texts(tmp_path):
    path = write(tmp_path, (review(number, text="word " * 40) for number in range(20_000)))
    reader = YelpReader(path, sizes=(1_000, 100, 100))
    tracemalloc.start()
    try:
        assert sum(1 for _ in reader.read("dev")) == 100
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**20  # the file is 5 MB
    finally:
        tracemalloc.stop()


@given(st.integers(3, 60), st.integers(0, 10), st.integers(0, 10), st.integers(0, 5))
def test_every_row_is_in_one_part_and_the_parts_have_their_sizes(count, dev, test, seed):
    train = count - dev - test
    if train < 1:
        return
    parts = draw_parts(count, (train, dev, test), seed)
    assert np.bincount(parts, minlength=4).tolist() == [train, dev, test, 0]
    assert (draw_parts(count, ("rest", dev, test), seed) == parts).all()
    fewer = draw_parts(count + 2, (train, dev, test), seed)
    assert np.bincount(fewer, minlength=4).tolist() == [train, dev, test, 2]


ALL = ("rest", 0, 0)


def write_author(folder, author, texts, element="document", around="documents"):
    inner = "\n".join(
        f'<{element} id="{at}" url="http://x/?a&amp;b"><![CDATA[{text}]]></{element}>'
        for at, text in enumerate(texts)
    )
    opening = f'<author type="twitter" lang="en">\n<{around} count="{len(texts)}">\n'
    path = folder / f"{author}.xml"
    path.write_text(f"{opening}{inner}\n</{around}>\n</author>\n", encoding="utf-8")
    return path


def write_truth(folder, *lines):
    (folder / "truth.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """Ten authors of ten tweets each, two authors for each of the five ages."""
    ages = ["18-24", "25-34", "35-49", "50-64", "65-xx"] * 2
    for at in range(10):
        write_author(tmp_path, f"a{at}", [f"tweet {at} {number}" for number in range(10)])
    write_truth(tmp_path, *(f"a{at}:::MALE:::{age}" for at, age in enumerate(ages)))
    return tmp_path


def test_each_document_has_the_age_of_its_author(folder):
    examples = list(PanReader(folder, sizes=ALL).read("train"))
    assert len(examples) == 100
    assert [example.first for example in examples[:2]] == ["tweet 0 0", "tweet 0 1"]
    ages = {example.first.split()[1]: example.label for example in examples}
    assert [ages[str(at)] for at in range(5)] == ["18-24", "25-34", "35-49", "50-64", "65+"]
    assert PanReader(folder).labels == ("18-24", "25-34", "35-49", "50-64", "65+")


def test_open_ranges_are_read_in_every_spelling(tmp_path):
    """The open range of PAN 2015, from 50 on, is the paper's 50 to 64."""
    ages = {"65-xx": "65+", "65-XX": "65+", "65+": "65+", "50-XX": "50-64", "50-xx": "50-64"}
    for age in ages:
        write_author(tmp_path, age, ["hello"])
    write_truth(tmp_path, *(f"{age}:::female:::{age}" for age in ages), "")
    examples = PanReader(tmp_path, sizes=ALL).read("train")
    assert {example.id: example.label for example in examples} == {
        f"{age}/1": label for age, label in ages.items()
    }


def test_a_folder_without_its_tweets_is_answered_with_the_downloader(tmp_path):
    """PAN 2016 as it is distributed: ids and addresses, and no text."""
    for author in ("a", "b"):
        documents = '<document id="1" url="http://x/1"/><document id="2" url="http://x/2"/>'
        (tmp_path / f"{author}.xml").write_text(
            f"<author><documents>{documents}</documents></author>"
        )
    write_truth(tmp_path, "a:::MALE:::18-24", "b:::FEMALE:::25-34")
    with pytest.raises(DataError, match=r"holds 0 rows.* 4 documents have no text") as caught:
        list(PanReader(tmp_path).read("train"))
    assert "run the downloader" in caught.value.problem
    write_author(tmp_path, "a", ["all of them have text"])
    write_author(tmp_path, "b", ["all of them have text"])
    with pytest.raises(DataError, match=r"holds 2 rows.*68485 train, 4000 dev") as caught:
        list(PanReader(tmp_path).read("train"))
    assert "downloader" not in caught.value.problem


def test_conversations_and_longer_truth_lines_of_other_years_are_read(tmp_path):
    author = write_author(tmp_path, "a_en_xx_xx", ["hello"], "conversation", "conversations")
    write_truth(tmp_path, "a:::M:::25-34:::0.3:::0.1:::0.2:::0.4:::0.0")
    (example,) = PanReader(tmp_path, sizes=ALL).read("train")
    assert (example.first, example.label) == ("hello", "25-34")
    author.write_text(  # documents inside a conversation are read once
        "<author><conversations><conversation>\n"
        "<document>one</document> <document>two <b>three</b></document>\n"
        "</conversation></conversations></author>"
    )
    examples = list(PanReader(tmp_path, sizes=ALL).read("train"))
    assert [example.first for example in examples] == ["one", "two three"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('hi <a href="/u" class="x"><s>@</s><b>user</b></a> &amp; co', "hi @user & co"),
        ("one<br />two<BR>three", "one two three"),
        ("I <3 you, </3 them, 1 < 2 > 0", "I <3 you, </3 them, 1 < 2 > 0"),
        ("&lt;b&gt; stays, &#39;quoted&#39;", "<b> stays, 'quoted'"),
        ("a<script>alert(1)</script><!-- no\n --> b", "a b"),
        ("a<STYLE x>p {}</Style ><!-- never closed", "a <!-- never closed"),
        ("  two\n lines\t", "two lines"),
        ("cut off <a href='x", "cut off <a href='x"),
    ],
)
def test_tags_are_stripped_and_entities_read(html, text):
    assert strip_markup(html) == text


def test_documents_without_text_and_unknown_ages_are_dropped_and_counted(tmp_path):
    write_author(tmp_path, "a", ["hello", "  ", "<img src='x'/>"])
    write_author(tmp_path, "b", ["of no known age"])
    write_truth(tmp_path, "a:::MALE:::18-24", "b:::FEMALE:::XX-XX")
    reader = PanReader(tmp_path, sizes=ALL)
    assert [example.first for example in reader.read("train")] == ["hello"]
    assert reader.skipped == {"no text": 2, "unknown age": 1}


@pytest.mark.parametrize("kind", [YelpReader, PanReader])
def test_the_splits_have_the_sizes_asked_for_and_share_no_text(kind, folder):
    write(folder, map(review, range(100)))
    reader = kind(folder, sizes=(50, 20, 10), seed=1)
    drawn = [ids(reader, split) for split in reader.splits()]
    assert [len(part) for part in drawn] == [50, 20, 10]
    assert len({name for part in drawn for name in part}) == 80
    assert ids(kind(folder, sizes=(50, 20, 10), seed=1), "dev") == drawn[1]


UNSAFE = "declaring an entity is refused as unsafe"
UNREADABLE = "is not XML that can be read"
FIRST = "a1:::MALE:::18-24\n"


@pytest.mark.parametrize(
    ("name", "content", "line", "problem"),
    [
        ("a3.xml", "<author>\n<document>a & b</document>\n</author>", 2, UNREADABLE),
        ("a3.xml", '<?xml version="1.0" encoding="klingon"?><author/>', 1, UNREADABLE),
        ("a3.xml", '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><author/>', 1, UNSAFE),
        ("a3.xml", '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/host">]><author/>', 1, UNSAFE),
        ("a3.xml", '<!DOCTYPE a [<!ENTITY % a SYSTEM "http://localhost/x">]><author/>', 1, UNSAFE),
        ("truth.txt", FIRST + "a0:::MALE:::50-99", 2, "unknown label '50-99'.*'50-64'"),
        ("truth.txt", FIRST + "a0:::MALE", 2, "has 2 fields; expected author:::GENDER:::AGE"),
        ("truth.txt", FIRST + "a9:::MALE:::65+", 1, "author 'a0' is not in truth"),
    ],
)
def test_what_is_broken_or_unsafe_is_located(folder, name, content, line, problem):
    (folder / name).write_text(content)
    with pytest.raises(DataError, match=problem) as caught:
        list(PanReader(folder, sizes=ALL).read("train"))
    place = folder / ("a0.xml" if "a0.xml" in str(caught.value) else name)
    assert (caught.value.path, caught.value.line) == (place, line)


def test_a_folder_of_another_kind_says_what_was_looked_for(tmp_path):
    (tmp_path / "en").mkdir()
    with pytest.raises(DataError, match=r"looked for truth\.txt and an \.xml file.*found: en"):
        PanReader(tmp_path)


def test_a_bad_file_is_counted_once_however_many_splits_are_read(folder):
    (folder / "a3.xml").write_text("<author><document>never closed</author>")
    reader = PanReader(folder, sizes=(50, 20, 20), bad_rows="skip")
    assert [len(list(reader.read(split))) for split in reader.splits()] == [50, 20, 20]
    assert reader.skipped == {"invalid XML": 1}
