"""Token vectors: the word table concatenated with the character CNN."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor

from genpool.embedding import CharacterCNN, TokenEmbedding
from genpool.errors import InputError
from genpool.tensors.packing import Packing
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


def cnn_of(embedding: TokenEmbedding) -> CharacterCNN:
    assert embedding.spelling is not None
    return embedding.spelling


def test_a_token_is_its_word_vector_then_its_character_vector() -> None:
    embedding = lively()
    vectors = embedding(batch("a man sleeps .", "dog a"))
    assert vectors.shape == (2, 4, 5 + 6) and embedding.output_dim == 11
    for row, sentence in enumerate(["a man sleeps .", "dog a"]):
        for position, word in enumerate(sentence.split()):
            ids = torch.tensor(TEXT.characters.ids_of(word))
            characters = cnn_of(embedding)(ids, torch.tensor([len(ids)]))[0]
            expected = torch.cat([embedding.words[TEXT.vocabulary.id(word)], characters])
            torch.testing.assert_close(vectors[row, position], expected, rtol=0, atol=1e-6)


def test_unknown_words_are_told_apart_by_their_characters_and_alike_in_every_batch() -> None:
    embedding, inputs = lively(), batch("zebra quagga")
    assert inputs.ids.tolist() == [[UNKNOWN, UNKNOWN]]
    zebra, quagga = embedding(inputs)[0]
    assert torch.equal(zebra[:5], quagga[:5])
    assert not torch.allclose(zebra[5:], quagga[5:])
    together = embedding(batch("a dog", f"{'long' * 500} zebra man", "zebra"))
    torch.testing.assert_close(together[1, 1], zebra, rtol=0, atol=1e-6)
    assert torch.equal(together[1, 1], together[2, 0])


def test_character_vectors_are_computed_once_per_distinct_word() -> None:
    embedding = lively()
    inputs: list[tuple[Tensor, Tensor]] = []  # of the character CNN: ids and counts
    cnn_of(embedding).register_forward_pre_hook(lambda module, given: inputs.append(given))
    vectors = embedding(batch("a man a man a man", "man a zebra", "zebra", ""))
    assert vectors.shape[:2] == (4, 6)
    [(ids, counts)] = inputs
    assert (len(ids), len(counts)) == (len("a" + "man" + "zebra"), 3)


def test_a_frozen_table_gets_no_gradient_and_the_characters_do() -> None:
    embedding = lively(frozen=True)
    embedding(batch("a zebra sleeps")).square().sum().backward()
    assert embedding.words.grad is None and not embedding.words.requires_grad
    cnn = cnn_of(embedding)
    assert all((cast(Tensor, w.grad) != 0).any() for w in (cnn.letters, *cnn.filters))


def test_a_trained_table_gets_the_gradient_of_the_words_that_occur() -> None:
    embedding = lively(frozen=False)
    total = embedding(batch("a zebra a"))[:, :, :5].sum()
    (gradient,) = torch.autograd.grad(total, embedding.words)
    expected = torch.zeros(len(TEXT.vocabulary), 5)
    expected[TEXT.vocabulary.id("a")] = 2  # it occurs twice
    expected[UNKNOWN] = 1
    assert torch.equal(gradient, expected)


def test_dropout_works_while_training_only() -> None:
    embedding, inputs = lively(dropout=0.5), batch("a man sleeps . dog zebra")
    plain = lively(dropout=0.0)(inputs)
    assert torch.equal(embedding.eval()(inputs), plain)
    dropped = embedding.train()(inputs)
    # What is kept is doubled, so that the mean stays.
    assert torch.equal(dropped, torch.where(dropped == 0, 0.0, 2 * plain))
    zeros = (dropped == 0) & (plain != 0)
    assert zeros[..., :5].any() and zeros[..., 5:].any() and not zeros.all()


def test_without_rescaling_in_training_vectors_are_scaled_at_inference() -> None:
    inputs = batch("a man sleeps . dog zebra", "dog")
    embedding = lively(dropout=0.25, dropout_scaling="test")
    plain, packing = lively(dropout=0.0)(inputs), Packing.from_mask(inputs.mask)
    dropped = embedding.train()(inputs)
    assert torch.equal(dropped, torch.where(dropped == 0, 0.0, plain))
    assert ((dropped == 0) & (plain != 0)).any()
    embedding.eval()
    assert torch.equal(embedding(inputs), 0.75 * plain)
    assert torch.equal(embedding.rows(inputs, packing), packing.pack(0.75 * plain))


@pytest.mark.parametrize(("scaling", "training"), [("inverted", True), ("test", False)])
def test_a_word_at_inference_is_what_forward_returns_for_its_tokens(scaling, training) -> None:
    inputs = batch("a man sleeps . a zebra", "dog man")
    embedding = lively(dropout=0.5, dropout_scaling=scaling)
    expected = embedding.eval()(inputs)
    words = embedding.train(training).distinct_at_inference(inputs)  # (distinct, output_dim)
    assert torch.equal(words[inputs.index][inputs.mask], expected[inputs.mask])


def test_options_of_the_character_cnn_reach_it() -> None:
    embedding = lively(character_padding="right", character_initialization="gaussian")
    cnn = cnn_of(embedding)
    assert (cnn.padding, cnn.initialization) == ("right", "gaussian")
    assert not torch.allclose(embedding(batch("zebra")), lively()(batch("zebra")))


@pytest.mark.parametrize("sentences", [[], [""], ["", ""]])
def test_sentences_without_words_give_no_vectors(sentences: list[str]) -> None:
    assert lively()(batch(*sentences)).shape == (len(sentences), 0, 11)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"words": 0}, "words is 0"),
        ({"characters": 5, "character_maps": 0}, "maps is 0"),
    ],
)
def test_sizes_below_one_are_refused(options: dict, problem: str) -> None:
    with pytest.raises(InputError, match=rf"{problem}; expected .* 1 or more"):
        TokenEmbedding(**{"words": 9, "word_dim": 5, **options})
