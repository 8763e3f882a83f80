"""Explanations in the terminal, on a page and in a notebook."""

from __future__ import annotations

import re

import numpy as np

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.inference.explanation import LabelExplanation, PairExplanation
from tests.helpers.explanations import Page, made_up

SENTENCE = "The red dog, not 2 men, runs."
EVIL = "<script>alert('x')</script> & \"quoted\" {braces} %s"
SHARES = [[0.25, 0.75, 0], [0.5, 0.25, 0.25]]
PREDICTION = LabelExplanation(
    ("yes", "no"),
    np.array([0.75, 0.25]),
    (np.array([0.5, -0.25, 0.0]), np.array([0.125])),
)


def test_a_table_has_a_line_per_token_with_influence_before_weights_then_the_overlap() -> None:
    explanation = made_up("a dog runs", ["a", "dog", "runs"], SHARES, turns=[0, 60, 30])
    lines = str(explanation).splitlines()
    assert lines[:4] == [
        "        vector          head 1          head 2",
        "a        0.0       0.0   0.250     0.0   0.500",
        "dog     60.0 █    60.0 █ 0.750    60.0 █ 0.250",
        "runs    30.0 ▒    30.0 ▒ 0.000    30.0 ▒ 0.250",
    ]
    assert lines[-3:] == [
        "         head 1   head 2",
        "head 1     1.00     0.50",
        "head 2     0.50     1.00",
    ]
    alone = str(made_up("a dog runs", ["a", "dog", "runs"], SHARES[:1]))
    assert "Overlap" not in alone and "Degrees" in alone


def test_a_sentence_without_tokens_says_so(sentence_encoder: SentenceEncoder) -> None:
    explanation = sentence_encoder.explain("")
    assert str(explanation) == "(no tokens)"
    assert Page(explanation.to_html()).text.count("(no tokens)") == 1 + 2 * 2
    pair = sentence_encoder.explain_pair("", SENTENCE)
    assert "(no tokens)" in str(pair) and "(no tokens)" in pair.to_html()


def test_a_label_is_shown_with_its_probabilities_and_words() -> None:
    prediction = LabelExplanation(
        PREDICTION.labels, PREDICTION.probabilities, PREDICTION.influence[:1]
    )
    explanation = made_up("a dog runs", ["a", "dog", "runs"], SHARES, prediction=prediction)
    lines = str(explanation).splitlines()
    assert lines[0] == "label yes (yes 0.750, no 0.250)"
    assert lines[2].split()[:2] == ["vector", "yes"]
    assert "+0.500 █" in lines[3] and "-0.250 ▒" in lines[4]
    page = Page(explanation.to_html())
    assert "label yes" in page.text and "no 0.250" in page.text
    assert {attributes["title"] for _, attributes in page.words} >= {"+0.500", "-0.250"}


def test_a_pair_is_shown_as_two_tables() -> None:
    first = made_up("a b", ["a", "b"], [[0.5, 0.5]], turns=[60, 0])
    pair = PairExplanation(first, made_up("c", ["c"], [[1.0]], turns=[180]))
    assert str(pair).splitlines()[:6] == [
        "similarity 1.000 (head 1 1.000)",
        "",
        "    similarity",
        "a     +0.500 ░",
        "b     +0.000",
        "",
    ]
    assert "c     +2.000 █" in str(pair)


def test_a_page_shows_every_head_by_influence_and_by_weight() -> None:
    explanation = made_up("a dog runs", ["a", "dog", "runs"], SHARES, turns=[0, 60, 30])
    page = Page(explanation.to_html())
    assert [word for word, _ in page.words] == ["a", "dog", "runs"] * (1 + 2 * 2)
    titles = [attributes["title"] for _, attributes in page.words]
    assert titles[:3] == [f"turns the vector by {turn}°" for turn in ("0.0", "60.0", "30.0")]
    assert titles[4] == titles[7] == "turns the head by 60.0°, weight 0.750"
    for text in ("head 1", "head 2", "a dog runs", "by influence", "by weight", "0.50"):
        assert text in page.text


def test_the_darker_a_word_on_the_page_the_more_influence_it_has() -> None:
    explanation = made_up("a b c", ["a", "b", "c"], [[0.2, 0.5, 0.3]], turns=[20, 50, 30])
    styles = [str(attributes["style"]) for _, attributes in Page(explanation.to_html()).words]
    dark = [float(re.findall(r",([\d.]+)\)", style)[0]) for style in styles]
    for row in (dark[:3], dark[3:6], dark[6:]):  # of the vector, of the head, and by weight
        assert row[1] == 0.85 and row[0] < row[2] < row[1]
    assert "color:#fff" in styles[1] and "color:#fff" not in styles[0]


def test_words_that_work_against_a_pair_have_another_colour() -> None:
    first = made_up("a b c", ["a", "b", "c"], [[0.5, 0.5, 0]], turns=[60, 0, 0])
    pair = PairExplanation(first, made_up("d", ["d"], [[1.0]], turns=[180]), PREDICTION)
    words = Page(pair.to_html()).words
    styles = {attributes["title"]: str(attributes["style"]) for _, attributes in words}
    blue, orange = styles["+0.125"], styles["-0.250"]
    assert blue.split("(")[1].split(",")[:3] != orange.split("(")[1].split(",")[:3]


def test_a_page_escapes_every_word_the_sentence_and_the_label(
    sentence_encoder: SentenceEncoder,
) -> None:
    explanation = sentence_encoder.explain(EVIL)
    source = explanation.to_html()
    page = Page(source)
    assert "script" not in page.tags and "<script" not in source
    assert EVIL in page.text
    words = [token.text for token in explanation.tokens]
    assert [word for word, _ in page.words] == words * (1 + 2 * 2)
    clean = made_up("x", ["x"], [[1.0], [1.0]]).to_html()
    assert set(page.tags) == set(Page(clean).tags)
    evil_label = LabelExplanation((EVIL, "b"), np.array([0.9, 0.1]), (np.array([0.1]),))
    labelled = made_up("x", ["x"], [[1.0]], prediction=evil_label).to_html()
    assert "<script" not in labelled and EVIL in Page(labelled).text
    pair = sentence_encoder.explain_pair(EVIL, EVIL).to_html()
    assert "<script" not in pair and "script" not in Page(pair).tags


def test_a_page_is_a_complete_document_and_a_notebook_gets_its_content(
    sentence_encoder: SentenceEncoder,
    pair_classifier: PairClassifier,
    text_classifier: TextClassifier,
) -> None:
    for explanation in (
        sentence_encoder.explain(SENTENCE),
        text_classifier.explain(SENTENCE),
        pair_classifier.explain(SENTENCE, "a dog"),
    ):
        source = explanation.to_html()
        assert source.startswith("<!doctype html>") and source.rstrip().endswith("</html>")
        assert 'charset="utf-8"' in source and "http" not in source
        part = explanation._repr_html_()
        assert part in source and "<html" not in part and "<body" not in part
