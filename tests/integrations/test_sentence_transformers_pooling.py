"""Generalized pooling as a module: the values, the mask, prompts, and the start at the mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor

from genpool.errors import InputError
from genpool.integrations.sentence_transformers import PoolingModule
from genpool.pooling import GatedPooling, GeneralizedPooling
from tests.helpers.gradients import gradient
from tests.integrations.tiny_bert import (
    SENTENCES,
    WIDTH,
    encode_features,
    lively_pooling,
    minilm_folder,
    tiny_transformer,
)

LENGTHS = (4, 2, 6)


def by_loops(tokens: np.ndarray, module: PoolingModule) -> np.ndarray:
    """Eq. 5-6 for one sentence, value by value: tokens (time, dim) -> (heads, dim)."""
    w1, b1, w2, b2 = (
        parameter.detach().double().numpy() for parameter in module.pooling.parameters()
    )
    heads = np.zeros((len(w1), tokens.shape[1]))
    for head in range(len(w1) if len(tokens) else 0):
        logits = np.array(
            [w2[head] @ np.maximum(w1[head] @ token + b1[head], 0) + b2[head] for token in tokens]
        )
        for dim in range(tokens.shape[1]):
            shares = np.exp(logits[:, dim] - logits[:, dim].max())
            heads[head, dim] = (shares / shares.sum()) @ tokens[:, dim]
    return heads


def sentences() -> list[Tensor]:
    random = torch.Generator().manual_seed(2)
    return [torch.randn(length, WIDTH, generator=random) for length in LENGTHS]


def padded(side: str = "right", more: int = 1) -> dict[str, Tensor]:
    time = max(LENGTHS) + more
    states = torch.full((len(LENGTHS), time, WIDTH), float("nan"))
    mask = torch.zeros(len(LENGTHS), time, dtype=torch.long)
    for row, sentence in enumerate(sentences()):
        place = slice(0, len(sentence)) if side == "right" else slice(time - len(sentence), time)
        states[row, place], mask[row, place] = sentence, 1
    return {"token_embeddings": states, "attention_mask": mask}


def end_to_end() -> dict[str, Tensor]:
    starts = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    return {"token_embeddings": torch.cat(sentences()).unsqueeze(0), "cu_seq_lens_q": starts}


def expected(module: PoolingModule, skip: int = 0) -> np.ndarray:
    return np.stack(
        [by_loops(sentence[skip:].double().numpy(), module) for sentence in sentences()]
    )


@pytest.mark.parametrize("write_weights", [True, False])
@pytest.mark.parametrize(
    "features", [padded("right"), padded("left"), end_to_end()], ids=["right", "left", "flat"]
)
def test_heads_are_those_of_the_equations(features: dict[str, Tensor], write_weights: bool) -> None:
    module = lively_pooling(write_weights=write_weights)
    result = module(dict(features))
    heads = result["head_vectors"].detach().numpy()
    np.testing.assert_allclose(heads, expected(module), atol=1e-5)
    vectors = result["sentence_embedding"].detach().numpy()
    np.testing.assert_array_equal(vectors, heads.reshape(len(LENGTHS), 3 * WIDTH))
    assert ("head_weights" in result) is write_weights


def test_gradients_are_the_same_end_to_end_and_padded() -> None:
    actual = []
    for features in (padded(), end_to_end()):
        states = features["token_embeddings"].nan_to_num().requires_grad_()
        module = lively_pooling()
        result = module({**features, "token_embeddings": states})
        result["sentence_embedding"].sin().sum().backward()
        real = features.get("attention_mask", torch.ones(states.shape[:2])).bool()
        actual.append((gradient(states)[real], gradient(module.pooling.get_parameter("w1"))))
    torch.testing.assert_close(actual[0], actual[1])
    assert all(result.abs().max() > 1e-3 for result in actual[0])


def test_weights_sum_to_one_over_the_tokens_of_a_sentence() -> None:
    weights = lively_pooling()(padded())["head_weights"]
    assert weights.shape == (3, 3, 7, WIDTH)
    torch.testing.assert_close(weights.sum(dim=2), torch.ones(3, 3, WIDTH))
    assert not weights[1, :, 2:].any()


@pytest.mark.parametrize("length", [2, torch.tensor([2]), torch.tensor([2, 2, 2])])
@pytest.mark.parametrize("form", ["right", "left", "flat"])
def test_a_prompt_is_left_out_when_asked(form: str, length: int | Tensor) -> None:
    features: dict[str, Any] = end_to_end() if form == "flat" else padded(form)
    features["prompt_length"] = length
    kept = lively_pooling()(dict(features))["head_vectors"].detach()
    np.testing.assert_allclose(kept, expected(lively_pooling()), atol=1e-5)
    left_out = lively_pooling(include_prompt=False)(dict(features))["head_vectors"].detach()
    np.testing.assert_allclose(left_out, expected(lively_pooling(), skip=2), atol=1e-5)
    assert not left_out[1].any(), "of the second sentence, no token is left"


@pytest.mark.parametrize("form", ["right", "left"])
def test_prompts_are_left_out_as_their_own_mean_pooling_does(form: str) -> None:
    features: dict[str, Any] = {**padded(form), "prompt_length": 1}
    features["token_embeddings"] = features["token_embeddings"].nan_to_num()
    mean = GeneralizedPooling(WIDTH, heads=1, start="mean")
    ours = PoolingModule(mean, include_prompt=False)(dict(features))
    theirs = Pooling(WIDTH, "mean", include_prompt=False)(dict(features))
    torch.testing.assert_close(ours["sentence_embedding"], theirs["sentence_embedding"])


@pytest.mark.parametrize("dtype", [torch.long, torch.bool])
def test_the_mask_is_never_changed(dtype: torch.dtype) -> None:
    features: dict[str, Any] = {**padded(), "prompt_length": 2}
    given = features["attention_mask"] = features["attention_mask"].to(dtype)
    before = given.clone()
    result = lively_pooling(include_prompt=False)(features)
    assert result["attention_mask"] is given and torch.equal(given, before)


def test_a_mask_of_other_tokens_is_not_used() -> None:
    """Some models shorten the sequence; then all of what is left is pooled."""
    states = torch.stack([sentence[:2] for sentence in sentences()])  # (3, 2, WIDTH)
    module = lively_pooling()
    alone = module({"token_embeddings": states})["sentence_embedding"]
    mask = torch.tensor([[1, 0, 0, 0]] * 3)
    given = module({"token_embeddings": states, "attention_mask": mask})["sentence_embedding"]
    assert torch.equal(alone, given)


def test_encode_gives_heads_and_weights_of_every_sentence(tmp_path: Path) -> None:
    model = SentenceTransformer(modules=[tiny_transformer(tmp_path / "bert"), lively_pooling()])
    vectors = model.encode(SENTENCES, batch_size=2)
    actual = encode_features(model, SENTENCES, batch_size=2)
    for vector, result in zip(vectors, actual, strict=True):
        time = len(result["attention_mask"])
        assert result["head_vectors"].shape == (3, WIDTH)
        assert result["head_weights"].shape == (3, time, WIDTH)
        by_hand = (result["head_weights"] * result["token_embeddings"]).sum(dim=1).flatten()
        np.testing.assert_allclose(vector, by_hand, atol=1e-5)
    alone = np.stack([model.encode(sentence) for sentence in SENTENCES])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    assert model.get_embedding_dimension() == vectors.shape[1] == 3 * WIDTH


def test_the_start_at_the_mean_changes_no_cosine_of_minilm() -> None:
    folder = minilm_folder()
    sentences = [*SENTENCES, "Where is the station?", "", "A person is resting on a bench."]
    transformer = Transformer(folder)
    mean = SentenceTransformer(modules=[transformer, Pooling(384, "mean")])
    theirs = mean.encode(sentences, convert_to_tensor=True)
    cosines = mean.similarity(theirs, theirs)
    for heads in (1, 5):
        pooling = PoolingModule(GeneralizedPooling(384, heads, 64, start="mean"))
        model = SentenceTransformer(modules=[transformer, pooling])
        ours = model.encode(sentences, convert_to_tensor=True)
        torch.testing.assert_close(ours, theirs.repeat(1, heads), atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(model.similarity(ours, ours), cosines, atol=1e-6, rtol=0)


def test_the_start_at_the_mean_can_learn() -> None:
    pooling = GeneralizedPooling(WIDTH, heads=2, start="mean")
    module = PoolingModule(pooling)
    features = {**padded(), "token_embeddings": padded()["token_embeddings"].nan_to_num()}
    module(features)["sentence_embedding"].square().sum().backward()
    gradient = pooling.w2.grad
    assert gradient is not None and (gradient.abs().amax(dim=(1, 2)) > 1e-3).all()
    assert not torch.allclose(gradient[0], gradient[1]), "the heads would stay alike"


def test_half_precision_follows_the_transformer(tmp_path: Path) -> None:
    transformer = tiny_transformer(tmp_path / "bert")
    single = SentenceTransformer(modules=[transformer, lively_pooling()]).encode(SENTENCES)
    model = SentenceTransformer(modules=[transformer.bfloat16(), lively_pooling()])
    vectors = model.encode(SENTENCES, convert_to_tensor=True)
    assert vectors.dtype is torch.bfloat16
    np.testing.assert_allclose(vectors.float().numpy(), single, atol=0.1)


def test_wrong_arguments_are_answered_in_words() -> None:
    with pytest.raises(InputError, match="the pooling is GatedPooling; expected one"):
        PoolingModule(GatedPooling(WIDTH))
    with pytest.raises(InputError, match="expected token_embeddings: put this module after"):
        lively_pooling()({"input_ids": torch.zeros(1, 2)})
    with pytest.raises(InputError, match="states have width 8"):
        lively_pooling()({"token_embeddings": torch.zeros(1, 2, 8)})
