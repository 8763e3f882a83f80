"""The folder of an index: what goes in comes out, and it is never half there."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.disk.arrays import map_array
from genpool.errors import FolderError, InputError
from genpool.search import IndexCard, SearchIndex, is_folder_name, search
from genpool.search.index_card import OWN_FILES
from tests.helpers.small_indexes import NO_MODEL, random_vectors, write_index

SENTENCES = [
    "a dog",
    "",
    "two\nlines\r\nand\u2028more\n",
    "日本語 naïve 🙂",
    "half \ud83d of a pair",
    "\x00 tab\t",
]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_sentences_and_vectors_come_back_as_they_were(tmp_path: Path, chunk: int) -> None:
    vectors = random_vectors(len(SENTENCES), 5)
    index = SearchIndex.open(write_index(tmp_path / "index", vectors, SENTENCES, chunk))
    assert [index.sentence(row) for row in range(len(index))] == SENTENCES
    for row, vector in enumerate(vectors):
        assert index.search(vector, top=1)[0][0][:3:2] == (row, SENTENCES[row])
    assert np.array_equal(np.load(tmp_path / "index" / "vectors.npy"), vectors)
    assert index.card == IndexCard(len(SENTENCES), 5, False, NO_MODEL)
    assert set(files_of(tmp_path / "index")) == set(OWN_FILES)
    for row in (-1, len(SENTENCES)):
        with pytest.raises(InputError, match="rows 0 to 5"):
            index.sentence(row)


def test_a_folder_is_a_name_without_a_suffix_or_with_a_slash() -> None:
    folders: list[str | Path] = ["index", "out/index", Path("a.b/index"), "v.npy/", "../x"]
    files: list[str | Path] = ["v.npy", "v.txt", "-", ".npy", Path("out/v.jsonl")]
    assert all(map(is_folder_name, folders))
    assert not any(map(is_folder_name, files))


# --- nothing half there --------------------------------------------------------------------------


def test_an_index_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()  # an empty folder may become an index, too
    write_index(tmp_path / "index", random_vectors(30, 4))
    (tmp_path / "link").symlink_to("index")
    old = SearchIndex.open(tmp_path / "index")
    write_index(tmp_path / "link", random_vectors(2, 3), ["new", "newer"])
    assert SearchIndex.open(tmp_path / "index").sentence(1) == "newer"
    assert old.sentence(29) == "row 29"  # an open index goes on with its own files
    assert (tmp_path / "link").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"index", "link"}


def test_an_index_that_is_replaced_while_it_is_opened_is_one_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sizes of all files are the same, so that only the reading can notice."""
    folder = write_index(tmp_path / "index", random_vectors(3, 4), ["old 0", "old 1", "old 2"])
    vectors = random_vectors(3, 4, seed=1)
    replacements = iter([lambda: write_index(folder, vectors, ["new 0", "new 1", "new 2"])])

    def replaced_after_the_first(path: Path, *expected: Any) -> np.ndarray:
        array = map_array(path, *expected)
        for replace in replacements:
            replace()
        return array

    monkeypatch.setattr(search, "map_array", replaced_after_the_first)
    index = SearchIndex.open(folder)
    [hits] = index.search(vectors[2], top=1)
    assert hits[0].sentence == "new 2" and hits[0].score == pytest.approx(1)


def test_a_kill_leaves_the_old_index(tmp_path: Path) -> None:
    folder = write_index(tmp_path / "index", random_vectors(3, 4))
    before = files_of(folder)
    code = """
import os, signal, sys
import numpy as np
from genpool.search import ModelReference, index_writer
with index_writer(sys.argv[1], 4, ModelReference("x")) as write:
    write(["a"] * 9, np.ones((9, 4), np.float32))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code, folder], env=environment)
    assert done.returncode == -signal.SIGKILL
    assert files_of(folder) == before
    write_index(folder, random_vectors(5, 4))
    assert len(SearchIndex.open(folder)) == 5


def test_something_else_in_the_place_is_refused(
    tmp_path: Path, sentence_encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    sentence_encoder.save_pretrained(tmp_path / "model")
    mixed = write_index(tmp_path / "mixed", random_vectors(2, 3))
    (mixed / "notes.txt").write_text("mine")
    foreign = write_index(tmp_path / "foreign", random_vectors(2, 3))
    (foreign / "index.json").write_text('{"format": "other"}')
    before = sorted(tmp_path.rglob("*"))
    cases = {
        "file": "is a file; expected a folder",
        "photos": "contains something else, which the index would replace: cat.jpg",
        "model": "README.md, config.json",
        "mixed": "notes.txt",
        "foreign": "its format is 'other'; expected \"genpool-index\"",
    }
    for name, message in cases.items():
        with pytest.raises(FolderError, match=message):
            write_index(tmp_path / name, random_vectors(2, 3))
    monkeypatch.chdir(write_index(tmp_path / "index", random_vectors(2, 3)))
    with pytest.raises(FolderError, match="is the working folder"):
        write_index(Path(), random_vectors(2, 3))
    assert sorted(tmp_path.rglob("*")) == sorted(
        [*before, tmp_path / "index", *(tmp_path / "index" / name for name in OWN_FILES)]
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_not_written(tmp_path: Path, bad: float) -> None:
    vectors = random_vectors(20, 3)
    vectors[9, 1] = bad
    with pytest.raises(InputError, match="the vector of row 9 is not finite"):
        write_index(tmp_path / "index", vectors)
    assert list(tmp_path.iterdir()) == []


# --- damaged and foreign folders -----------------------------------------------------------------


Change = Callable[[bytes], bytes]  # of the content of a file


def card(**changes: object) -> Change:
    return lambda content: json.dumps({**json.loads(content), **changes}).encode()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


CARDS: list[tuple[bytes | Change, str]] = [
    (b"{", "is not JSON"),
    (b"[" * 100_000, "is not JSON"),
    (b"[1]", "contains list; expected named entries"),
    (card(format="faiss"), "its format is 'faiss'"),
    (card(format_version=2), "format version 2; this genpool reads 1\\."),
    (card(format_version=True), "format version True"),
    (card(rows=-1), "-1 rows of dimension 4 are impossible"),
    (card(dim=0), "9 rows of dimension 0 are impossible"),
    (card(rows=True), "'rows' is True; expected int"),
    (card(normalized=1), "'normalized' is 1; expected bool"),
    (card(lists=10), "10 lists of 9 rows are impossible"),
    (card(columns=["a", "a"]), "expected different names"),
    (card(id="key"), "the column of ids, 'key', is not in 'columns'"),
    (card(model=None), "'model' is None; expected dict"),
    (card(model={}), "'fingerprint' is None; expected str"),
    (card(model={"fingerprint": "x", "path": 3}), "'path' is 3; expected str or null"),
    (card(rows=10), r"float32 of shape \(9, 4\); index.json says float32 of"),
    (card(rows=10**30), "index.json says"),
    (card(dim=5), r"says float32 of \(9, 5\)"),
]
NOT_VECTORS = [
    b"",
    b"\x80\x04\x95 a pickle",
    b"\x93NUMPY\x01\x00\x76\x00{'descr': (((",
    b"\x93NUMPY\x01\x00\x04\x00'''\n",
]
OTHER_ARRAYS = [
    random_vectors(9, 4).astype(np.float64),
    np.asfortranarray(random_vectors(9, 4)),
    random_vectors(36),
    np.array([["text"] * 4] * 9, dtype=object),  # a pickle
]
OTHER_ENDS: list[Change] = [lambda content: content[:-1], lambda content: content + b"x"]
DAMAGE: list[tuple[str, bytes | Change | None, str]] = [
    *(("index.json", content, message) for content, message in CARDS),
    ("vectors.npy", None, "is incomplete: vectors.npy missing"),
    *(("vectors.npy", content, "is not an .npy file") for content in NOT_VECTORS),
    *(
        ("vectors.npy", npy(array), r"vectors\.npy contains .* says float32 of \(9, 4\)")
        for array in OTHER_ARRAYS
    ),
    *(("vectors.npy", end, r"vectors\.npy has 27[13] bytes; expected 272") for end in OTHER_ENDS),
    *(("offsets.npy", end, r"offsets\.npy has 20[79] bytes; expected 208") for end in OTHER_ENDS),
    ("sentences.utf8", None, "is incomplete: sentences.utf8 missing"),
    ("sentences.utf8", b"", "sentences.utf8 has 0 bytes; offsets.npy says 45"),
    ("sentences.utf8", b"x" * 46, "has 46 bytes; offsets.npy says 45"),
]


def case_id(value: object) -> str:
    """The same in every process; that of a function would have its address."""
    return "cut or longer" if callable(value) else str(value)[:30]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGE, ids=case_id)
def test_damage_is_reported_in_words(
    tmp_path: Path, name: str, change: bytes | Change | None, message: str
) -> None:
    file = write_index(tmp_path / "index", random_vectors(9, 4)) / name
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()) if callable(change) else change)
    with pytest.raises(FolderError, match=message):
        SearchIndex.open(tmp_path / "index")


@pytest.mark.parametrize(
    ("place", "value"), [(3, 10**6), (3, -5), (4, 2)], ids=["beyond", "negative", "backwards"]
)
def test_wrong_offsets_and_text_are_reported_with_their_row(
    tmp_path: Path, place: int, value: int
) -> None:
    folder = write_index(tmp_path / "index", random_vectors(9, 4))
    offsets = np.load(folder / "offsets.npy")
    offsets[place] = value
    np.save(folder / "offsets.npy", offsets)
    (folder / "sentences.utf8").write_bytes(b"row 0" + b"\xff" * 40)
    index = SearchIndex.open(folder)
    assert index.sentence(0) == "row 0"
    with pytest.raises(FolderError, match="sentence of row 1 cannot be read: 'utf-8' codec"):
        index.sentence(1)
    with pytest.raises(FolderError, match="the sentence of row 3 cannot be read: it goes from"):
        index.sentence(3)


def test_what_is_no_index_is_refused_in_words(
    tmp_path: Path, sentence_encoder: SentenceEncoder
) -> None:
    (tmp_path / "file.npy").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    sentence_encoder.save_pretrained(tmp_path / "model")
    cases = {
        "nowhere": "there is no such folder; expected an index made by genpool encode",
        "file.npy": "is a file; expected an index",
        "empty": "has no index.json, .* It has: nothing.",
        "model": "It is a model: give it with --model.",
    }
    for name, message in cases.items():
        with pytest.raises(FolderError, match=message):
            SearchIndex.open(tmp_path / name)
