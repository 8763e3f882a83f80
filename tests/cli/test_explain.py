"""genpool explain and genpool demo: what they print and write."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from genpool import PairClassifier
from genpool.cli.explain import explain_sentences

MODEL = "runs/rules/best"


@pytest.fixture(scope="session")
def model(rules_run: Path) -> PairClassifier:
    return PairClassifier.from_pretrained(rules_run / "best")


def test_a_line_per_token_and_columns_for_the_vector_and_each_head(genpool, place, model):
    said = genpool("explain", "A dog runs.", "--model", MODEL, "--html", "page.html").ok()
    head, *lines = said.out.splitlines()
    assert head.split() == ["vector", "head", "1", "head", "2"]
    assert [line.split()[0] for line in lines[:4]] == ["A", "dog", "runs", "."]
    expected = model.encoder.explain("A dog runs.")
    values = np.array([re.findall(r"\d+\.\d+", line) for line in lines[:4]], dtype=float)
    assert np.abs(values[:, 0] - expected.vector_influence).max() <= 0.051
    assert np.abs(values[:, [1, 3]].T - expected.head_influence).max() <= 0.051
    assert np.abs(values[:, [2, 4]].T - expected.token_weights).max() < 1e-3
    assert lines[-1] == "page: page.html"
    page = (place / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "<th>head 2</th>" in page


def test_two_sentences_are_compared(genpool, place, model):
    said = genpool("explain", "A dog runs.", "An animal runs.", "--model", MODEL).ok()
    expected = model.explain("A dog runs.", "An animal runs.")
    assert said.out == f"{expected}\n"
    assert f"similarity {expected.similarity:.3f}" in said.out
    [label] = model.predict([("A dog runs.", "An animal runs.")])
    assert f"label {label}" in said.out


def test_the_embedded_classifier_names_the_word_that_decides(genpool):
    said = genpool("explain", "A man is eating.", "A man is asleep.", "--nli").ok()
    assert "label contradiction" in said.out
    second = said.out.split("\n\n")[2].splitlines()
    decisive = max(second[1:], key=lambda line: float(re.findall(r"[+-]\d\.\d+", line)[1]))
    assert decisive.split()[0] == "asleep"


def test_a_picture_of_two_sentences_has_a_panel_for_each(genpool, place):
    pytest.importorskip("matplotlib")
    for number, sentences in enumerate([["A dog runs."], ["A dog runs.", "An animal runs."]]):
        said = genpool("explain", *sentences, "--model", MODEL, "--heatmap", f"{number}.svg").ok()
        assert said.out.endswith(f"picture: {number}.svg\n")
    one, two = ((place / name).read_text() for name in ("0.svg", "1.svg"))
    assert len(two) > len(one)


def test_a_model_for_single_texts_explains_its_label(text_classifier, pair_classifier):
    assert explain_sentences(text_classifier, ["a dog"]).prediction is not None
    assert explain_sentences(text_classifier, ["a dog", "a man"]).prediction is None
    assert explain_sentences(pair_classifier, ["a dog"]).prediction is None
    assert explain_sentences(pair_classifier, ["a dog", "a man"]).prediction is not None


def test_the_demo_names_the_words_that_decide(genpool):
    said = genpool("demo").ok()
    assert re.search(r"A dog is asleep\.  contradiction, because of '\w+' and 'asleep'", said.out)
