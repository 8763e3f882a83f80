"""The page with two sentences, and with a search: similarity, label, words, results."""

from typing import Any

import pytest

from tests.service.browser.conftest import LABELS, SENTENCES, Explain, OpenPage, ask, wait_for_words

FIRST, SECOND = "A man is playing a guitar.", "A musician performs."
LINK = "#mode=two&first=A+man+is+playing+a+guitar.&second=A+musician+performs."


def values(page: Any, list_name: str) -> list[str]:
    return page.locator(f'ul[aria-label="{list_name}"] .value').all_inner_texts()


def influences(page: Any, side: str) -> list[str]:
    return page.locator(f'#pair [aria-label="{side} sentence"] .word').evaluate_all(LABELS)


def minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def direction(change: float) -> str:
    return "lowers" if change < 0 else "raises"


def test_two_sentences_can_be_typed_and_compared(open_page: OpenPage, explain: Explain) -> None:
    page = open_page("#mode=two&first=A+dog+runs.", ready=None)
    page.wait_for_selector("#model", state="visible")
    assert page.is_hidden("#details") and page.is_hidden("#problem")  # it waits for the second
    page.fill("#second", "A cat sleeps.")
    page.wait_for_selector("#pair", state="visible")
    page = open_page()
    assert page.is_hidden("#second")
    page.check("input[value=two]", force=True)
    page.fill("#first", FIRST)
    page.fill("#second", SECOND)
    page.click("#run")
    # The sentences of an example are compared first, and perhaps the first one with that example's
    # second one, which is longer.
    wait_for_words(page, "A", "man", "is", "playing", "a", "guitar", ".")
    page.locator('#pair [aria-label="Second sentence"] .word').nth(4).wait_for(state="detached")
    pair = explain(FIRST, SECOND)["pair"]
    assert page.inner_text("#similarity") == minus(f"{pair['similarity']:.2f}")
    expected = [minus(f"{cosine:.2f}") for cosine in pair["head_similarity"]]
    assert values(page, "Similarity per head") == expected


def test_words_that_carry_the_similarity_or_the_label_are_marked(
    open_page: OpenPage, explain: Explain
) -> None:
    page = open_page(LINK)
    answer = explain(FIRST, SECOND)
    for side, name in enumerate(["First", "Second"]):
        tokens = answer["sentences"][side]["tokens"]
        changes = answer["pair"]["similarity_influence"][side]
        assert influences(page, name) == [
            f"{token['text']}, {direction(change)} the cosine by {abs(change):.3f}"
            for token, change in zip(tokens, changes, strict=True)
        ]
    prediction = answer["prediction"]
    assert page.inner_text("#label") == prediction["label"]
    shown = values(page, "Probability of each label")
    for text, probability in zip(shown, prediction["probabilities"], strict=True):
        assert float(text.rstrip("%").strip()) == pytest.approx(100 * probability, abs=0.5)
    page.check("input[name=carries][value=label]", force=True)
    for side, name in enumerate(["First", "Second"]):
        directions = [text.split(", ")[-1].split()[0] for text in influences(page, name)]
        changes = prediction["label_influence"][side]
        assert directions == [direction(change) for change in changes]
    assert page.evaluate("document.activeElement.value") == "label"
    # Heads are shown for either sentence.
    row = '#words [aria-label="Head 1"] .word'
    assert page.locator(row).all_inner_texts() == ["A", "man", "is", "playing", "a", "guitar", "."]
    page.check("input[name=side][value='1']", force=True)
    assert page.locator(row).all_inner_texts() == ["A", "musician", "performs", "."]
    assert page.locator(".picture-words").first.inner_text().split()[::2][1] == "musician"


def test_a_search_lists_the_closest_sentences(open_page: OpenPage, service: str) -> None:
    query = "an animal is moving"
    page = open_page(f"#mode=search&first={query}", ready="#hits")
    hits = ask(f"{service}/search", query=query, top=10)["results"][0]["hits"]
    shown = page.locator("#hits .hit-text").all_inner_texts()
    assert shown == [hit["sentence"] for hit in hits] and set(shown) == set(SENTENCES)
    assert shown[0] == "An animal is moving quickly."
    scores = page.locator("#hits .score").all_inner_texts()
    assert scores == [minus(f"{hit['score']:.2f}") for hit in hits]
    page.click("#hits li >> nth=0 >> button")
    page.wait_for_selector("#pair", state="visible")
    assert page.input_value("#first") == "an animal is moving"
    assert page.input_value("#second") == "An animal is moving quickly."
    page.go_back()
    page.wait_for_selector("#hits", state="visible")
