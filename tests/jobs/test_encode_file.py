"""Vectors of whole files: every format, in order, and nothing half-written."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch

from genpool.data import Example, LinesReader
from genpool.data.sentences import read_sentences
from genpool.errors import DataError, InputError
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import WINDOW_BATCHES
from genpool.jobs.encode_file import EncodeOptions, encode_file

#: of all lengths, an empty one among them, and one twice
SENTENCES = ["a dog runs .", "", "the man", "two red dogs rest , the man sleeps .", "dog", "dog"]
FORMATS = (".npy", ".parquet", ".jsonl")
OUTPUTS = ("v.npy", "v.parquet", "v.jsonl", "index/")
QUIET = EncodeOptions(show_progress=False)
#: the smallest windows: several of them even for short files
ONE_BY_ONE = EncodeOptions(batch_size=1, show_progress=False)


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


def read_back(path: Path) -> tuple[list[str] | None, np.ndarray]:
    if path.suffix == ".npy":
        return None, np.load(path)
    if path.suffix == ".parquet":
        columns = parquet.read_table(path).to_pydict()
        return columns["sentence"], np.array(columns["vector"], dtype=np.float32)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    vectors = np.array([row["vector"] for row in rows], dtype=np.float32)
    return [row["sentence"] for row in rows], vectors


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_line_gets_its_vector_in_order(sentence_encoder, sentences, tmp_path, suffix):
    out = tmp_path / f"vectors{suffix}"
    assert encode_file(sentence_encoder, sentences, out, QUIET) == 6
    texts, vectors = read_back(out)
    assert texts in (None, SENTENCES)
    expected = sentence_encoder.encode(SENTENCES)
    assert vectors.shape == (6, sentence_encoder.output_dim)
    assert np.abs(vectors - expected).max() < 1e-6
    assert not vectors[1].any()
    sentences.write_bytes(b"")
    assert encode_file(sentence_encoder, sentences, out, QUIET) == len(read_back(out)[1]) == 0


def test_more_sentences_than_are_held_at_once_stay_in_order(sentence_encoder, tmp_path):
    many = ["dog " * (row * 7 % 5) + f" {row}".strip() for row in range(2 * WINDOW_BATCHES + 3)]
    (tmp_path / "many.txt").write_text("\n".join(many))
    out = tmp_path / "vectors.jsonl"
    encode_file(sentence_encoder, tmp_path / "many.txt", out, ONE_BY_ONE)
    texts, vectors = read_back(out)
    assert texts == many
    assert np.abs(vectors - sentence_encoder.encode(many)).max() < 1e-6


def test_the_stream_is_never_in_memory_as_a_whole(sentence_encoder, tmp_path, monkeypatch):
    read = written = ahead = 0

    def sentences(reader: LinesReader) -> Iterator[Example]:
        nonlocal read, ahead
        for _ in range(5 * WINDOW_BATCHES):
            read += 1
            ahead = max(ahead, read - written)
            yield Example(None, "a dog")

    def written_row(row: dict[str, object], **options: bool) -> str:
        nonlocal written
        written += 1
        return str(row["sentence"])

    monkeypatch.setattr("genpool.jobs.encode_file.read_rows", sentences)
    monkeypatch.setattr("genpool.jobs.encode_file.json.dumps", written_row)
    out = tmp_path / "vectors.jsonl"
    assert encode_file(sentence_encoder, "-", out, ONE_BY_ONE) == 5 * WINDOW_BATCHES
    assert written == 5 * WINDOW_BATCHES
    assert ahead <= WINDOW_BATCHES + 1


@pytest.mark.parametrize(("normalize", "dim"), [(True, None), (False, 3), (True, 3)])
def test_vectors_can_be_truncated_and_normalized(
    sentence_encoder, sentences, tmp_path, normalize, dim
):
    out = tmp_path / "vectors.npy"
    options = EncodeOptions(normalize=normalize, truncate_dim=dim, show_progress=False)
    encode_file(sentence_encoder, sentences, out, options)
    expected = sentence_encoder.encode(SENTENCES)[:, :dim]
    if normalize:
        expected = expected / np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    assert np.abs(np.load(out) - expected).max() < 1e-6


def test_standard_input_is_read_like_a_file(monkeypatch):
    data = io.BytesIO("\ufeffnaïve\r\n\na\rb\u2028c\n".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data, encoding="ascii"))
    assert list(read_sentences("-")) == ["naïve", "", "a\rb\u2028c"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_error_on_the_way_leaves_the_output_as_it_was(sentence_encoder, tmp_path, suffix):
    bad = tmp_path / "latin.txt"
    bad.write_bytes(b"a dog\n" * (WINDOW_BATCHES + 5) + b"caf\xe9\n")
    out = tmp_path / f"vectors{suffix}"
    with pytest.raises(DataError):
        encode_file(sentence_encoder, bad, out, ONE_BY_ONE)
    assert [path.name for path in tmp_path.iterdir()] == ["latin.txt"]
    out.write_bytes(b"an earlier result")
    with pytest.raises(DataError):
        encode_file(sentence_encoder, bad, out, ONE_BY_ONE)
    assert out.read_bytes() == b"an earlier result"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latin.txt", out.name]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_vector_that_is_not_finite_is_refused_with_its_row(sentence_encoder, tmp_path, output):
    with torch.no_grad():
        man = sentence_encoder.text.vocabulary.id("man")
        sentence_encoder.embedding.words[man] = float("nan")
    lines = ["a dog"] * (WINDOW_BATCHES + 5) + ["the man"]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    with pytest.raises(InputError, match=f"the vector of row {WINDOW_BATCHES + 5} is not finite"):
        encode_file(sentence_encoder, tmp_path / "lines.txt", f"{tmp_path}/{output}", ONE_BY_ONE)
    assert [path.name for path in tmp_path.iterdir()] == ["lines.txt"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_ctrl_c_says_how_far_it_was_and_leaves_the_output_as_it_was(
    sentence_encoder, sentences, tmp_path, monkeypatch, output
):
    out = f"{tmp_path}/{output}"
    encode_file(sentence_encoder, sentences, out, QUIET)

    def contents() -> dict[str, bytes]:
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    many = tmp_path / "many.txt"
    many.write_text("a dog\n" * (2 * WINDOW_BATCHES))
    before, encode_tokenized, calls = contents(), QuickEncoder.encode_tokenized, 0

    def interrupted(self: QuickEncoder, words: list[list[str]]) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == WINDOW_BATCHES + 4:  # in the second window, after the first was written
            raise KeyboardInterrupt
        return encode_tokenized(self, words)

    monkeypatch.setattr(QuickEncoder, "encode_tokenized", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        encode_file(sentence_encoder, many, out, ONE_BY_ONE)
    assert str(caught.value) == (
        f"stopped after {WINDOW_BATCHES + 3} of {2 * WINDOW_BATCHES} sentences; nothing was "
        f"written to {out}; run the command again"
    )
    assert contents() == before
