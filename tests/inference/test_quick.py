"""The quick form: the vectors of its model, also in 8 bits; kept until a weight changes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.config import Part
from genpool.encoder import ENCODERS
from genpool.errors import InputError
from genpool.inference import quick as quick_module
from genpool.inference.int8 import Int8Product
from genpool.inference.quick import QuickEncoder
from genpool.model.sentence_encoder import QUICK_MIN_SENTENCES
from genpool.pooling import POOLINGS
from tests.helpers.random_encoders import SENTENCES, largest_difference, model

PAIRS = [
    *((encoder, "generalized") for encoder in ENCODERS),
    *(("stacked-bilstm", pooling) for pooling in POOLINGS),
    *((encoder, "gated") for encoder, cls in ENCODERS.items() if cls.has_gates),
]


@pytest.mark.parametrize(
    ("encoder", "pooling", "ends"),
    [*((*pair, False) for pair in PAIRS), ("bilstm", "generalized", True)],
)
def test_same_vectors_as_the_model(encoder, pooling, ends):
    plain = model(encoder, pooling, ends)
    quick = QuickEncoder(plain)
    expected = plain.encode(SENTENCES)
    assert np.abs(plain.encode("")).max() > 0 if ends else not plain.encode("").any()
    assert largest_difference(quick.encode(SENTENCES), expected) < 1e-6
    assert largest_difference(quick.encode(SENTENCES, batch_size=2), expected) < 1e-6


@pytest.mark.parametrize(("layers", "shortcut"), [(1, "direction"), (3, "direction"), (2, "both")])
def test_every_depth_and_form_of_the_papers_encoder(layers, shortcut):
    options = {"hidden_dim": 4, "layers": layers, "shortcut": shortcut}
    small = model("stacked-bilstm")
    settings = replace(small.settings, encoder=Part("stacked-bilstm", options))
    plain = SentenceEncoder.from_settings(small.text, settings)
    difference = largest_difference(QuickEncoder(plain).encode(SENTENCES), plain.encode(SENTENCES))
    assert difference < 1e-6


def test_a_full_table_is_emptied_and_gives_the_same_vectors():
    plain = model("stacked-bilstm")
    quick = QuickEncoder(plain, capacity=3)
    many = [f"word{number} dog" for number in range(40)]
    assert largest_difference(quick.encode(many, batch_size=4), plain.encode(many)) < 1e-6
    assert len(quick._words) <= 3 + 2 + 4 * 2  # the ends, and one batch more than the capacity


def test_every_word_is_computed_once(monkeypatch):
    plain = model("stacked-bilstm")
    quick = QuickEncoder(plain)
    computed = []
    distinct = plain.embedding.distinct

    def counted(batch):
        computed.append(len(batch.word_ids))
        return distinct(batch)

    monkeypatch.setattr(plain.embedding, "distinct", counted)
    for _ in range(3):
        quick.encode(["a dog runs", "the dog sleeps"])
    assert sum(computed) == 5 + 2  # five words and the two sentence ends


def loops(inputs: np.ndarray, weight: np.ndarray, known_scale: bool) -> np.ndarray:
    """Rounds both sides, multiplies whole numbers, and scales: number by number."""
    result = np.zeros((len(inputs), len(weight)))
    for row, values in enumerate(inputs):
        scale = 1 / 127 if known_scale else np.abs(values).max() / 127
        for out, weights in enumerate(weight):
            own = np.abs(weights).max() / 127
            total = 0
            for value, factor in zip(values, weights, strict=True):
                total += int(np.rint(value / scale)) * int(np.rint(factor / own))
            result[row, out] = total * scale * own
    return result


def test_the_product_is_that_of_the_rounded_numbers() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(4, 9)).astype(np.float32)
    weight = random.normal(size=(5, 9)).astype(np.float32)
    found = Int8Product(torch.from_numpy(weight))(torch.from_numpy(inputs))
    assert largest_difference(found, loops(inputs, weight, False)) < 1e-5
    states = np.tanh(inputs)
    target = torch.ones(4, 5)
    Int8Product(torch.from_numpy(weight)).add_to(target, torch.from_numpy(states))
    assert largest_difference(target, 1 + loops(states, weight, True)) < 1e-5
    zeros = Int8Product(torch.zeros(3, 2))
    assert not zeros(torch.zeros(4, 2)).any()
    assert zeros(torch.zeros(0, 2)).shape == (0, 3)


def cosines(first, second) -> np.ndarray:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.where(lengths > 0, lengths, 1)


@pytest.mark.parametrize(
    ("encoder", "pooling"),
    [
        ("bilstm", "scalar"),
        ("stacked-bilstm", "generalized"),
        ("shortcut-stacked", "max"),
        ("residual-stacked", "generalized"),
    ],
)
def test_vectors_are_close_and_the_same_in_any_batch(encoder: str, pooling: str) -> None:
    plain = model(encoder, pooling)
    rounded = QuickEncoder(plain, int8=True)
    found = rounded.encode(SENTENCES)
    real = [number for number, sentence in enumerate(SENTENCES) if sentence]
    assert cosines(found, plain.encode(SENTENCES))[real].min() > 0.99
    assert not found[1].any()  # no words: zeros
    for number, sentence in enumerate(SENTENCES):
        assert largest_difference(rounded.encode(sentence), found[number]) < 1e-6
    assert rounded.encode([]).shape == (0, plain.output_dim)
    assert not rounded.encode([""]).any()


def test_int8_is_for_lstms_and_a_table_has_room_for_a_word() -> None:
    with pytest.raises(InputError, match="BiLSTM encoders"):
        QuickEncoder(model("cnn"), int8=True)
    with pytest.raises(InputError, match="gated"):
        QuickEncoder(model("bilstm", "gated"), int8=True)
    with pytest.raises(InputError, match="capacity is 0"):
        QuickEncoder(model("bilstm"), capacity=0)


# --- kept by `encode` ---

MANY = [f"a dog , number {place} , runs" for place in range(QUICK_MIN_SENTENCES)]


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


def expected(model: SentenceEncoder) -> np.ndarray:
    """The vectors by the plain way, which reads the weights each time."""
    return np.stack([model.encode(sentence) for sentence in MANY])


def test_the_quick_form_is_made_once_for_many_calls(sentence_encoder, made) -> None:
    first = sentence_encoder.encode(MANY)
    for _ in range(3):
        assert np.array_equal(sentence_encoder.encode(MANY), first)
    assert largest_difference(first, expected(sentence_encoder)) < 1e-6
    assert len(made) == 1  # few sentences go without one
    double = sentence_encoder.double().encode(MANY, convert_to_tensor=True)
    assert double.dtype is torch.float64 and len(made) == 2  # another type of weights


def optimizer_step(model: SentenceEncoder) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model(model.text.batch([["a", "dog"]])).vector.sum().backward()
    optimizer.step()


def write_one_word_through_data(model: SentenceEncoder) -> None:
    model.embedding.words.data[model.text.vocabulary.id("dog")] += 1


def load_other_weights(model: SentenceEncoder) -> None:
    model.load_state_dict({name: 0.5 * tensor for name, tensor in model.state_dict().items()})


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
    write_one_word_through_data,
    load_other_weights,
    replace_data,
    replace_the_pooling,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_any_weight_is_seen(
    sentence_encoder, made, change: Callable[[SentenceEncoder], None]
) -> None:
    torch.manual_seed(0)
    before = sentence_encoder.encode(MANY)
    change(sentence_encoder)
    after = sentence_encoder.encode(MANY)
    assert len(made) == 2
    assert largest_difference(after, before) > 1e-3
    assert largest_difference(after, expected(sentence_encoder)) < 1e-6


def test_copies_start_without_a_quick_form(sentence_encoder, made) -> None:
    vectors = sentence_encoder.encode(MANY)
    for other in (
        copy.deepcopy(sentence_encoder),
        pickle.loads(pickle.dumps(sentence_encoder)),
    ):
        assert other._quick is not sentence_encoder._quick
        forms = len(made)
        assert np.array_equal(other.encode(MANY), vectors)
        assert len(made) == forms + 1 and made[-1].model is other


def test_a_large_word_table_is_freed_after_use(sentence_encoder, made, monkeypatch) -> None:
    first = sentence_encoder.encode(MANY)
    monkeypatch.setattr(quick_module, "MAX_KEPT_TABLE_BYTES", made[0].table_bytes - 1)
    for forms in (1, 2, 3):  # the first call still had the form that was kept
        assert np.array_equal(sentence_encoder.encode(MANY), first)
        assert len(made) == forms


def test_a_model_made_in_inference_mode_is_encoded_too(make_encoder) -> None:
    with torch.inference_mode():
        model = make_encoder()
        before = model.encode(MANY)
        model.pooling.w2.mul_(-1)
        after = model.encode(MANY)
        assert largest_difference(after, before) > 1e-3
        assert largest_difference(after, expected(model)) < 1e-6
