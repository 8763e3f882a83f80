"""Token vectors: the word table joined with the character CNN."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from genpool.embedding import TokenEmbedding
from genpool.errors import InputError
from genpool.text import Batch, Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.vocabulary import SPECIAL_WORDS, UNKNOWN

KNOWN = ("a", "man", "sleeps", "dog", ".")
TEXT = TextPipeline(
    WordTokenizer("whitespace"),
    Vocabulary([*SPECIAL_WORDS, *KNOWN]),
    Characters("abcdefghijklmnopqrstuvwxyz."),
)


def batch(*sentences: str) -> Batch:
    return TEXT.batch([sentence.split() for sentence in sentences])


def lively(**options) -> TokenEmbedding:
    """A small embedding whose two halves are of like size."""
    torch.manual_seed(0)
    sizes = {"word_dim": 5, "character_dim": 3, "character_maps": 2, "dropout": 0.0}
    embedding = TokenEmbedding(
        len(TEXT.vocabulary), **{"characters": len(TEXT.characters), **sizes, **options}
    )
    torch.nn.init.normal_(embedding.words)
    if embedding.spelling is not None:
        torch.nn.init.normal_(embedding.spelling.letters)
    return embedding


def test_a_token_is_its_word_vector_then_its_character_vector() -> None:
    embedding = lively()
    vectors = embedding(batch("a man sleeps .", "dog a"))
    assert vectors.shape == (2, 4, 5 + 6) and embedding.output_dim == 11
    for row, sentence in enumerate(["a man sleeps .", "dog a"]):
        for place, word in enumerate(sentence.split()):
            letters = torch.tensor(TEXT.characters.spell(word))
            spelled = embedding.spelling(letters, torch.tensor([len(letters)]))[0]
            expected = torch.cat([embedding.words[TEXT.vocabulary.id(word)], spelled])
            torch.testing.assert_close(vectors[row, place], expected, rtol=0, atol=1e-6)


def test_without_characters_a_token_is_its_word_vector() -> None:
    embedding = lively(characters=0)
    assert embedding.spelling is None and embedding.output_dim == 5
    vectors = embedding(batch("dog man"))
    assert torch.equal(vectors[0], embedding.words[TEXT.batch([["dog", "man"]]).ids[0]])


def test_unknown_words_are_seen_by_their_letters() -> None:
    given = batch("zebra quagga")
    assert given.ids.tolist() == [[UNKNOWN, UNKNOWN]]
    zebra, quagga = lively()(given)[0]
    assert torch.equal(zebra[:5], quagga[:5])
    assert not torch.allclose(zebra[5:], quagga[5:])


def test_a_word_has_the_same_vector_in_every_sentence_and_batch() -> None:
    embedding = lively()
    alone = embedding(batch("zebra"))[0, 0]
    together = embedding(batch("a dog", f"{'long' * 500} zebra man", "zebra"))
    torch.testing.assert_close(together[1, 1], alone, rtol=0, atol=1e-6)
    assert torch.equal(together[1, 1], together[2, 0])


class Seen:
    """Counts what goes into the character CNN."""

    def __init__(self, embedding: TokenEmbedding) -> None:
        self.words = self.letters = self.calls = 0
        embedding.spelling.register_forward_pre_hook(self)

    def __call__(self, module: torch.nn.Module, given: tuple[Tensor, Tensor]) -> None:
        self.calls += 1
        self.letters += len(given[0])
        self.words += len(given[1])


def test_character_vectors_are_computed_once_per_distinct_word() -> None:
    embedding = lively()
    seen = Seen(embedding)
    vectors = embedding(batch("a man a man a man", "man a zebra", "zebra", ""))
    assert vectors.shape[:2] == (4, 6)
    assert (seen.calls, seen.words, seen.letters) == (1, 3, len("a" + "man" + "zebra"))


def test_a_frozen_table_gets_no_gradient_and_the_letters_do() -> None:
    embedding = lively(frozen=True)
    embedding(batch("a zebra sleeps")).square().sum().backward()
    assert embedding.words.grad is None and not embedding.words.requires_grad
    assert (embedding.spelling.letters.grad != 0).any()
    assert all((each.grad != 0).any() for each in embedding.spelling.filters)


def test_a_trained_table_gets_the_gradient_of_the_words_that_occur() -> None:
    embedding = lively(frozen=False)
    embedding(batch("a zebra a"))[:, :, :5].sum().backward()
    expected = torch.zeros(len(TEXT.vocabulary), 5)
    expected[TEXT.vocabulary.id("a")] = 2  # it stands there twice
    expected[UNKNOWN] = 1
    assert torch.equal(embedding.words.grad, expected)


def test_dropout_works_while_training_only() -> None:
    embedding, given = lively(dropout=0.5), batch("a man sleeps . dog zebra")
    plain = lively(dropout=0.0)(given)
    assert torch.equal(embedding.eval()(given), plain)
    dropped = embedding.train()(given)
    # What is kept is doubled, so that the mean stays.
    assert torch.equal(dropped, torch.where(dropped == 0, 0.0, 2 * plain))
    zeros = (dropped == 0) & (plain != 0)
    assert zeros[..., :5].any() and zeros[..., 5:].any() and not zeros.all()


def test_dropout_differs_between_two_places_of_one_word() -> None:
    # It falls on tokens, not on the distinct words that stand behind them.
    vectors = lively(dropout=0.5).train()(batch("man " * 20))[0]
    assert len({tuple((row == 0).tolist()) for row in vectors}) > 5


@pytest.mark.parametrize("sentences", [[], [""], ["", ""]])
def test_sentences_without_words_give_no_vectors(sentences: list[str]) -> None:
    assert lively()(batch(*sentences)).shape == (len(sentences), 0, 11)


def test_an_empty_sentence_beside_another_changes_nothing() -> None:
    embedding = lively()
    together = embedding(batch("", "a zebra"))
    torch.testing.assert_close(together[1], embedding(batch("a zebra"))[0], rtol=0, atol=1e-6)


def test_a_word_of_100_000_letters_has_a_vector() -> None:
    vectors = lively()(batch("a " + "z" * 100_000 + " man"))
    assert vectors.shape == (1, 3, 11) and vectors.isfinite().all()
    torch.testing.assert_close(vectors[0, 0], lively()(batch("a"))[0, 0], rtol=0, atol=1e-6)


def test_the_table_starts_gaussian_with_deviation_one_hundredth() -> None:
    torch.manual_seed(0)
    words = TokenEmbedding(500, 100).words.detach().double()
    assert abs(words.std().item() - 0.01) < 5 * 0.01 / math.sqrt(2 * words.numel())
    assert abs(words.mean().item()) < 5 * 0.01 / math.sqrt(words.numel())


def test_state_dict_round_trips_bit_for_bit() -> None:
    first, second = lively(), lively()
    torch.nn.init.normal_(second.words)
    second.load_state_dict(first.state_dict())
    given = batch("a zebra sleeps .")
    assert torch.equal(first(given), second(given))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_number_types_run(dtype: torch.dtype) -> None:
    given = batch("a zebra sleeps .", "dog")
    vectors = lively().to(dtype)(given)
    assert vectors.dtype is dtype
    torch.testing.assert_close(vectors.float(), lively()(given), rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"words": 0}, "words=0"),
        ({"word_dim": 0}, "word_dim=0"),
        ({"characters": -1}, "characters=-1"),
        ({"characters": 5, "character_maps": 0}, "maps=0"),
    ],
)
def test_sizes_below_one_are_refused(options: dict, given: str) -> None:
    with pytest.raises(InputError, match=rf"{given}.*must be 1 or more"):
        TokenEmbedding(**{"words": 9, "word_dim": 5, **options})
