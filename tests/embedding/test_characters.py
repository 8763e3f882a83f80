"""The character CNN: its equation, and that a word's vector is the word's own affair."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.overrides import TorchFunctionMode

from genpool.embedding import CharacterCNN
from genpool.embedding.characters import character_vectors
from genpool.errors import InputError

from . import reference

LETTERS = 30


def lively(widths: tuple[int, ...] = (1, 3, 5), maps: int = 4, dim: int = 3) -> CharacterCNN:
    """A small character CNN whose letters are as large as its filters."""
    torch.manual_seed(0)
    cnn = CharacterCNN(LETTERS, dim, widths, maps)
    torch.nn.init.normal_(cnn.letters)
    return cnn


def spelled(cnn: CharacterCNN, words: list[list[int]]) -> Tensor:
    letters = torch.tensor([letter for word in words for letter in word], dtype=torch.long)
    return cnn(letters, torch.tensor([len(word) for word in words], dtype=torch.long))


def random_words(*lengths: int) -> list[list[int]]:
    random = np.random.default_rng(0)
    return [random.integers(0, LETTERS, length).tolist() for length in lengths]


WORDS = random_words(4, 1, 2, 3, 11, 0, 5, 1)


@pytest.mark.parametrize("widths", [(1, 3, 5), (1,), (7,), (5, 1)])
def test_vectors_are_those_of_the_equation(widths: tuple[int, ...]) -> None:
    cnn = lively(widths).double()
    vectors = spelled(cnn, WORDS).detach().numpy()
    table = cnn.letters.detach().numpy()
    filters = [each.detach().numpy() for each in cnn.filters]
    expected = [reference.spelled_vector(table[np.array(word, int)], filters) for word in WORDS]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-12)
    assert np.max(expected) > 0.1


def test_a_hand_worked_word() -> None:
    # One map of width 3 that counts left - 2 * middle + right, on the letters 1, 5, 2:
    # 0 - 2 + 5 = 3, 1 - 10 + 2 = -7, 5 - 4 + 0 = 1; the largest, after ReLU, is 3.
    letters = torch.tensor([[1.0], [5.0], [2.0]])
    filters = [torch.tensor([[[1.0, -2.0, 1.0]]])]
    assert character_vectors(letters, torch.tensor([3]), filters).tolist() == [[3.0]]


def test_relu_keeps_what_is_below_zero_at_zero() -> None:
    filters = [torch.tensor([[[-1.0]]])]
    assert character_vectors(torch.ones(2, 1), torch.tensor([2]), filters).tolist() == [[0.0]]


def test_a_word_without_letters_gives_zeros() -> None:
    vectors = spelled(lively(), WORDS)
    assert torch.equal(vectors[5], torch.zeros(12))
    assert (vectors[[0, 1, 2, 3, 4, 6, 7]] != 0).any(dim=1).all()


@pytest.mark.parametrize("words", [[], [[]], [[], []]])
def test_no_letters_at_all_give_zeros(words: list[list[int]]) -> None:
    assert torch.equal(spelled(lively(), words), torch.zeros(len(words), 12))


@pytest.mark.parametrize("widths", [(1, 3, 5), (2, 4), (6,), (9, 1)])
def test_same_vector_alone_and_beside_any_other_words(widths: tuple[int, ...]) -> None:
    cnn = lively(widths)
    together = spelled(cnn, WORDS)
    for number, word in enumerate(WORDS):
        alone = spelled(cnn, [word])[0]
        torch.testing.assert_close(together[number], alone, rtol=0, atol=1e-6)


@settings(max_examples=40, deadline=None, database=None)
@given(
    st.lists(st.lists(st.integers(0, LETTERS - 1), max_size=9), max_size=6),
    st.lists(st.lists(st.integers(0, LETTERS - 1), max_size=30), max_size=6),
)
def test_same_vector_whatever_words_stand_before_and_after(
    before: list[list[int]], after: list[list[int]]
) -> None:
    cnn, word = lively(), [3, 1, 4]
    vector = spelled(cnn, [*before, word, *after])[len(before)]
    torch.testing.assert_close(vector, spelled(cnn, [word])[0], rtol=0, atol=1e-6)


def test_same_vector_beside_a_very_long_word() -> None:
    cnn, short = lively(), [7, 7, 2]
    beside = spelled(cnn, [random_words(5000)[0], short, random_words(5000)[0]])[1]
    torch.testing.assert_close(beside, spelled(cnn, [short])[0], rtol=0, atol=1e-6)


def test_order_of_the_words_does_not_matter() -> None:
    cnn = lively()
    torch.testing.assert_close(
        spelled(cnn, WORDS[::-1]), spelled(cnn, WORDS).flip(0), rtol=0, atol=1e-6
    )


def test_order_of_the_letters_matters() -> None:
    vectors = spelled(lively(), [[1, 2, 3], [3, 2, 1]])
    assert not torch.allclose(vectors[0], vectors[1])


def test_gradients_are_those_of_finite_differences() -> None:
    random = torch.Generator().manual_seed(0)
    counts = torch.tensor([3, 0, 1, 2])
    letters = torch.randn(6, 2, dtype=torch.float64, generator=random).requires_grad_()
    filters = [
        torch.randn(2, 2, width, dtype=torch.float64, generator=random).requires_grad_()
        for width in (1, 3)
    ]
    assert torch.autograd.gradcheck(
        lambda given, *each: character_vectors(given, counts, each), (letters, *filters)
    )


class Largest(TorchFunctionMode):
    """Remembers the size of the largest tensor that any call gave."""

    numbers = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple) else (result,):
            if isinstance(each, Tensor):
                self.numbers = max(self.numbers, each.untyped_storage().size() // 4)
        return result


def test_a_word_of_100_000_letters_costs_memory_for_its_letters_only() -> None:
    # Padding 500 short words to the long one would take 500 times as much.
    cnn, words = lively(maps=2), [random_words(100_000)[0], *random_words(*[6] * 500)]
    with torch.no_grad(), Largest() as largest:
        vectors = spelled(cnn, words)
    assert vectors.shape == (501, 6) and vectors.isfinite().all()
    assert largest.numbers < 1.2 * 100_000 * 6


def test_start_is_gaussian_letters_and_no_bias() -> None:
    torch.manual_seed(0)
    cnn = CharacterCNN(4000)
    letters = cnn.letters.detach().double()
    assert abs(letters.std().item() - 0.01) < 5 * 0.01 / math.sqrt(2 * letters.numel())
    assert abs(letters.mean().item()) < 5 * 0.01 / math.sqrt(letters.numel())
    assert {name for name, _ in cnn.named_parameters()} == {
        "letters",
        "filters.0",
        "filters.1",
        "filters.2",
    }


def test_defaults_are_the_papers() -> None:
    cnn = CharacterCNN(50)
    assert cnn.letters.shape == (50, 15)
    assert [tuple(each.shape) for each in cnn.filters] == [
        (100, 15, 1),
        (100, 15, 3),
        (100, 15, 5),
    ]
    assert cnn.output_dim == 300
    assert sum(each.numel() for each in cnn.parameters()) == 50 * 15 + 100 * 15 * (1 + 3 + 5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_number_types_run(dtype: torch.dtype) -> None:
    vectors = spelled(lively().to(dtype), WORDS)
    assert vectors.dtype is dtype
    expected = spelled(lively(), WORDS)
    torch.testing.assert_close(vectors.float(), expected, rtol=0.05, atol=0.05)


def test_state_dict_round_trips_bit_for_bit() -> None:
    first, second = lively(), CharacterCNN(LETTERS, 3, (1, 3, 5), 4)
    second.load_state_dict(first.state_dict())
    assert torch.equal(spelled(first, WORDS), spelled(second, WORDS))


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"characters": 0}, "characters=0"),
        ({"dim": 0}, "dim=0"),
        ({"maps": -1}, "maps=-1"),
        ({"widths": (3, 0)}, r"widths=\(3, 0\)"),
        ({"widths": ()}, r"widths=\(\)"),
    ],
)
def test_sizes_below_one_are_refused(options: dict, given: str) -> None:
    with pytest.raises(InputError, match=rf"{given}.*must be 1 or more"):
        CharacterCNN(**{"characters": len(string.ascii_letters), **options})
