"""Poolings on models of transformers: the same states, trained end to end."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.integrations.transformers import parameter_groups, pool
from genpool.pooling import GatedPooling, GeneralizedPooling, MeanPooling
from tests.integrations.tiny_bert import (
    SENTENCES,
    WIDTH,
    heads_by_loops,
    lively_pooling,
    tiny_transformer,
)

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transformers") / "bert"
    tiny_transformer(folder)
    return folder


class Classifier(nn.Module):
    """The example of the module's documentation."""

    def __init__(self, folder: str | Path, labels: int, heads: int = 2) -> None:
        super().__init__()
        self.transformer = transformers.AutoModel.from_pretrained(folder)
        dim = self.transformer.config.hidden_size
        self.pooling = GeneralizedPooling(dim, heads=heads, start="mean")
        self.output = nn.Linear(self.pooling.output_dim, labels)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        states = self.transformer(**inputs)
        logits: Tensor = self.output(pool(states, inputs["attention_mask"], self.pooling).vector)
        return logits


def encode(folder: str | Path, texts: list[str]) -> dict[str, Tensor]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return dict(tokenizer(texts, padding=True, return_tensors="pt"))


def test_pooled_states_are_those_of_each_sentence_alone(folder: Path) -> None:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    inputs, pooling = encode(folder, SENTENCES), lively_pooling().pooling
    with torch.no_grad():
        pooled = pool(model(**inputs), inputs["attention_mask"], pooling)
        for row, sentence in enumerate(SENTENCES):
            alone = model(**encode(folder, [sentence])).last_hidden_state[0]
            np.testing.assert_allclose(pooled.heads[row], heads_by_loops(alone, pooling), atol=1e-5)


def test_the_output_may_be_an_output_a_tuple_or_the_states(folder: Path) -> None:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    inputs, pooling = encode(folder, SENTENCES), MeanPooling(WIDTH)
    mask = inputs["attention_mask"]
    with torch.no_grad():
        output = model(**inputs)
        expected = pool(output, mask, pooling).vector
        for same in (model(**inputs, return_dict=False), output.last_hidden_state):
            assert torch.equal(pool(same, mask, pooling).vector, expected)
        lively = lively_pooling()  # the module of sentence-transformers is read too
        expected = pool(output, mask, lively.pooling).vector
        assert torch.equal(pool(output, mask, lively).vector, expected)


def train(model: Classifier, inputs: dict[str, Tensor], labels: Tensor, steps: int) -> list[float]:
    optimizer = torch.optim.AdamW(
        parameter_groups(model, learning_rate=1e-4, pooling_learning_rate=1e-2, also=["output"])
    )
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_transformer_and_pooling_are_trained_end_to_end(folder: Path) -> None:
    torch.manual_seed(0)
    model = Classifier(folder, labels=2).eval()  # without dropout: the loss falls steadily
    inputs, labels = encode(folder, SENTENCES), torch.tensor([0, 1, 1])
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    losses = train(model, inputs, labels, 30)
    assert losses[-1] < 0.5 * losses[0]
    changed = {name for name, weight in model.named_parameters() if (weight != before[name]).any()}
    assert {"pooling.w1", "pooling.w2", "output.weight"} <= changed
    assert any(name.startswith("transformer.encoder.layer.0") for name in changed)


def test_only_poolings_and_named_modules_have_the_larger_rate(folder: Path) -> None:
    model = Classifier(folder, labels=2)
    groups = parameter_groups(model, 2e-5, 1e-3, weight_decay=0.1, also=["output"])
    rates = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    decays = {id(weight): group["weight_decay"] for group in groups for weight in group["params"]}
    assert len(rates) == len(list(model.parameters()))
    for name, weight in model.named_parameters():
        is_new = name.startswith(("pooling.", "output."))
        assert rates[id(weight)] == (1e-3 if is_new else 2e-5), name
        assert decays[id(weight)] == (0.1 if weight.dim() > 1 else 0.0), name
    assert torch.optim.AdamW(groups)
    model.transformer.requires_grad_(False)  # frozen parameters are in no group
    groups = parameter_groups(model)
    assert sum(len(group["params"]) for group in groups) == 4 + 2
    assert {group["lr"] for group in groups} == {1e-3, 2e-5}


def test_what_has_no_token_states_no_pooling_or_another_width_is_refused(folder: Path) -> None:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    inputs = encode(folder, SENTENCES)
    with pytest.raises(InputError, match=r"has no last_hidden_state \(it has logits\)"):
        pool(model(**inputs), inputs["attention_mask"], MeanPooling(WIDTH))
    with pytest.raises(InputError, match=r"tuple has no last_hidden_state"):
        pool((), inputs["attention_mask"], MeanPooling(WIDTH))
    states, mask = torch.zeros(1, 2, WIDTH), torch.ones(1, 2, dtype=torch.int64)
    for pooling in (GatedPooling(WIDTH), nn.Linear(WIDTH, 1)):
        with pytest.raises(InputError, match=f"the pooling is {type(pooling).__name__}"):
            pool(states, mask, pooling)
    with pytest.raises(InputError, match="input_dim=8"):
        pool(states, mask, MeanPooling(8))
    with pytest.raises(InputError, match="contains no pooling"):
        parameter_groups(nn.Linear(2, 2))
    with pytest.raises(InputError, match=r"no module 'classifier'; it has: transformer, pooling"):
        parameter_groups(Classifier(folder, labels=2), also=["classifier"])
