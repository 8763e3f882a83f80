"""`encode` keeps the quick form of a model, and makes it again when a weight has changed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.inference import quick
from genpool.inference.quick import QuickEncoder
from genpool.model.sentence_encoder import QUICK_MIN_SENTENCES

SENTENCES = [f"a dog , number {place} , runs" for place in range(QUICK_MIN_SENTENCES)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[QuickEncoder]:
    """Every quick form that is made."""
    forms: list[QuickEncoder] = []
    initialize = QuickEncoder.__init__

    def counted(self: QuickEncoder, *args, **options) -> None:
        forms.append(self)
        initialize(self, *args, **options)

    monkeypatch.setattr(QuickEncoder, "__init__", counted)
    return forms


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max())


def expected(model: SentenceEncoder) -> np.ndarray:
    """The vectors by the plain way, which reads the weights each time."""
    return np.stack([model.encode(sentence) for sentence in SENTENCES])


def test_the_quick_form_is_made_once_for_many_calls(sentence_encoder, made) -> None:
    first = sentence_encoder.encode(SENTENCES)
    for _ in range(3):
        assert np.array_equal(sentence_encoder.encode(SENTENCES), first)
    assert len(made) == 1
    assert difference(first, expected(sentence_encoder)) < 1e-6
    assert len(made) == 1  # few sentences go without one


def optimizer_step(model: SentenceEncoder) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model(model.text.batch([["a", "dog"]])).vector.sum().backward()
    optimizer.step()


def pooling_weight(model: SentenceEncoder) -> torch.nn.Parameter:
    return model.get_parameter("pooling.w2")


def copy_in_place(model: SentenceEncoder) -> None:
    with torch.no_grad():
        weight = pooling_weight(model)
        weight.copy_(torch.randn_like(weight))


def write_through_data(model: SentenceEncoder) -> None:
    pooling_weight(model).data.mul_(-3)


def write_one_word_through_data(model: SentenceEncoder) -> None:
    model.embedding.words.data[model.text.vocabulary.id("dog")] += 1


def load_other_weights(model: SentenceEncoder) -> None:
    model.load_state_dict({name: 0.5 * tensor for name, tensor in model.state_dict().items()})


def assign_other_weights(model: SentenceEncoder) -> None:
    weights = {name: 0.5 * tensor for name, tensor in model.state_dict().items()}
    model.load_state_dict(weights, assign=True)


def replace_data(model: SentenceEncoder) -> None:
    weight = model.get_parameter("encoder.layers.0.forwards.u")
    weight.data = torch.ones_like(weight)


def replace_the_pooling(model: SentenceEncoder) -> None:
    other = copy.deepcopy(model.pooling)
    with torch.no_grad():
        other.get_parameter("w1").add_(1)
    model.pooling = other


CHANGES = [
    optimizer_step,
    copy_in_place,
    write_through_data,
    write_one_word_through_data,
    load_other_weights,
    assign_other_weights,
    replace_data,
    replace_the_pooling,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_any_weight_is_seen(
    sentence_encoder, made, change: Callable[[SentenceEncoder], None]
) -> None:
    torch.manual_seed(0)
    before = sentence_encoder.encode(SENTENCES)
    change(sentence_encoder)
    after = sentence_encoder.encode(SENTENCES)
    assert len(made) == 2
    assert difference(after, before) > 1e-3
    assert difference(after, expected(sentence_encoder)) < 1e-6


def test_another_type_of_weights_is_seen(sentence_encoder, made) -> None:
    single = sentence_encoder.encode(SENTENCES, convert_to_tensor=True)
    double = sentence_encoder.double().encode(SENTENCES, convert_to_tensor=True)
    assert (single.dtype, double.dtype, len(made)) == (torch.float32, torch.float64, 2)


def test_copies_start_without_a_quick_form(sentence_encoder, made) -> None:
    vectors = sentence_encoder.encode(SENTENCES)
    for other in (
        copy.deepcopy(sentence_encoder),
        pickle.loads(pickle.dumps(sentence_encoder)),
    ):
        assert other._quick is not sentence_encoder._quick
        forms = len(made)
        assert np.array_equal(other.encode(SENTENCES), vectors)
        assert len(made) == forms + 1 and made[-1].model is other


def test_the_quick_form_is_not_saved(sentence_encoder, tmp_path) -> None:
    sentence_encoder.save_pretrained(tmp_path / "before")
    sentence_encoder.encode(SENTENCES)
    sentence_encoder.save_pretrained(tmp_path / "after")
    for path in (tmp_path / "before").iterdir():
        assert (tmp_path / "after" / path.name).read_bytes() == path.read_bytes()


def test_a_large_word_table_is_freed_after_use(sentence_encoder, made, monkeypatch) -> None:
    first = sentence_encoder.encode(SENTENCES)
    monkeypatch.setattr(quick, "MAX_KEPT_TABLE_BYTES", made[0].table_bytes - 1)
    for forms in (1, 2, 3):  # the first call still had the form that was kept
        assert np.array_equal(sentence_encoder.encode(SENTENCES), first)
        assert len(made) == forms


def test_a_model_made_in_inference_mode_is_encoded_too(make_encoder) -> None:
    with torch.inference_mode():
        model = make_encoder()
        before = model.encode(SENTENCES)
        model.pooling.w2.mul_(-1)
        after = model.encode(SENTENCES)
        assert difference(after, before) > 1e-3
        assert difference(after, expected(model)) < 1e-6
