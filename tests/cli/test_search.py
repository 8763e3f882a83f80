"""The command `search`: a folder made by `encode`, and the sentences nearest to a query."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier
from genpool.model.reference import ModelReference
from genpool.search import index_writer

MODEL = "runs/rules/best"
LINES = ["A dog runs.", "", "An animal sleeps."]


def cosines(place: Path, query: str) -> list[float]:
    encoder = PairClassifier.from_pretrained(place / MODEL).encoder
    return [float(cosine) for cosine in encoder.similarity(query, LINES)[0]]


def rows_of(out: str) -> list[tuple[float, int, str]]:
    fields = [line.split("\t") for line in out.splitlines()]
    return [(float(score), int(row), sentence) for score, row, sentence in fields]


@pytest.mark.parametrize("options", [[], ["--normalize"]])
def test_what_encode_wrote_is_searched_with_its_own_model(genpool, place, options, monkeypatch):
    said = genpool("encode", MODEL, "sentences.txt", "-o", "my.index/", *options).ok()
    assert said.out == "3 vectors of 20 dimensions: my.index/\n"
    monkeypatch.chdir(place / "runs")  # the index knows where its model is
    said = genpool("search", "../my.index", "A dog sleeps.").ok()
    expected = sorted(enumerate(cosines(place, "A dog sleeps.")), key=lambda pair: -pair[1])
    found = rows_of(said.out)
    assert [(row, text) for _, row, text in found] == [(row, LINES[row]) for row, _ in expected]
    assert [score for score, _, _ in found] == pytest.approx([c for _, c in expected], abs=1e-4)


def test_queries_of_standard_input_are_answered_in_their_order(genpool, place):
    stdin = b"An animal sleeps.\n\nA dog runs.\n"
    said = genpool("search", "index", "-", "--top", 1, stdin=stdin).ok()
    assert said.out.splitlines() == [
        "query: An animal sleeps.",
        "1.0000\t2\tAn animal sleeps.",
        "query: ",
        "query: A dog runs.",
        "1.0000\t0\tA dog runs.",
    ]
    assert said.err == "standard input, line 2: a query without words, no hits\n"


def test_an_empty_index_is_told(genpool, place):
    (place / "nothing.txt").write_text("")
    assert genpool("encode", MODEL, "nothing.txt", "-o", "empty/").code == 0
    for options, out in (([], ""), (["--json"], '{"query": "A dog runs.", "hits": []}\n')):
        said = genpool("search", "empty", "A dog runs.", *options).ok()
        assert said.out == out and said.err.startswith("empty is empty")


def test_json_is_one_object_a_query(genpool, place):
    queries = [f"A dog runs {number}" for number in range(70)]  # more than share one pass
    said = genpool("search", "index", "-", "--json", stdin="\n".join(queries).encode()).ok()
    found = [json.loads(line) for line in said.out.splitlines()]
    assert [hits["query"] for hits in found] == queries
    for hits in found[::23]:
        expected = cosines(place, hits["query"])
        assert {hit["row"] for hit in hits["hits"]} == {0, 1, 2}
        for hit in hits["hits"]:
            assert hit.keys() == {"row", "score", "sentence"}
            assert hit["score"] == pytest.approx(expected[hit["row"]], abs=1e-5)
            assert hit["sentence"] == LINES[hit["row"]]


def test_a_sentence_of_several_lines_is_one_line(genpool, place):
    encoder = PairClassifier.from_pretrained(place / MODEL).encoder
    text = "A dog\nruns\r\nnaïve \ud83d 🙂"
    with index_writer("lines", 20, ModelReference.of(encoder, MODEL)) as write:
        write([text], np.asarray(encoder.encode(["A dog runs."])))
    said = genpool("search", "lines", "A dog runs.").ok()
    assert said.out == "1.0000\t0\tA dog runs naïve ? 🙂\n"
    assert json.loads(genpool("search", "lines", "a", "--json").out)["hits"][0][
        "sentence"
    ] == text.replace("\ud83d", "?")


def test_a_model_that_moved_is_asked_for(genpool, place):
    shutil.copytree(place / MODEL, place / "model")
    assert genpool("encode", "model", "sentences.txt", "-o", "mine").code == 0
    (place / "model").rename(place / "moved")
    genpool("search", "mine", "a").refused(
        "mine was made with the model", "there is no such folder", "--model FOLDER"
    )
    assert genpool("search", "mine", "a", "--model", "moved").code == 0


@pytest.mark.parametrize("output", ["mine/", "mine.npy"])
def test_a_second_encode_says_what_it_replaces(genpool, place, output):
    first = genpool("encode", MODEL, "sentences.txt", "-o", output)
    assert first.code == 0 and "exists" not in first.err
    (place / "one.txt").write_text("A dog.\n")
    second = genpool("encode", MODEL, "one.txt", "-o", output)
    assert second.code == 0 and second.out.startswith("1 vector of 20 dimensions")
    assert f"{output} exists; it is replaced when this run is complete" in second.err
