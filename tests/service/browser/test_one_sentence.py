"""The page with one sentence: words under heads, the word in every head, overlap, dimensions."""

import base64
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.service.browser.conftest import LABELS, Explain, OpenPage, wait_for_words

DOG = "A dog runs."
LINK = "#first=A+dog+runs."


def words(page: Any, row: str) -> list[str]:
    return page.locator(f'#words [role=group][aria-label="{row}"] .word').all_inner_texts()


def row_names(page: Any) -> list[str]:
    return page.locator("#words .head-name strong").all_inner_texts()


def described(page: Any, row: str) -> list[str]:
    """What the words of a row say of their value, e.g. 12.3°."""
    buttons = page.locator(f'#words [role=group][aria-label="{row}"] .word')
    return [text.rpartition(", ")[2] for text in buttons.evaluate_all(LABELS)]


def degrees(value: float) -> str:
    return f"{value:.1f}°"


def test_a_sentence_is_explained_however_it_is_given(open_page: OpenPage, explain: Explain) -> None:
    page = open_page()  # a first visit shows an example
    (explained,) = explain(page.input_value("#first"))["sentences"]
    heads = [f"Head {head + 1}" for head in range(len(explained["head_weights"]))]
    assert row_names(page) == ["Sentence", *heads]
    assert words(page, "Head 1") == [token["text"] for token in explained["tokens"]]
    assert f"{len(heads)} heads of 512 dimensions" in page.inner_text("#model")
    page.fill("#first", "")
    page.wait_for_selector("#details", state="hidden")
    page.type("#first", DOG)
    wait_for_words(page, "A", "dog", "runs", ".")  # whoever types slowly sees a part of it first
    (explained,) = explain(DOG)["sentences"]
    assert words(page, "Sentence") == ["A", "dog", "runs", "."]
    assert described(page, "Sentence") == [degrees(turn) for turn in explained["vector_influence"]]
    for head, turns in enumerate(explained["head_influence"]):
        assert described(page, f"Head {head + 1}") == [degrees(turn) for turn in turns]
    page.fill("#first", "A cat sleeps.")
    page.click("#run")  # without waiting
    wait_for_words(page, "A", "cat", "sleeps", ".")
    page = open_page(LINK)
    page.click("#examples button >> nth=1")
    sentence = "The price of oil fell sharply after the announcement."
    assert page.input_value("#first") == sentence
    wait_for_words(page, *sentence.rstrip(".").split(), ".")
    page.go_back()
    wait_for_words(page, "A", "dog", "runs", ".")
    assert page.input_value("#first") == DOG
    page.fill("#first", '<script>alert(1)</script> <img src=x onerror="alert(2)"> dog')
    page.locator("#words .word", has_text="onerror").first.wait_for()
    assert page.locator("main script, main img").count() == 0  # markup is shown as text
    assert "<script>" in words(page, "Head 1")


def test_words_can_be_coloured_by_weight(open_page: OpenPage, explain: Explain) -> None:
    page = open_page(LINK)
    page.check("input[name=by][value=weight]", force=True)
    (explained,) = explain(DOG)["sentences"]
    assert "Sentence" not in row_names(page)  # a sentence vector has no weights of its own
    for head, shares in enumerate(explained["head_weights"]):
        texts = described(page, f"Head {head + 1}")
        values = [float(text.rstrip("%").strip()) for text in texts]
        np.testing.assert_allclose(values, 100 * np.array(shares), atol=0.5)
        shades = page.locator(f'#words [aria-label="Head {head + 1}"] .word').evaluate_all(
            "nodes => nodes.map(node => getComputedStyle(node).backgroundColor)"
        )
        assert shades[int(np.argmax(shares))] == "rgb(18, 74, 153)"  # the top word is the darkest


def test_heads_are_chosen_and_compared(open_page: OpenPage, explain: Explain) -> None:
    page = open_page(LINK)
    page.click("#heads >> text=Head 2")
    assert row_names(page) == ["Head 2"]
    page.click("#heads >> text=Head 4")
    assert row_names(page) == ["Head 2", "Head 4", "Difference"]
    turns = np.array(explain(DOG)["sentences"][0]["head_influence"])
    shares = turns / turns.sum(axis=1, keepdims=True)
    for text, difference in zip(described(page, "Difference"), shares[1] - shares[3], strict=True):
        head = 2 if difference > 0 else 4
        assert text == f"{100 * abs(difference):.1f} points more in head {head}"
    page.click("#heads >> text=Head 1")  # the first of the two makes room
    assert row_names(page) == ["Head 4", "Head 1", "Difference"]
    page.click("#heads >> text=All heads")
    assert row_names(page)[0] == "Sentence"
    overlap = explain(DOG)["sentences"][0]["head_overlap"]
    for one, other in [(0, 1), (2, 3), (3, 0)]:
        shown = page.inner_text(f'#overlap [data-pair="{one},{other}"]')
        assert shown == f"{overlap[one][other]:.2f}"
    page.click('#overlap [data-pair="0,2"]')
    assert row_names(page) == ["Head 1", "Head 3", "Difference"]
    assert page.evaluate("document.activeElement.dataset.pair") == "0,2"
    page.keyboard.press("Enter")
    assert row_names(page)[0] == "Sentence"


@pytest.mark.parametrize("way", ["pointer", "keyboard"])
def test_a_word_shows_its_share_in_every_head(
    open_page: OpenPage, explain: Explain, way: str
) -> None:
    page = open_page(LINK)
    row = page.locator('#words [aria-label="Sentence"]')
    if way == "pointer":
        row.locator("text=dog").hover()
    else:
        row.locator(".word").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        focused = page.evaluate("document.activeElement.parentElement.ariaLabel")
        assert focused == "Head 1"
    (explained,) = explain(DOG)["sentences"]
    assert page.inner_text("#word mark") == "dog"
    assert page.locator("#words .word.marked").all_inner_texts() == ["dog"] * 5
    values = page.locator("#word tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('.value')].map(cell => cell.textContent))"
    )
    assert values[0] == [degrees(explained["vector_influence"][1])]
    for head, (turn, share) in enumerate(values[1:]):
        assert turn == degrees(explained["head_influence"][head][1])
        expected = 100 * explained["head_weights"][head][1]
        assert float(share.rstrip("%").strip()) == pytest.approx(expected, abs=0.5)


CIVIDIS_ENDS = ([0, 34, 78], [254, 232, 56])
PIXELS = """(canvas, [tokens, dimensions]) => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const middle = (index, count, size) => Math.floor(((index + 0.5) / count) * size);
    const cell = (token, dimension) => 4 * (middle(token, tokens, canvas.height) * canvas.width
                                            + middle(dimension, dimensions, canvas.width));
    return Array.from({length: tokens}, (_, token) =>
        Array.from({length: dimensions}, (_, dimension) =>
            [...data.slice(cell(token, dimension), cell(token, dimension) + 3)]));
}"""


def drawn(page: Any, number: int, shape: tuple[int, int]) -> np.ndarray:
    """The colours (tokens, dimensions, 3) in the middle of every cell of a picture."""
    return np.array(page.locator("canvas.picture").nth(number).evaluate(PIXELS, list(shape)))


def dimension_bytes(explained: dict[str, Any]) -> np.ndarray:
    packed = explained["dimension_weights"]
    raw = np.frombuffer(base64.b64decode(packed["data"]), np.uint8)
    return raw.reshape(packed["shape"])


def test_the_picture_shows_the_weight_of_every_word_in_every_dimension(
    open_page: OpenPage, explain: Explain
) -> None:
    page = open_page(f"{LINK}&order=stored")
    weights = dimension_bytes(explain(DOG)["sentences"][0])
    heads, tokens, dimensions = weights.shape
    assert page.locator("canvas.picture").count() == heads
    colors = drawn(page, 2, (tokens, dimensions))
    # The more weight, the more red and green: the order of the colours is that of the weights.
    brightness = colors[..., :2].sum(axis=-1)
    order = np.argsort(weights[2].ravel(), kind="stable")
    assert (np.diff(brightness.ravel()[order]) >= -1).all()
    assert len(np.unique(brightness)) > 50
    darkest, brightest = CIVIDIS_ENDS
    assert np.abs(colors[weights[2] == 0] - darkest).max(initial=0) <= 1
    assert np.abs(colors[weights[2] == 255] - brightest).max(initial=0) <= 1


def test_grouped_dimensions_are_those_that_a_word_leads(
    open_page: OpenPage, explain: Explain
) -> None:
    page = open_page(LINK)
    weights = dimension_bytes(explain(DOG)["sentences"][0])
    counts = np.bincount(weights[0].argmax(axis=0), minlength=weights.shape[1])
    labels = page.locator(".picture-words").first.locator("small").all_inner_texts()
    assert [int(label) for label in labels] == counts.tolist()
    brightness = drawn(page, 0, weights.shape[1:])[..., :2].sum(axis=-1)
    edges = np.cumsum([0, *counts])
    for token, (start, end) in enumerate(pairwise(edges)):
        block = brightness[:, start:end]
        assert (block[token] >= block.max(axis=0)).all()


def answer_of(tokens: list[str], weights: np.ndarray) -> dict[str, Any]:
    """An answer of /explain for words of one character, with weights (heads, words, dim)."""
    heads, count, _ = weights.shape
    rows = [[1 / max(count, 1)] * count] * heads
    sentence = {
        "sentence": " ".join(tokens),
        "tokens": [
            {"text": text, "start": 2 * place, "end": 2 * place + 1}
            for place, text in enumerate(tokens)
        ],
        "truncated": False,
        "vector_influence": [1.0] * count,
        "head_influence": rows,
        "head_weights": rows,
        "head_overlap": np.eye(heads).tolist(),
        "dimension_weights": {
            "shape": weights.shape,
            "scale": 1.0,
            "data": base64.b64encode(weights.tobytes()).decode(),
        },
    }
    return {"model": "made up", "sentences": [sentence], "pair": None, "prediction": None}


def answer_with(page: Any, answer: dict[str, Any]) -> None:
    page.route("**/explain", lambda route: route.fulfill(json=answer))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_picture_is_legible_with_600_dimensions(open_page: OpenPage, width: int) -> None:
    tokens, dimensions = 12, 600
    generator = np.random.default_rng(0)
    weights = generator.integers(0, 255, (1, tokens, dimensions), dtype=np.uint8)
    answer = answer_of(list("abcdefghijkl"), weights)
    page = open_page(
        f"{LINK}&order=stored", width=width, prepare=lambda page: answer_with(page, answer)
    )
    box = page.locator("canvas.picture").bounding_box()
    assert box["width"] >= dimensions  # a column for every dimension
    assert box["height"] / tokens >= 12  # and a line of text for every word
    brightness = drawn(page, 0, (tokens, dimensions))[..., :2].sum(axis=-1)
    order = np.argsort(weights[0].ravel(), kind="stable")
    assert (np.diff(brightness.ravel()[order]) >= -1).all()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_arrow_keys_read_single_weights(open_page: OpenPage, explain: Explain) -> None:
    page = open_page(f"{LINK}&order=stored&heads=2")
    explained = explain(DOG)["sentences"][0]
    page.locator("canvas.picture").focus()
    for key in ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"]:
        page.keyboard.press(key)
    weight = dimension_bytes(explained)[1, 1, 2] / 255 * explained["dimension_weights"]["scale"]
    assert page.inner_text(".readout") == f"dog, dimension 2: weight {weight:.2f}"
    assert page.inner_text("#word mark") == "dog"


def test_a_link_shows_the_same_to_somebody_else(open_page: OpenPage) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.fill("#first", "Örjan & naïve cats + 1 % of #5?")
    wait_for_words(page, "Örjan", "&", "naïve", "cats", "+", "1", "%", "of", "#", "5", "?")
    page.check("input[name=by][value=weight]", force=True)
    page.click("#heads >> text=Head 3")
    page.click("#heads >> text=Head 2")
    page.locator("#words .word >> text=cats").first.click()
    page.wait_for_url("**/*word=*")
    page.click("#share")
    page.wait_for_selector("#share >> text=Link copied")
    address = page.evaluate("navigator.clipboard.readText()")
    assert address == page.url
    other = open_page(address[address.index("#") :])
    assert other.input_value("#first") == page.input_value("#first")
    assert row_names(other) == ["Head 3", "Head 2", "Difference"]
    assert other.inner_text("#words") == page.inner_text("#words")
    assert other.inner_text("#word") == page.inner_text("#word")
    assert other.is_checked("input[name=by][value=weight]")


@pytest.mark.parametrize(
    "hash", ["#heads=9,0,x&by=none&word=77&mode=?", "#mode=search&order=1", "#%E0%A4%A", "#&&==&"]
)
def test_an_address_that_makes_no_sense_still_shows_a_page(open_page: OpenPage, hash: str) -> None:
    page = open_page(hash, ready=None)
    page.wait_for_selector("#details:visible, #hits:visible")
    assert page.is_hidden("#problem")


def test_no_words_a_cut_text_with_ends_and_scalar_weights_are_shown(open_page: OpenPage) -> None:
    empty = answer_of([], np.zeros((2, 0, 5), np.uint8))
    page = open_page(prepare=lambda page: answer_with(page, empty))
    assert page.inner_text("#words") == "This sentence has no words."
    assert page.is_hidden("#overlap-card") and page.is_hidden("#dimensions-card")
    answer = answer_of(["<s>", "a", "</s>"], np.full((2, 3, 1), 128, np.uint8))
    [sentence] = answer["sentences"]
    sentence["truncated"] = True
    for token in (sentence["tokens"][place] for place in (0, 2)):
        token["start"] = token["end"] = -1
    page = open_page(prepare=lambda page: answer_with(page, answer))
    assert words(page, "Head 2") == ["<s>", "a", "</s>"]
    assert page.locator('#words [aria-label="Head 2"] .edge').count() == 2
    assert page.is_hidden("#dimensions-card")  # scalar weights have no picture
    assert "words were read." in page.inner_text("#measure")


def test_a_model_that_classifies_texts_shows_the_label(open_page: OpenPage) -> None:
    answer = answer_of(["a", "b"], np.zeros((2, 2, 5), np.uint8))
    answer["prediction"] = {
        "label": "good",
        "labels": ["bad", "good"],
        "probabilities": [0.2, 0.8],
        "tokens": [answer["sentences"][0]["tokens"]],
        "label_influence": [[-0.05, 0.3]],
    }
    page = open_page(prepare=lambda page: answer_with(page, answer))
    assert page.inner_text("#label") == "good"
    assert page.locator("#pair .word").evaluate_all(LABELS) == [
        "a, lowers its probability by 5.0\u202f%",
        "b, raises its probability by 30\u202f%",
    ]
    assert page.locator("#similarity").count() == 0
