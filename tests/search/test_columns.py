"""Ids and columns of an index: kept, searched by, extended and deleted from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.errors import FolderError, InputError
from genpool.inference.quick import QuickEncoder
from genpool.search import ModelReference, SearchIndex, delete_rows, index_writer, nearest
from tests.helpers.small_indexes import NO_MODEL, by_loops, random_vectors, write_index

COLUMNS = ("id", "lang", "year")
VALUES: list[tuple[Any, ...]] = [
    (f"a{row}", "en" if row % 3 else "de", 2000 + row) for row in range(20)
]


def write(
    folder: Path, vectors: np.ndarray, values: list[tuple[object, ...]], append: bool = False
) -> Path:
    texts = [f"row {row[0]}" for row in values]
    return write_index(folder, vectors, texts, columns=COLUMNS, values=values, append=append)


def contents(folder: Path) -> list[tuple[str, dict[str, object], list[float]]]:
    index = SearchIndex.open(folder)
    vectors = np.load(folder / "vectors.npy")
    return [
        (index.sentence(row), dict(index.values(row)), vectors[row].tolist())
        for row in range(len(index))
    ]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return write(tmp_path / "index", random_vectors(20, 4), list(VALUES))


def test_values_come_back_with_their_types(tmp_path: Path) -> None:
    class Day:
        def __str__(self) -> str:
            return "2020-01-02"

    rows: list[tuple[object, ...]] = [
        ("ü\n\ud83d", 5, 5.5),
        (True, None, float("nan")),
        (10**30, float("inf"), Day()),
    ]
    folder = write(tmp_path / "index", random_vectors(3, 4), rows)
    found = [tuple(values.values()) for _, values, _ in contents(folder)]
    assert found == [("ü\n\ud83d", 5, 5.5), (True, None, None), (10**30, "inf", "2020-01-02")]
    card = SearchIndex.open(folder).card
    assert (card.columns, card.id, card.lists) == (COLUMNS, "id", 0)


@pytest.mark.parametrize("block_rows", [1, 6, 100])
def test_where_ranks_only_the_rows_that_fit(
    index: Path, block_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = SearchIndex.open(index)
    monkeypatch.setattr(nearest, "BLOCK_BYTES", block_rows * 4 * 4)
    vectors, query = random_vectors(20, 4), random_vectors(4, seed=1)
    fits = [row for row, values in enumerate(VALUES) if values[1] == "en" and values[2] >= 2004]
    expected = [row for row, _ in by_loops(vectors, query, 20) if row in fits]
    [hits] = opened.search(query, top=5, where='lang == "en" and year >= 2004')
    assert [hit.row for hit in hits] == expected[:5]
    assert [hit.values["id"] for hit in hits] == [f"a{row}" for row in expected[:5]]
    assert opened.search(query, where='id == "nobody"') == [[]]
    with pytest.raises(InputError, match="is not a condition"):
        opened.search(query, where="")


def test_an_extended_index_is_the_index_of_all_rows(tmp_path: Path) -> None:
    vectors, values = random_vectors(20, 4), list(VALUES)
    whole = write(tmp_path / "whole", vectors, values)
    parts = write(tmp_path / "parts", vectors[:11], values[:11], append=True)
    write(parts, vectors[11:], values[11:], append=True)
    names = sorted(path.name for path in whole.iterdir())
    assert sorted(path.name for path in parts.iterdir()) == names
    for name in names:
        assert (parts / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize("ids", [["a0"], ["a3", "a19", "a7"], [f"a{row}" for row in range(20)]])
def test_deleted_rows_are_gone_and_the_others_as_they_were(index: Path, ids: list[str]) -> None:
    before = contents(index)
    assert delete_rows(index, ids) == len(ids)
    assert contents(index) == [row for row in before if row[1]["id"] not in ids]
    assert [path.name for path in index.parent.iterdir()] == ["index"]


def test_all_rows_of_an_id_are_deleted_and_none_if_one_is_not_there(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [(5, "", 0), ("5", "", 0), (5.0, "", 0), ("05", "", 0)]
    folder = write(tmp_path / "index", random_vectors(4, 3), rows)
    with pytest.raises(InputError, match="no row with the id 'a99'; nothing was deleted"):
        delete_rows(folder, [5, "a99"])
    assert len(contents(folder)) == 4
    assert delete_rows(folder, [5]) == 3
    assert [values["id"] for _, values, _ in contents(folder)] == ["05"]
    with pytest.raises(InputError, match=r"has no ids.*--id COLUMN"):
        delete_rows(write_index(tmp_path / "plain", random_vectors(1, 3)), ["a"])


@pytest.mark.parametrize(
    ("columns", "id_", "dim", "model", "message"),
    [
        (("id", "lang"), "id", 4, NO_MODEL, "the columns id, lang, year, ids: id;"),
        (COLUMNS, None, 4, NO_MODEL, "the columns id, lang, year, ids: id; got 4 .* ids: None"),
        (COLUMNS, "id", 5, NO_MODEL, "has 4 dimensions, .* got 5 dimensions"),
        (COLUMNS, "id", 4, ModelReference("sha256:another"), "made with another model"),
    ],
)
def test_rows_that_do_not_fit_are_not_added(
    index: Path,
    columns: tuple[str, ...],
    id_: str | None,
    dim: int,
    model: ModelReference,
    message: str,
) -> None:
    before = contents(index)
    with (
        pytest.raises(InputError, match=message),
        index_writer(index, dim, model, columns, id_, append=True),
    ):
        raise AssertionError("nothing may be encoded before the check")
    assert contents(index) == before


def test_values_that_do_not_fit_the_columns_are_refused(tmp_path: Path) -> None:
    vectors = random_vectors(2, 3)
    for values in ([], [("a", "b", "c")], [("a", "b"), ("a", "b")]):
        with (
            pytest.raises(InputError, match="expected a value for each of the columns"),
            index_writer(tmp_path / "index", 3, NO_MODEL, COLUMNS, "id") as add,
        ):
            add(["one", "two"], vectors, values)
    with (
        pytest.raises(InputError, match="'key', is not among the columns"),
        index_writer(tmp_path / "index", 3, NO_MODEL, COLUMNS, "key"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


# --- crashes and other processes -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["index", "new"])  # which is there, or appears meanwhile
def test_a_change_by_another_process_is_not_overwritten(index: Path, name: str) -> None:
    folder, vectors = index.with_name(name), random_vectors(1, 4)
    with (
        pytest.raises(FolderError, match="was changed by another process in the meantime"),
        index_writer(folder, 4, NO_MODEL, COLUMNS, "id", append=True) as add,
    ):
        add(["mine"], vectors, [("mine", "", 0)])
        write(folder, vectors, [("theirs", "", 0)], append=True)
    ids = [values["id"] for _, values, _ in contents(folder)]
    assert ids == ([f"a{row}" for row in range(20)] if name == "index" else []) + ["theirs"]


def test_an_index_that_a_kill_left_between_two_names_is_extended(index: Path) -> None:
    before = contents(index)
    index.rename(index.with_name(".index.previous"))
    write(index, random_vectors(1, 4), [("after", "", 0)], append=True)
    assert contents(index)[:-1] == before and len(contents(index)) == 21


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("columns.jsonl", None, "is incomplete: columns.jsonl missing"),
        ("columns.jsonl", b"", "columns.jsonl has 0 bytes; column_offsets.npy says"),
        ("column_offsets.npy", b"x", "is not an .npy file"),
    ],
)
def test_damage_is_reported_when_the_index_is_opened(
    index: Path, name: str, content: bytes | None, message: str
) -> None:
    (index / name).unlink()
    if content is not None:
        (index / name).write_bytes(content)
    with pytest.raises(FolderError, match=message):
        SearchIndex.open(index)


@pytest.mark.parametrize("wrong", [b"{", b'["a1"]', b'["a", {}, 3]', b"[1, 2, 3],[4"])
def test_damaged_values_are_reported_with_their_rows(index: Path, wrong: bytes) -> None:
    lines = (index / "columns.jsonl").read_bytes().split(b"\n")
    lines[3] = wrong.ljust(len(lines[3]))[: len(lines[3])]
    (index / "columns.jsonl").write_bytes(b"\n".join(lines))
    opened = SearchIndex.open(index)
    assert opened.values(2)["id"] == "a2"
    with pytest.raises(FolderError, match="is damaged: the columns of rows 3 to 3 cannot be read"):
        opened.values(3)


# --- texts ---------------------------------------------------------------------------------------


def test_a_text_is_encoded_by_the_model_of_the_index(
    tmp_path: Path, sentence_encoder: SentenceEncoder
) -> None:
    sentence_encoder.save_pretrained(tmp_path / "model")
    reference = ModelReference.of(sentence_encoder, tmp_path / "model")
    texts = ["a dog runs .", "the man sleeps", "two red dogs"]
    with index_writer(tmp_path / "index", 5, reference) as add:
        add(texts, np.ascontiguousarray(sentence_encoder.encode(texts)[:, :5]))
    index = SearchIndex.open(tmp_path / "index")
    [expected] = index.search(sentence_encoder.encode(["the dog"], truncate_dim=5))
    hits = index.search("the dog")
    assert [hit.row for hit in hits] == [hit.row for hit in expected]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-6)
    assert index.search(["the dog", " "], top=2) == [hits[:2], []]
    assert index.search("") == []


def test_the_encoder_of_an_index_must_be_its_model(
    tmp_path: Path, sentence_encoder: SentenceEncoder, make_encoder
) -> None:
    reference = ModelReference.of(sentence_encoder, tmp_path / "model")
    vectors = np.asarray(sentence_encoder.encode(["a dog"]))
    folder = write_index(tmp_path / "index", vectors, ["a dog"], model=reference)
    index = SearchIndex.open(folder, sentence_encoder)
    assert index.encoder is sentence_encoder
    assert index.search("a dog")[0].score == pytest.approx(1, abs=1e-6)
    index.require_model(QuickEncoder(sentence_encoder))
    other = make_encoder(seed=5)
    other.notes["title"] = "the other"
    with pytest.raises(InputError, match=r"made with another model: .*/model \(sha256:.*the other"):
        SearchIndex.open(folder, other)
    other.save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="made with another model"):
        _ = SearchIndex.open(folder).encoder
