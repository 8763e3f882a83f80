"""The character CNN: its equation, and that a word's vector depends only on the word."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.overrides import TorchFunctionMode

from genpool.embedding import CharacterCNN
from genpool.embedding.characters import CharacterPadding, character_vectors, filter_reach
from genpool.errors import InputError

from . import reference

CHARACTERS = 30


def lively(
    widths: tuple[int, ...] = (1, 3, 5),
    maps: int = 4,
    dim: int = 3,
    padding: CharacterPadding = "both",
) -> CharacterCNN:
    """A small character CNN whose character vectors are as large as its filters."""
    torch.manual_seed(0)
    cnn = CharacterCNN(CHARACTERS, dim, widths, maps, padding=padding)
    torch.nn.init.normal_(cnn.letters)
    return cnn


def vectors_of(cnn: CharacterCNN, words: list[list[int]]) -> Tensor:
    ids = torch.tensor([character for word in words for character in word], dtype=torch.long)
    return cnn(ids, torch.tensor([len(word) for word in words], dtype=torch.long))


def random_words(*lengths: int) -> list[list[int]]:
    random = np.random.default_rng(0)
    return [random.integers(0, CHARACTERS, length).tolist() for length in lengths]


WORDS = random_words(4, 1, 2, 3, 11, 0, 5, 1)


@pytest.mark.parametrize(
    ("widths", "padding"),
    [
        ((1, 3, 5), "both"),
        ((7, 1), "both"),
        ((1, 3, 5), "right"),
        ((6, 2), "right"),
    ],
)
def test_vectors_are_those_of_the_equation(
    widths: tuple[int, ...], padding: CharacterPadding
) -> None:
    cnn = lively(widths, padding=padding).double()
    vectors = vectors_of(cnn, WORDS).detach().numpy()
    table = cnn.letters.detach().numpy()
    filters = [weights.detach().numpy() for weights in cnn.filters]
    expected = [
        reference.character_vector(table[np.array(word, int)], filters, padding) for word in WORDS
    ]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-12)
    assert np.max(expected) > 0.1


def test_a_hand_worked_word() -> None:
    # One map of width 3 that counts left - 2 * middle + right, on the characters 1, 5, 2:
    # 0 - 2 + 5 = 3, 1 - 10 + 2 = -7, 5 - 4 + 0 = 1; the largest, after ReLU, is 3.
    characters = torch.tensor([[1.0], [5.0], [2.0]])
    filters = [torch.tensor([[[1.0, -2.0, 1.0]]])]
    assert character_vectors(characters, torch.tensor([3]), filters).tolist() == [[3.0]]
    assert filter_reach(4, "both") == (1, 2) and filter_reach(4, "right") == (0, 3)
    # The same map, starting at each character: 1 - 10 + 2 = -7, 5 - 4 + 0 = 1, 2 - 0 + 0 = 2.
    vectors = character_vectors(characters, torch.tensor([3]), filters, "right")
    assert vectors.tolist() == [[2.0]]


@pytest.mark.parametrize("words", [[], [[]], [[], []]])
def test_no_characters_at_all_give_zeros(words: list[list[int]]) -> None:
    assert torch.equal(vectors_of(lively(), words), torch.zeros(len(words), 12))


@pytest.mark.parametrize("padding", ["both", "right"])
@settings(max_examples=40, deadline=None, database=None)
@given(
    before=st.lists(st.lists(st.integers(0, CHARACTERS - 1), max_size=9), max_size=6),
    after=st.lists(st.lists(st.integers(0, CHARACTERS - 1), max_size=30), max_size=6),
)
def test_same_vector_whatever_words_come_before_and_after(
    padding: CharacterPadding, before: list[list[int]], after: list[list[int]]
) -> None:
    cnn, word = lively(padding=padding), [3, 1, 4]
    vector = vectors_of(cnn, [*before, word, *after])[len(before)]
    torch.testing.assert_close(vector, vectors_of(cnn, [word])[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("padding", ["both", "right"])
def test_gradients_are_those_of_finite_differences(padding: CharacterPadding) -> None:
    random = torch.Generator().manual_seed(0)
    counts = torch.tensor([3, 0, 1, 2])
    characters = torch.randn(6, 2, dtype=torch.float64, generator=random).requires_grad_()
    filters = [
        torch.randn(2, 2, width, dtype=torch.float64, generator=random).requires_grad_()
        for width in (1, 3)
    ]
    assert torch.autograd.gradcheck(
        lambda vectors, *weights: character_vectors(vectors, counts, weights, padding),
        (characters, *filters),
    )


class Largest(TorchFunctionMode):
    """Remembers the number of elements of the largest tensor that any call returned."""

    elements = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple) else (result,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().size() // 4)
        return result


def test_a_word_of_100_000_characters_takes_memory_for_its_characters_only() -> None:
    # Padding 500 short words to the long one would take 500 times as much.
    cnn, words = lively(maps=2), [random_words(100_000)[0], *random_words(*[6] * 500)]
    with torch.no_grad(), Largest() as largest:
        vectors = vectors_of(cnn, words)
    assert vectors.shape == (501, 6) and vectors.isfinite().all()
    assert largest.elements < 1.2 * 100_000 * 6


def check_gaussian(weights: Tensor) -> None:
    """Mean 0 and standard deviation 0.01, to five standard errors, and the shares of a Gaussian."""
    values = weights.detach().double()
    assert abs(values.std().item() - 0.01) < 5 * 0.01 / math.sqrt(2 * values.numel())
    assert abs(values.mean().item()) < 5 * 0.01 / math.sqrt(values.numel())
    assert (values.abs() < 0.01).double().mean().item() == pytest.approx(0.6827, abs=0.04)


def test_initial_filters_are_those_of_pytorchs_convolution_or_gaussian() -> None:
    torch.manual_seed(0)
    check_gaussian(CharacterCNN(4000).letters)
    for weights in CharacterCNN(50).filters:
        bound = 1 / math.sqrt(15 * weights.shape[2])  # uniform within 1 / sqrt(dim * width)
        assert 0.98 * bound < weights.abs().max().item() <= bound
    for weights in CharacterCNN(50, initialization="gaussian").filters:
        check_gaussian(weights)


def test_defaults_are_the_papers() -> None:
    cnn = CharacterCNN(50)
    assert cnn.letters.shape == (50, 15)
    assert [tuple(weights.shape) for weights in cnn.filters] == [
        (100, 15, 1),
        (100, 15, 3),
        (100, 15, 5),
    ]
    assert cnn.output_dim == 300
    assert sum(weights.numel() for weights in cnn.parameters()) == 50 * 15 + 100 * 15 * (1 + 3 + 5)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"characters": 0}, "characters is 0; expected .* 1 or more"),
        ({"initialization": "gausian"}, "unknown initialization 'gausian'.*'gaussian'"),
        ({"padding": "left"}, "unknown character padding 'left'.*both, right"),
        ({"widths": (3, 0)}, "widths is 0"),
        ({"widths": ()}, "number_of_widths is 0"),
    ],
)
def test_options_that_are_not_possible_are_refused(options: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        CharacterCNN(**{"characters": 9, **options})


def test_many_words_at_inference_are_computed_in_parts_with_the_same_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    cnn = CharacterCNN(20, dim=4, widths=(1, 3), maps=5)
    counts = torch.tensor([0, 3, 90, 0, 1, 30, 31, 1, 12, 0])
    ids = torch.randint(1, 20, (int(counts.sum()),))
    expected = cnn(ids, counts).detach()
    parts: list[int] = []
    together = cnn._together

    def counted(ids: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        parts.append(len(ids))
        return together(ids, counts)

    monkeypatch.setattr("genpool.embedding.characters.CHARACTERS_TOGETHER", 32)
    monkeypatch.setattr(cnn, "_together", counted)
    with torch.no_grad():
        torch.testing.assert_close(cnn(ids, counts), expected, rtol=0, atol=1e-6)
    assert sum(parts) == len(ids) and len(parts) > 3
    assert max(parts) < 32 + 90  # a part ends with the word that reaches the limit
