"""The penalties beside their losses: the sum is right, and their trainer trains with it."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    CosineSimilarityLoss,
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from genpool import SentenceEncoder
from genpool.errors import InputError
from genpool.integrations.sentence_transformers import (
    DiversityLoss,
    PoolingModule,
    SentenceEncoderModule,
)
from genpool.pooling import GeneralizedPooling
from tests.helpers.gradients import gradient
from tests.integrations.tiny_bert import (
    SENTENCES,
    WIDTH,
    encode_features,
    lively_pooling,
    tiny_transformer,
)

PAIRS: dict[str, list[Any]] = {
    "anchor": SENTENCES[:2],
    "positive": SENTENCES[1:],
    "label": [1.0, 0.0],
}


@pytest.fixture
def model(tmp_path: Path) -> SentenceTransformer:
    # eval: without dropout, two passes return the same values
    return SentenceTransformer(modules=[tiny_transformer(tmp_path / "b"), lively_pooling()]).eval()


def columns(model: SentenceTransformer) -> list[dict[str, Tensor]]:
    return [model.preprocess(PAIRS[name]) for name in ("anchor", "positive")]


def pooling_module(model: SentenceTransformer) -> PoolingModule:
    module = model[1]
    assert isinstance(module, PoolingModule)
    return module


def hinges(vectors: np.ndarray, threshold: float) -> float:
    """Sum over head pairs of max(threshold - squared distance, 0): vectors (heads, dim)."""
    total = 0.0
    for first in range(len(vectors)):
        for second in range(first + 1, len(vectors)):
            distance = ((vectors[first] - vectors[second]) ** 2).sum()
            total += max(threshold - float(distance), 0.0)
    return total


@pytest.mark.parametrize("penalty", ["parameter", "attention", "embedding"])
def test_the_penalty_is_added_to_the_loss(
    model: SentenceTransformer, penalty: Literal["parameter", "attention", "embedding"]
) -> None:
    threshold, labels = 300.0, torch.tensor(PAIRS["label"])  # so large that all hinges are active
    base = CosineSimilarityLoss(model)
    loss = DiversityLoss(model, base, penalty, weight=0.1, threshold=threshold)
    added = (loss(columns(model), labels) - base(columns(model), labels)).item()
    if penalty == "parameter":
        w1 = pooling_module(model).pooling.get_parameter("w1")
        expected = hinges(w1.detach().flatten(1).numpy(), threshold)
    else:
        expected = 0.0
        for name in ("anchor", "positive"):
            actual = encode_features(model, PAIRS[name])
            key = "head_weights" if penalty == "attention" else "head_vectors"
            # A sum for each column, a mean over its sentences.
            heads = [result[key].flatten(1).numpy() for result in actual]
            expected += float(np.mean([hinges(vectors, threshold) for vectors in heads]))
    assert added == pytest.approx(0.1 * expected, rel=1e-4)
    assert loss.active is not None and float(loss.active) == 1.0
    loss.threshold = 0.0  # no hinge is active any more
    assert torch.equal(loss(columns(model), labels), base(columns(model), labels))
    assert float(loss.active) == 0.0
    config = loss.get_config_dict()  # for the card of a model
    assert config["loss"] == "CosineSimilarityLoss"
    assert (config["penalty"], config["weight"], config["threshold"]) == (penalty, 0.1, 0.0)


def test_losses_that_name_their_terms_get_one_more(model: SentenceTransformer) -> None:
    class Named(nn.Module):
        def forward(self, features: list[dict[str, Tensor]], labels: Tensor) -> dict[str, Tensor]:
            return {"first": model(features[0])["sentence_embedding"].sum()}

    result = DiversityLoss(model, Named())(columns(model)[:1], None)
    assert set(result) == {"first", "diversity"}
    # A loss may wrap another one.
    inner = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model), [48, 16])
    DiversityLoss(model, inner, threshold=100.0)(columns(model), None).backward()
    assert gradient(pooling_module(model).pooling.get_parameter("w2")).abs().sum() > 0


def test_what_cannot_work_is_answered_in_words(model: SentenceTransformer) -> None:
    base = MultipleNegativesRankingLoss(model)
    with pytest.raises(InputError, match=r"unknown penalty 'atention'\. Did you mean 'attention'"):
        DiversityLoss(model, base, "atention")  # type: ignore[arg-type]
    plain = SentenceTransformer(modules=[model[0], Pooling(WIDTH)])
    with pytest.raises(InputError, match="none of genpool's modules"):
        DiversityLoss(plain, base)
    single = PoolingModule(GeneralizedPooling(WIDTH, heads=1))
    one_head = SentenceTransformer(modules=[model[0], single])
    with pytest.raises(InputError, match="one head, and so no pair"):
        DiversityLoss(one_head, base)
    cached = CachedMultipleNegativesRankingLoss(model, mini_batch_size=1)
    with pytest.raises(InputError, match="CachedMultipleNegativesRankingLoss computes embeddings"):
        DiversityLoss(model, cached)(columns(model), None)
    assert DiversityLoss(model, cached, "parameter")(columns(model), None).requires_grad
    pooling_module(model).write_weights = False
    with pytest.raises(InputError, match="write_weights=True"):
        DiversityLoss(model, base, "attention")(columns(model), None)


def two_steps(model: SentenceTransformer, loss: nn.Module, folder: Path) -> list[float]:
    """Trains for two steps; returns the change of every parameter."""
    before = [parameter.detach().clone() for parameter in model.parameters()]
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=2,
        per_device_train_batch_size=2,
        learning_rate=0.01,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    data = Dataset.from_dict(PAIRS)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss).train()
    pairs = zip(before, model.parameters(), strict=True)
    return [float((old - new.detach()).abs().max()) for old, new in pairs]


def test_their_trainer_trains_with_it(model: SentenceTransformer, tmp_path: Path) -> None:
    loss = DiversityLoss(model, CosineSimilarityLoss(model), "embedding", threshold=100.0)
    two_steps(model, loss, tmp_path / "run")
    changed = lively_pooling().pooling.get_parameter("w2") - pooling_module(
        model
    ).pooling.get_parameter("w2")
    assert changed.abs().max() > 1e-3 and torch.isfinite(changed).all()


def test_a_genpool_encoder_is_trained_by_their_trainer(
    sentence_encoder: SentenceEncoder, tmp_path: Path
) -> None:
    model = SentenceTransformer(modules=[SentenceEncoderModule(sentence_encoder)])
    before = model.encode(SENTENCES)
    loss = DiversityLoss(model, CosineSimilarityLoss(model), "parameter", threshold=1000.0)
    changes = two_steps(model, loss, tmp_path / "run")
    assert sum(change > 1e-4 for change in changes) > len(changes) / 2
    # The model that was put in is the one that was trained.
    np.testing.assert_allclose(
        model.encode(SENTENCES), sentence_encoder.encode(SENTENCES), atol=1e-5
    )
    assert np.abs(model.encode(SENTENCES) - before).max() > 1e-3
