"""What each head looked at: weights, offsets, and how they are shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from genpool.config import TextSettings
from genpool.encoder import ENCODERS
from genpool.inference.explanation import SHADES, Explanation
from genpool.pooling import POOLINGS
from genpool.text import Token

SENTENCE = "The red dog, not 2 men, runs."
EVIL = "<script>alert('x')</script> & \"quoted\" {braces} %s"

every_pair = pytest.mark.parametrize(
    ("pooling", "encoder"),
    [
        (pooling, encoder)
        for pooling, chosen in POOLINGS.items()
        for encoder in ("stacked-bilstm", "lstm", "cnn", "bag-of-words")
        if ENCODERS[encoder].has_gates or not chosen.needs_gates
    ],
)


def made_up(sentence: str, words: list[str], shares: list[list[float]]) -> Explanation:
    """An explanation with these shares (heads, tokens), spread over two dimensions."""
    tokens = [Token(word, 0, 0) for word in words]
    weights = np.array(shares, dtype=np.float32)[:, :, None] * np.array([0.5, 1.5], np.float32)
    return Explanation(sentence, tokens, weights)


class Page(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.inside: dict[str, str | None] | None = None
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = dict(attrs) if tag == "span" else None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.inside is not None:
            self.words.append((data, self.inside))
            self.inside = None


@every_pair
def test_weights_of_every_head_and_dimension_sum_to_one(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    found = model.explain(SENTENCE)
    heads = model.output_dim // model.encoder.output_dim
    assert found.weights.shape[:2] == (heads, 10) and found.weights.dtype == np.float32
    assert found.weights.shape[2] in (1, model.encoder.output_dim)
    assert np.abs(found.weights.sum(axis=1) - 1).max() <= 1e-5
    assert found.weights.min() >= 0
    assert found.token_weights.shape == (heads, 10)
    assert np.abs(found.token_weights.sum(axis=1) - 1).max() <= 1e-5


@every_pair
def test_weights_are_those_that_the_vector_was_made_with(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    weights = model.explain(SENTENCE).weights.astype(float)  # (heads, tokens, dim or 1)
    batch = model.text.batch([model.text.words(SENTENCE)])
    with torch.no_grad():
        states = model.encoder(model.embedding(batch), batch.mask).states[0].double().numpy()
    heads = (weights * states).sum(axis=1)  # (heads, dim)
    assert np.abs(heads.ravel() - model.encode(SENTENCE)).max() <= 1e-6


def test_mean_weighs_all_tokens_alike_and_last_the_last(make_encoder) -> None:
    mean = make_encoder("mean", "lstm").explain(SENTENCE)
    assert np.abs(mean.token_weights - 0.1).max() <= 1e-6
    last = make_encoder("last", "lstm").explain(SENTENCE)
    assert last.token_weights.tolist() == [[0] * 9 + [1]]
    both = make_encoder("last", "bilstm").explain(SENTENCE)
    assert both.token_weights.tolist() == [[0.5] + [0] * 8 + [0.5]]


def test_max_shows_the_token_that_each_dimension_came_from(make_encoder) -> None:
    model = make_encoder("max", "lstm")
    batch = model.text.batch([model.text.words(SENTENCE)])
    with torch.no_grad():
        states = model.encoder(model.embedding(batch), batch.mask).states[0]
    expected = torch.nn.functional.one_hot(states.argmax(dim=0), 10).T.numpy()  # (tokens, dim)
    assert np.array_equal(model.explain(SENTENCE).weights[0], expected)


def test_tokens_have_their_places_in_the_sentence(sentence_encoder) -> None:
    found = sentence_encoder.explain(SENTENCE)
    words = ["The", "red", "dog", ",", "not", "2", "men", ",", "runs", "."]
    assert [token.text for token in found.tokens] == words
    assert all(SENTENCE[token.start : token.end] == token.text for token in found.tokens)
    starts = [token.start for token in found.tokens]
    assert starts == sorted(starts) and starts[0] == 0 and found.tokens[-1].end == len(SENTENCE)
    assert found.sentence == SENTENCE


def test_sentence_ends_are_tokens_without_a_place(make_encoder) -> None:
    model = make_encoder(text=TextSettings(sentence_ends=True))
    found = model.explain("a dog")
    assert found.tokens == [
        Token("<s>", -1, -1),
        Token("a", 0, 1),
        Token("dog", 2, 5),
        Token("</s>", -1, -1),
    ]
    assert found.weights.shape[1] == 4 and (found.token_weights > 0).all()
    assert [token.text for token in model.explain("").tokens] == ["<s>", "</s>"]


def test_a_sentence_that_is_cut_is_explained_as_far_as_it_was_read(make_encoder) -> None:
    found = make_encoder(text=TextSettings(max_length=2)).explain("a dog runs")
    assert [token.text for token in found.tokens] == ["a", "dog"]
    assert np.abs(found.token_weights.sum(axis=1) - 1).max() <= 1e-6


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("sentence", ["", "   "])
def test_a_sentence_without_tokens_has_an_explanation_without_weights(
    make_encoder, pooling: str, sentence: str
) -> None:
    model = make_encoder(pooling)
    found = model.explain(sentence)
    heads = model.output_dim // model.encoder.output_dim
    assert found.tokens == [] and found.token_weights.shape == (heads, 0)
    assert str(found) == "(no tokens)"
    assert Page(found.to_html()).text.count("(no tokens)") == heads


def test_explaining_leaves_no_gradients_behind(make_encoder) -> None:
    for pooling in ("generalized", "max"):
        model = make_encoder(pooling)
        model.explain(SENTENCE)
        assert all(each.grad is None for each in model.parameters())


def test_a_model_in_double_precision_explains_alike(sentence_encoder) -> None:
    single = sentence_encoder.explain(SENTENCE).weights
    double = sentence_encoder.double().explain(SENTENCE).weights
    assert double.dtype == np.float32 and np.abs(single - double).max() <= 1e-5


def test_a_table_has_a_line_per_token_and_a_column_per_head() -> None:
    found = made_up("a dog runs", ["a", "dog", "runs"], [[0.25, 0.75, 0], [0.5, 0.25, 0.25]])
    assert str(found).splitlines() == [
        "        head 1    head 2",
        "a      0.250 ░   0.500 █",
        "dog    0.750 █   0.250 ▒",
        "runs   0.000     0.250 ▒",
    ]


def test_the_darkest_cell_of_each_head_is_its_top_token(sentence_encoder) -> None:
    found = sentence_encoder.explain(SENTENCE)
    lines = str(found).splitlines()[1:]
    assert len(lines) == 10
    for head, shares in enumerate(found.token_weights):
        cells = re.findall(rf"(\d\.\d{{3}}) ([{SHADES}])", lines[shares.argmax()] + " ")
        assert cells[head] == (f"{shares.max():.3f}", SHADES[-1])


def test_a_page_shows_the_sentence_once_per_head() -> None:
    found = made_up("a dog runs", ["a", "dog", "runs"], [[0.25, 0.75, 0], [0.5, 0.25, 0.25]])
    page = Page(found.to_html())
    assert [word for word, _ in page.words] == ["a", "dog", "runs"] * 2
    assert [attrs["title"] for _, attrs in page.words] == [
        "0.250",
        "0.750",
        "0.000",
        "0.500",
        "0.250",
        "0.250",
    ]
    assert "head 1" in page.text and "head 2" in page.text and "a dog runs" in page.text


def test_the_darker_a_word_on_the_page_the_more_weight_it_has() -> None:
    found = made_up("a b c", ["a", "b", "c"], [[0.2, 0.5, 0.3]])
    styles = [str(attrs["style"]) for _, attrs in Page(found.to_html()).words]
    dark = [float(re.findall(r",([\d.]+)\)", style)[0]) for style in styles]
    assert dark[1] == 0.85 and dark[0] < dark[2] < dark[1]
    assert "color:#fff" in styles[1] and "color:#fff" not in styles[0]


def test_a_page_escapes_every_word_and_the_sentence(sentence_encoder) -> None:
    found = sentence_encoder.explain(EVIL)
    source = found.to_html()
    page = Page(source)
    assert "script" not in page.tags and "<script" not in source
    assert EVIL in page.text
    words = [token.text for token in found.tokens]
    assert [word for word, _ in page.words] == words * 2
    clean = made_up("x", ["x"], [[1.0]]).to_html()
    assert set(page.tags) == set(Page(clean).tags)


def test_a_page_is_a_whole_html_document(sentence_encoder) -> None:
    source = sentence_encoder.explain(SENTENCE).to_html()
    assert source.startswith("<!doctype html>") and source.rstrip().endswith("</html>")
    assert 'charset="utf-8"' in source and "http" not in source
