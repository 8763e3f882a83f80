"""Word vectors: reading the file, and filling the word table."""

from __future__ import annotations

import lzma
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genpool.errors import DataError
from genpool.text import Coverage, Vocabulary, WordVectors, read_vectors, vector_table, wanted_words
from genpool.text.vocabulary import BEGIN, END, PAD, UNKNOWN

FILE = "the 0.5 -1 2e-3\ndog 1 2 3\nDog 4 5 6\n"


@pytest.fixture
def write(tmp_path: Path):
    """Writes a vector file and gives its path."""

    def write(content: str | bytes, name: str = "vectors.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def vectors(**rows: list[float]) -> WordVectors:
    indices = {word: row for row, word in enumerate(rows)}
    return WordVectors(indices, np.array(list(rows.values()), dtype=np.float32))


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (FILE, "plain.txt"),
        (lzma.compress(FILE.encode()), "vectors.txt.xz"),
        (FILE.replace("\n", "\r\n"), "windows.txt"),
        (FILE.replace("\n", " \n"), "spaces.txt"),
        (FILE.rstrip("\n"), "no_last_line_end.txt"),
        ("\ufeff" + FILE, "byte_order_mark.txt"),
        ("3 3\n" + FILE, "header.txt"),
        ("\ufeff3 3\r\n" + FILE, "everything.txt"),
    ],
)
def test_small_differences_of_the_format_do_not_matter(
    write, content: str | bytes, name: str
) -> None:
    loaded = read_vectors(str(write(content, name)))
    assert loaded.rows == {"the": 0, "dog": 1, "Dog": 2}
    expected = np.array([[0.5, -1, 0.002], [1, 2, 3], [4, 5, 6]], dtype=np.float32)
    np.testing.assert_array_equal(loaded.matrix, expected)
    assert loaded.matrix.dtype == np.float32 and loaded.dim == 3


def test_a_word_may_contain_spaces(write) -> None:
    loaded = read_vectors(write("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n"))
    assert list(loaded.rows) == ["the", ". . .", "at name@domain.com"]
    assert loaded.matrix.tolist() == [[1, 2], [3, 4], [5, 6]]
    unusual = read_vectors(write("a\u00a0b 1 2\nc\u2028d 3 4\ne\x85f 5 6\n"))
    assert list(unusual.rows) == ["a\u00a0b", "c\u2028d", "e\x85f"]
    numbers = read_vectors(write("a 1\n7 5\n"))  # the second line is no header
    assert list(numbers.rows) == ["a", "7"]


def test_of_equal_words_the_first_counts_and_all_quotes_are_one_word(write) -> None:
    loaded = read_vectors(write("dog 1 2\n`` 3 4\ndog 5 6\n'' 7 8\n\" 9 9\n\u2019 1 1\n"))
    assert loaded.rows == {"dog": 0, '"': 1, "'": 2}
    assert loaded.matrix.tolist() == [[1, 2], [3, 4], [1, 1]]
    for quote in ('"', "``", "''", "\u201c", "\u201d"):
        assert loaded.find(quote) == 1
    assert loaded.find("'") == loaded.find("\u2018") == 2


def test_only_the_words_that_are_asked_for_are_kept(write) -> None:
    loaded = read_vectors(write(FILE), only={"Dog", "zebra"})
    assert loaded.rows == {"Dog": 0}
    assert loaded.matrix.tolist() == [[4, 5, 6]]
    none = read_vectors(write(FILE), only={"zebra"})
    assert none.rows == {} and none.dim == 3  # the dimension is that of the file


@settings(max_examples=50, deadline=None, database=None)
@given(
    st.dictionaries(
        st.text(st.characters(categories=["L"]), min_size=1, max_size=6),
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3
        ),
        min_size=1,
        max_size=6,
    )
)
def test_values_come_back_exactly(tmp_path_factory: pytest.TempPathFactory, rows: dict) -> None:
    path = tmp_path_factory.getbasetemp() / "vectors.txt"
    lines = [" ".join([word, *map(repr, numbers)]) for word, numbers in rows.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    loaded = read_vectors(path)
    assert list(loaded.rows) == list(rows)
    np.testing.assert_array_equal(loaded.matrix, np.array(list(rows.values()), dtype=np.float32))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a 1 2\nb 3 4\nc 5\n", "3: 1 values after 'c'; expected 2"),
        ("2 2\na 1 2\n\nb 3 4\n", "3: 0 values after ''; expected 2"),
        ("a\t1\t2\n", "1: expected a word and its values"),
        (
            "a 1 2\nb 1 x\n",
            "2: the vector of 'b' is not 2 numbers: could not convert string",
        ),
        ("a 1 2\nb nan 2\n", "2: the vector of 'b' is not 2 numbers: a value is not finite"),
        ("a 1 2\nb 1 1e39\n", "2: the vector of 'b' is not 2 numbers: a value is not finite"),
        (b"a 1 2\nb\xff 3 4\n", "2: is not UTF-8"),
    ],
)
def test_a_bad_line_is_named_with_file_and_number(
    write, content: str | bytes, problem: str
) -> None:
    path = write(content)
    with pytest.raises(DataError) as caught:
        read_vectors(path)
    assert str(caught.value).startswith(f"{path}, line {problem}")
    assert caught.value.line == int(problem[0])


@pytest.mark.parametrize("content", ["", "2 3\n"], ids=["empty", "header alone"])
def test_a_file_without_vectors_is_refused(write, content: str) -> None:
    path = write(content)
    for only in (None, {"dog"}):
        with pytest.raises(DataError, match="no word vectors") as caught:
            read_vectors(path, only)
        assert caught.value.path == path


def test_a_word_is_found_as_written_then_in_lower_case() -> None:
    loaded = vectors(dog=[1], Dog=[2], Cat=[3])
    assert loaded.find("Dog") == 1
    assert loaded.find("DOG") == loaded.find("dog") == 0
    assert loaded.find("Cat") == 2
    assert loaded.find("cat") is None and loaded.find("CAT") is None
    assert loaded.find("DOG", lower_case=False) is None and loaded.find("dog", False) == 0


def test_without_the_fallback_only_words_as_written_have_a_vector() -> None:
    counts = {"the": 6, "Dog": 2, "dog": 1, "Zebra": 1}
    vocabulary = Vocabulary.build(counts)
    pretrained = vectors(the=[1], dog=[2], zebra=[3])
    table, coverage = vector_table(vocabulary, pretrained, counts, lower_case_fallback=False)
    # "the" and "dog" as written: 6 + 1 of ten tokens. "Dog" and "Zebra" stay Gaussian.
    assert coverage == Coverage(4, 2, 2, 10, 7)
    assert table[vocabulary.ids["dog"]].tolist() == [2]
    assert max(abs(table[vocabulary.ids[word]][0]) for word in ("Dog", "Zebra")) < 0.1
    unknown = Vocabulary.build({"Dog": 1, "ape": 1})
    exact, loose = (vector_table(unknown, pretrained, {}, 0, 0.01, on)[0] for on in (False, True))
    assert np.array_equal(exact[unknown.ids["ape"]], loose[unknown.ids["ape"]])


def test_the_table_holds_the_vector_of_every_word_that_has_one() -> None:
    vocabulary = Vocabulary.build({"Dog": 1, "dog": 1, "DOG": 1, "Cat": 1, "zebra": 1})
    table, _ = vector_table(vocabulary, vectors(dog=[1, 2], Dog=[3, 4], cat=[5, 6]), {})
    assert table.shape == (9, 2) and table.dtype == np.float32
    rows = {word: table[vocabulary.ids[word]].tolist() for word in vocabulary.words[4:]}
    assert rows["dog"] == rows["DOG"] == [1, 2]
    assert rows["Dog"] == [3, 4] and rows["Cat"] == [5, 6]
    assert np.abs(rows["zebra"]).max() < 0.1


def test_coverage_of_a_hand_worked_case() -> None:
    counts = {"the": 6, "Dog": 2, "zebra": 1, "rare": 1}
    vocabulary = Vocabulary.build(counts)
    _, coverage = vector_table(vocabulary, vectors(the=[1], dog=[2], cat=[3]), counts)
    # Four entries: "the" as written, "Dog" in lower case, "zebra" and "rare" not at all.
    # Ten tokens, of which 6 + 2 have a vector.
    assert coverage == Coverage(
        words=4, words_with_vector=2, exact_matches=1, tokens=10, tokens_with_vector=8
    )
    assert str(coverage) == (
        "vectors for 2 of 4 words (50.0 %; 1 as written, 1 in lower case) and 80.0 % of 10 tokens"
    )
    # "zebra" is too rare for an entry; "Dog" too, and is read as "dog", which has a vector.
    counts = {"dog": 5, "Dog": 1, "zebra": 1}
    vocabulary = Vocabulary.build(counts, minimum_count=2)
    _, coverage = vector_table(vocabulary, vectors(dog=[1], zebra=[2]), counts)
    assert coverage == Coverage(1, 1, 1, tokens=7, tokens_with_vector=6)
    _, nothing = vector_table(Vocabulary.build({}), vectors(dog=[1]), {})
    assert nothing == Coverage(0, 0, 0, 0, 0) and "none" in str(nothing)


def test_words_without_a_vector_are_gaussian_with_deviation_one_hundredth() -> None:
    vocabulary = Vocabulary.build({f"word{number}": 1 for number in range(400)})
    table, coverage = vector_table(vocabulary, vectors(dog=[1.0] * 100), {})
    assert coverage.words_with_vector == 0
    drawn = table[4:].astype(np.float64)
    # 40,000 draws: five standard errors of the deviation and of the mean.
    assert abs(drawn.std() - 0.01) < 5 * 0.01 / math.sqrt(2 * drawn.size)
    assert abs(drawn.mean()) < 5 * 0.01 / math.sqrt(drawn.size)
    within = [(np.abs(drawn) < k * 0.01).mean() for k in (1, 2)]
    assert within == pytest.approx([0.6827, 0.9545], abs=0.01)


def test_padding_is_zero_special_entries_take_no_vector_and_a_seed_repeats() -> None:
    loaded = WordVectors({"<unk>": 0, "<s>": 1, "</s>": 2}, np.full((3, 2), 9, np.float32))
    table, coverage = vector_table(Vocabulary.build({"dog": 1}), loaded, {})
    assert not table[PAD].any() and coverage.words == 1
    for entry in (UNKNOWN, BEGIN, END):
        assert 0 < np.abs(table[entry]).max() < 0.1
    vocabulary, loaded = Vocabulary.build({"zebra": 1}), vectors(dog=[1, 2, 3])
    first, second, other = (vector_table(vocabulary, loaded, {}, seed=s)[0] for s in (1, 1, 2))
    assert np.array_equal(first, second) and not np.array_equal(first[4], other[4])


def test_wanted_words_are_enough_to_find_every_vector(write) -> None:
    path = write("the 1 2\ndog 3 4\nother 5 6\nPARIS 7 8\n' 9 9\n")
    vocabulary = Vocabulary.build({"the": 1, "Dog": 1, "Paris": 1, "'": 1})
    assert wanted_words(vocabulary) == {"the", "Dog", "dog", "Paris", "paris", "'"}
    assert wanted_words(vocabulary, False) == {"the", "Dog", "Paris", "'"}
    all_of_it = vector_table(vocabulary, read_vectors(path), {})
    wanted = vector_table(vocabulary, read_vectors(path, only=wanted_words(vocabulary)), {})
    assert np.array_equal(all_of_it[0], wanted[0]) and all_of_it[1] == wanted[1]
    assert all_of_it[1].words_with_vector == 3
