"""Sentences in, vectors out: `encode`, `encode_stream` and `similarity`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from threading import Event, current_thread, main_thread

import numpy as np
import pytest
import torch

from genpool.config import EmbeddingSettings, Part, TextSettings
from genpool.encoder import ENCODERS
from genpool.errors import InputError
from genpool.inference.sentence_vectors import WINDOW_BATCHES
from genpool.model.sentence_encoder import QUICK_MIN_SENTENCES
from genpool.pooling import POOLINGS

SENTENCES = ["a dog runs .", "the man", "two red men rest , the dog sleeps .", "dog"]


def difference(one, other) -> float:
    return float(np.abs(np.asarray(one, float) - np.asarray(other, float)).max())


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """By the formula, number by number."""
    dot = sum(float(x) * float(y) for x, y in zip(one, other, strict=True))
    sizes = [sum(float(x) ** 2 for x in side) ** 0.5 for side in (one, other)]
    return dot / (sizes[0] * sizes[1])


def test_a_list_gives_a_row_per_sentence_in_the_order_given(sentence_encoder) -> None:
    vectors = sentence_encoder.encode(SENTENCES)
    assert isinstance(vectors, np.ndarray) and vectors.dtype == np.float32
    assert vectors.shape == (4, sentence_encoder.output_dim)
    for sentence, vector in zip(SENTENCES, vectors, strict=True):
        assert difference(sentence_encoder.encode(sentence), vector) <= 1e-6
    assert np.ptp(vectors, axis=0).max() > 0.1


def test_one_string_is_one_sentence_and_not_its_characters(sentence_encoder) -> None:
    vector = sentence_encoder.encode("a dog")
    assert vector.shape == (sentence_encoder.output_dim,)
    assert np.array_equal(vector, sentence_encoder.encode(iter(["a dog"]))[0])
    tensor = sentence_encoder.encode("a dog", convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor) and not tensor.requires_grad
    assert np.array_equal(tensor.numpy(), vector)


def test_an_empty_list_gives_no_rows(sentence_encoder) -> None:
    vectors = sentence_encoder.encode([])
    assert vectors.shape == (0, sentence_encoder.output_dim) and vectors.dtype == np.float32
    assert sentence_encoder.encode([], normalize_embeddings=True).shape == vectors.shape
    tensor = sentence_encoder.encode([], convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor) and tensor.shape == vectors.shape


def test_normalized_vectors_have_length_one_and_the_same_direction(sentence_encoder) -> None:
    plain = sentence_encoder.encode([*SENTENCES, ""])
    unit = sentence_encoder.encode([*SENTENCES, ""], normalize_embeddings=True)
    assert difference(np.linalg.norm(unit[:4], axis=1), np.ones(4)) <= 1e-6
    assert difference(unit[:4] * np.linalg.norm(plain[:4], axis=1, keepdims=True), plain[:4]) < 1e-6
    assert not unit[4].any()
    assert difference(sentence_encoder.encode("dog", normalize_embeddings=True), unit[3]) <= 1e-6


def test_a_progress_bar_changes_nothing_but_what_is_printed(sentence_encoder, capsys) -> None:
    plain = sentence_encoder.encode(SENTENCES)
    assert capsys.readouterr() == ("", "")
    shown = sentence_encoder.encode(SENTENCES, show_progress_bar=True)
    assert np.array_equal(shown, plain)
    printed = capsys.readouterr()
    assert printed.out == "" and "encoding: 4/4" in printed.err


def test_cutting_is_counted(make_encoder) -> None:
    model = make_encoder(text=TextSettings(max_length=2))
    assert np.array_equal(model.encode("a dog runs"), model.encode("a dog"))
    assert (model.text.cut.sentences, model.text.cut.tokens) == (1, 1)


ODD = {
    "empty": "",
    "spaces": " \t\n  \u00a0\u3000 ",
    "emoji": "🐕🏃🏽‍♀️ 👨‍👩‍👧 🇩🇪",
    "control characters": "\x00 \x07\u200b\ufeff",
    "half a surrogate pair": "dog \ud83d runs",
    "combining marks": "e" + "\u0301" * 300,
    "right to left": "שלום كلب .",
    "special entries": "<pad> <unk> <s> </s>",
    "a word of 100,000 characters": "x" * 100_000,
    "a word of 100,000 unknown letters": "ßж" * 50_000,
}


@pytest.mark.parametrize(
    ("pooling", "encoder"),
    [*(("generalized", name) for name in ENCODERS), *((name, "lstm") for name in POOLINGS)],
)
def test_odd_sentences_are_encoded(make_encoder, pooling: str, encoder: str) -> None:
    model = make_encoder(pooling, encoder)
    together = dict(zip(ODD, model.encode(list(ODD.values())), strict=True))
    for name, sentence in ODD.items():
        alone = model.encode(sentence)
        assert np.isfinite(alone).all(), name
        assert difference(alone, together[name]) <= 1e-6, name
        assert alone.any() == (name not in ("empty", "spaces")), name


@pytest.mark.parametrize(
    ("pooling", "encoder"),
    [
        ("generalized", Part("stacked-bilstm", {"hidden_dim": 2, "layers": 1})),
        ("gated", Part("lstm", {"hidden_dim": 2})),
        ("max", "gru"),
        ("inner", "cnn"),
    ],
)
def test_a_sentence_of_20_000_tokens_encodes(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder, text=TextSettings(rules="whitespace"))
    words = ["the red dog runs ,", "a man sleeps .", "unknown 🐕"]
    sentence = " ".join(islice((words[number % 3] for number in count()), 6000))
    tokens = sentence.split()[:20_000]
    assert len(tokens) == 20_000
    vector = model.encode(" ".join(tokens))
    assert np.isfinite(vector).all() and np.abs(vector).max() > 1e-3


def test_a_very_long_sentence_is_not_cut(make_encoder) -> None:
    model = make_encoder("mean", "bag-of-words", text=TextSettings(rules="whitespace"))
    long = model.encode(" ".join(["dog"] * 19_999 + ["man"])).astype(float)
    dog, man = (model.encode(word).astype(float) for word in ("dog", "man"))
    # What the last of all tokens adds is larger than what rounding of a sum of 20,000 takes.
    assert difference(long, (19_999 * dog + man) / 20_000) <= 1e-6
    assert difference(dog, man) / 20_000 > 2e-5


@pytest.mark.parametrize("given", [None, b"dog", ["a", "dog"]])
def test_what_is_no_sentence_is_refused_by_value_and_type(sentence_encoder, given) -> None:
    expected = f"got {given!r} ({type(given).__name__}); expected a sentence"
    for use in (
        lambda: sentence_encoder.encode(["a dog", given]),
        lambda: sentence_encoder.explain(given),
    ):
        with pytest.raises(InputError) as caught:
            use()
        assert expected in str(caught.value)


def counted(sentences: Iterator[str], taken: list[str]) -> Iterator[str]:
    for sentence in sentences:
        taken.append(sentence)
        yield sentence


def test_a_stream_is_read_no_further_than_the_chunk_that_is_asked_for(sentence_encoder) -> None:
    taken: list[str] = []
    endless = counted((SENTENCES[number % 4] for number in count()), taken)
    chunks = sentence_encoder.encode_stream(endless, batch_size=2)
    assert taken == []
    first = next(chunks)
    assert len(first) == len(taken) == 2 * WINDOW_BATCHES
    second = next(chunks)
    assert len(taken) == 4 * WINDOW_BATCHES
    expected = sentence_encoder.encode(SENTENCES)
    for chunk in (first, second):
        assert difference(chunk, np.tile(expected, (WINDOW_BATCHES // 2, 1))) <= 1e-6


@pytest.mark.parametrize("number", [0, 7, 2 * WINDOW_BATCHES + 1])
def test_a_stream_comes_in_order_whatever_its_length(sentence_encoder, number: int) -> None:
    kinds = ["", "dog", "a man", "the red dog", "two men rest ."]
    expected = np.stack([sentence_encoder.encode(kind) for kind in kinds])
    order = [place * 7 % 5 for place in range(number)]
    chunks = list(sentence_encoder.encode_stream((kinds[place] for place in order), batch_size=2))
    assert [len(chunk) for chunk in chunks[:-1]] == [2 * WINDOW_BATCHES] * (len(chunks) - 1)
    assert sum(len(chunk) for chunk in chunks) == number
    if number:
        assert difference(torch.cat(chunks), expected[order]) <= 1e-6


def test_a_fault_in_a_stream_is_reported_when_it_is_reached(sentence_encoder) -> None:
    chunks = sentence_encoder.encode_stream(iter([*["dog"] * WINDOW_BATCHES, None]), batch_size=1)
    assert len(next(chunks)) == WINDOW_BATCHES
    with pytest.raises(InputError, match="got None"):
        next(chunks)


def test_similarity_is_the_cosine_of_all_pairs(sentence_encoder) -> None:
    first, second = SENTENCES[:3], SENTENCES[1:]
    one, other = sentence_encoder.encode(first), sentence_encoder.encode(second)
    expected = [[cosine(a, b) for b in other] for a in one]
    found = sentence_encoder.similarity(first, second)
    assert isinstance(found, torch.Tensor) and found.shape == (3, 3)
    assert difference(found, expected) <= 1e-6
    assert np.ptp(expected) > 0.1


def test_similarity_takes_strings_lists_arrays_and_tensors_alike(sentence_encoder) -> None:
    array = sentence_encoder.encode(SENTENCES)
    expected = sentence_encoder.similarity(SENTENCES, SENTENCES)
    array.flags.writeable = False
    sides = [SENTENCES, array, array.astype(np.float64), torch.from_numpy(array.copy()).double()]
    for one in sides:
        for other in sides:
            assert difference(sentence_encoder.similarity(one, other), expected) <= 1e-6
    for one in (SENTENCES[0], array[0], torch.from_numpy(array[0].copy())):  # single ones
        assert difference(sentence_encoder.similarity(one, SENTENCES), expected[:1]) <= 1e-6
    found = sentence_encoder.to(torch.bfloat16).similarity(SENTENCES, array)
    assert found.dtype is torch.bfloat16 and difference(found.float(), expected) <= 0.02


def test_similarity_with_zeros_is_zero(sentence_encoder) -> None:
    found = sentence_encoder.similarity(["", "dog"], ["", "dog", "  "])
    assert found[0].tolist() == [0, 0, 0]
    assert found[1, [0, 2]].tolist() == [0, 0] and found[1, 1] > 0.999
    zeros = np.zeros((1, sentence_encoder.output_dim), np.float32)
    assert sentence_encoder.similarity(zeros, "dog").tolist() == [[0]]


def test_cut_vectors_are_compared_with_each_other(sentence_encoder) -> None:
    vectors = sentence_encoder.encode(SENTENCES, truncate_dim=5)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
    expected = vectors @ vectors.T / np.outer(lengths, lengths)
    assert difference(sentence_encoder.similarity(vectors, vectors), expected) <= 1e-6


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.zeros((2, 13), np.float32), "got vectors of shape (2, 13); expected (n, 12)"),
        (np.zeros((2, 3), np.float32), "expected the same number: encode both with truncate_dim=3"),
        (torch.zeros(1, 2, 12), "got vectors of shape (1, 2, 12); expected (n, 12)"),
        (np.array(["a", "dog"]), "expected vectors or a list of texts"),
        (["a dog", 5], "sentence 1: got 5 (int); expected a sentence"),
    ],
    ids=["width", "cut", "three dimensions", "texts", "mixed"],
)
def test_what_cannot_be_compared_is_refused(sentence_encoder, given, expected: str) -> None:
    for sides in ((given, "a dog"), ("a dog", given)):
        with pytest.raises(InputError) as caught:
            sentence_encoder.similarity(*sides)
        assert expected in str(caught.value)


def test_a_call_that_ends_leaves_one_that_has_begun_without_dropout(
    make_encoder, monkeypatch
) -> None:
    model = make_encoder(embedding=EmbeddingSettings(word_dim=4, dropout=0.5))
    expected, rows = model.encode(SENTENCES), model.embedding.rows
    begun, ended = Event(), Event()

    def waiting(*arguments):
        if current_thread() is not main_thread():
            begun.set()
            assert ended.wait(60)
        return rows(*arguments)

    monkeypatch.setattr(model.embedding, "rows", waiting)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(model.train().encode, SENTENCES)
        assert begun.wait(60)
        vectors = model.encode(SENTENCES)
        trained = model(model.text.batch([text.split() for text in SENTENCES])).vector.detach()
        ended.set()
    assert difference(vectors, expected) <= 1e-6 and difference(other.result(), expected) <= 1e-6
    assert difference(trained, expected) > 1e-3


@pytest.mark.slow
def test_threads_encode_without_dropout_while_another_one_trains(make_encoder) -> None:
    number = 2 * QUICK_MIN_SENTENCES
    model = make_encoder(embedding=EmbeddingSettings(word_dim=4, dropout=0.5))
    sentences = [SENTENCES[place % 4] for place in range(number)]
    expected = model.encode(sentences)
    model.train()
    batch = model.text.batch([model.text.words(sentence) for sentence in sentences])
    training = True

    def encode_repeatedly() -> float:
        worst = 0.0
        while training or not worst:
            worst = max(worst, difference(model.encode(sentences), expected), 1e-12)
        return worst

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(encode_repeatedly) for _ in range(3)]
        try:
            steps = [model(batch).vector.detach() for _ in range(150)]
            modes = {module.training for module in model.modules()}
        finally:
            training = False
    assert max(future.result() for future in futures) <= 1e-6
    assert modes == {True}
    assert min(difference(step, expected) for step in steps) > 1e-3  # dropout, in every step


# --- Data frames and their columns ---------------------------------------------------------------


def columns_of(kind: str) -> list[object]:
    """SENTENCES as every kind of column of a library."""
    if kind == "python":
        return [tuple(SENTENCES), np.array(SENTENCES)]
    library = pytest.importorskip(kind)
    if kind == "pyarrow":
        return [library.array(SENTENCES), library.chunked_array([SENTENCES[:1], SENTENCES[1:]])]
    index = {"index": [9, 3, 3, 1]} if kind == "pandas" else {}
    return [library.Series(SENTENCES, **index), library.DataFrame({"text": SENTENCES})["text"]]


@pytest.mark.parametrize("kind", ["python", "pandas", "polars", "pyarrow"])
def test_a_column_of_a_data_frame_is_a_list_of_sentences(sentence_encoder, kind: str) -> None:
    expected = sentence_encoder.encode(SENTENCES)
    for column in columns_of(kind):
        assert np.array_equal(sentence_encoder.encode(column), expected)
        chunks = list(sentence_encoder.encode_stream(column))
        assert np.array_equal(torch.cat(chunks).numpy(), expected)


@pytest.mark.parametrize("frames", ["pandas", "polars", "pyarrow"])
def test_a_data_frame_is_refused_with_the_way_to_name_a_column(
    sentence_encoder, text_classifier, pair_classifier, frames: str
) -> None:
    library = pytest.importorskip(frames)
    make = library.table if frames == "pyarrow" else library.DataFrame
    frame = make({"Text": SENTENCES, "label": ["x"] * 4})
    message = r"got a \w+ with the columns 'Text', 'label'; .* such as frame\['Text'\], or for"
    for use in (
        sentence_encoder.encode,
        text_classifier.predict,
        pair_classifier.predict,
        lambda frame: sentence_encoder.similarity(frame, "a dog"),
        lambda frame: list(sentence_encoder.encode_stream(frame)),
    ):
        with pytest.raises(InputError, match=message):
            use(frame)


def test_a_missing_value_of_a_column_is_told_with_its_row(sentence_encoder) -> None:
    pandas = pytest.importorskip("pandas")
    for missing in (None, float("nan"), pandas.NA):
        column = pandas.Series(["a dog", missing], dtype=object)
        with pytest.raises(InputError, match=r"sentence 1: got .*; expected a sentence.*fillna"):
            sentence_encoder.encode(column)
    vectors = sentence_encoder.encode(pandas.Series(["a dog", None]).fillna(""))
    assert np.abs(vectors[1]).max() == 0


@pytest.mark.parametrize("wrong", [{"text": SENTENCES}, 5, None])
def test_what_only_looks_like_a_list_is_refused(sentence_encoder, wrong: object) -> None:
    with pytest.raises(InputError, match="expected a list of sentences"):
        sentence_encoder.encode(wrong)
