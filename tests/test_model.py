"""The three models: poolings on encoders, batches, precision, saving, and the classifiers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.config import (
    EmbeddingSettings,
    Part,
    ProjectionSettings,
    TextSettings,
)
from genpool.encoder import ENCODERS
from genpool.errors import ConfigError, FolderError, InputError
from genpool.model import load_model
from genpool.pooling import POOLINGS, Pooled
from genpool.reproduction.encoders import GumbelTreeEncoder
from genpool.tensors.modules import fast_paths
from genpool.text import Batch

TOLERANCE = 1e-6
SENTENCES = [
    "A man sleeps .",
    "",
    "The red dog , not the two men , runs and runs .",
    "dog",
    "   ",
    "unknown words 🐕 rest",
    "a red man , two dogs , not the red one : the man rests , a dog sleeps",
    "two red men",
]
EMPTY = [place for place, sentence in enumerate(SENTENCES) if not sentence.strip()]

#: each pooling with the paper's encoder, each encoder with the paper's pooling, and the pairs that
#: differ: gates of every kind of LSTM, the last state of one and of two directions, trees
PAIRS = [
    *((pooling, "stacked-bilstm") for pooling in POOLINGS),
    *(("generalized", encoder) for encoder in ENCODERS if encoder != "stacked-bilstm"),
    *(("gated", name) for name, cls in ENCODERS.items() if cls.has_gates and "stack" not in name),
    *(("last", encoder) for encoder in ("lstm", "gru", "bilstm")),
]
every_pair = pytest.mark.parametrize(("pooling", "encoder"), PAIRS)


def difference(one: Tensor | np.ndarray, other: Tensor | np.ndarray) -> float:
    return float(np.abs(np.asarray(one, float) - np.asarray(other, float)).max())


def words_of(model: SentenceEncoder, sentences: list[str] = SENTENCES) -> list[list[str]]:
    return [model.text.words(sentence) for sentence in sentences]


def pooled_states(model: SentenceEncoder, vectors: Tensor, mask: Tensor) -> Pooled:
    """The module path: encoder, then pooling, on a padded tensor of token vectors."""
    gates = model.pooling.needs_gates
    encoded = model.encoder(vectors, mask, gates=gates)
    return model.pooling(encoded.states, mask, **({"gates": encoded.gates} if gates else {}))


@every_pair
def test_same_vector_alone_in_any_batch_with_any_padding_and_in_training_mode(
    make_encoder, pooling, encoder
) -> None:
    model = make_encoder(pooling, encoder)
    alone = np.stack([model.encode(sentence) for sentence in SENTENCES])
    assert not alone[EMPTY].any()
    assert np.ptp(np.delete(alone, EMPTY, axis=0), axis=0).max() > 0.1
    for batch_size in (1, 2, 3, 64):
        assert difference(model.encode(SENTENCES, batch_size=batch_size), alone) <= TOLERANCE
    order = [4, 0, 7, 2, 6, 1, 5, 3]
    moved = [SENTENCES[place] for place in order]
    assert difference(model.encode(moved), alone[order]) <= TOLERANCE
    # Without sorting by length: sentences of every length side by side in one padded batch.
    batch = model.text.batch(words_of(model))
    for sides in ((0, 0), (0, 4), (4, 0)):  # more padding on the right, on the left
        padded = replace(batch, index=pad(batch.index, sides), mask=pad(batch.mask, sides))
        if batch.annotations is not None:  # values that are no tree
            padded = replace(padded, annotations=pad(batch.annotations, (0, 0, *sides), value=77))
        for weights in (False, True):
            with torch.no_grad():
                assert difference(model(padded, weights=weights).vector, alone) <= TOLERANCE
    # The module path, where any value may be at padding.
    words = ["the", "red", "dog", "runs", "."]
    with torch.no_grad():
        tokens = model.embedding(model.text.batch([words]))  # (1, 5, embedding)
        expected = torch.from_numpy(model.encode(" ".join(words)))
        for left, right in [(0, 0), (0, 1), (1, 0), (7, 0), (0, 7), (3, 40), (40, 3)]:
            vectors = torch.full((1, left + 5 + right, tokens.shape[2]), float("nan"))
            mask = torch.zeros(1, left + 5 + right, dtype=torch.bool)
            vectors[:, left : left + 5], mask[:, left : left + 5] = tokens, True
            vector = pooled_states(model, vectors, mask).vector[0]
            assert difference(vector, expected) <= TOLERANCE
    for fast in (True, False):
        with fast_paths(fast):
            expected = model.eval().encode(SENTENCES)
            assert np.array_equal(model.train().encode(SENTENCES), expected)
        assert difference(expected, alone) <= TOLERANCE
    assert all(part.training for part in model.modules())


def test_a_model_is_random_in_training_and_repeats_with_a_seed(make_encoder) -> None:
    model = make_encoder()
    batch = model.text.batch(words_of(model))
    still = model(batch).vector.detach()
    vectors = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        vectors.append(model.train()(batch).vector.detach())
    assert torch.equal(vectors[0], vectors[1])
    assert difference(vectors[0], vectors[2]) > 1e-3 and difference(vectors[0], still) > 1e-3
    assert torch.equal(model.eval()(batch).vector, still)


PATHS = {
    "packed rows": (True, False),
    "padded, with weights": (True, True),
    "the equations as written": (False, False),
}


@every_pair
def test_every_path_gives_the_same_vectors_and_gradients(make_encoder, pooling, encoder) -> None:
    embedding = EmbeddingSettings(
        word_dim=4, character_dim=3, character_widths=(1, 2), character_maps=2, frozen=False
    )
    model = make_encoder(pooling, encoder, embedding=embedding)
    vectors, gradients = {}, {}
    for path, (fast, weights) in PATHS.items():
        with fast_paths(fast):
            vectors[path], gradients[path] = vectors_and_gradients(model, weights)
    for path in PATHS:
        assert difference(vectors[path], vectors["packed rows"]) <= TOLERANCE, path
        for name, gradient in gradients["packed rows"].items():
            assert difference(gradients[path][name], gradient) <= 1e-5, (path, name)
    assert gradients["packed rows"]["embedding.words"].abs().max() > 1e-3


def vectors_and_gradients(
    model: SentenceEncoder, weights: bool = False
) -> tuple[Tensor, dict[str, Tensor]]:
    """Vectors of the sentences, and gradients of a weighted sum of their values."""
    random = torch.Generator().manual_seed(5)
    probe = torch.randn(len(SENTENCES), model.output_dim, generator=random)
    model.zero_grad()
    torch.manual_seed(0)  # for encoders that draw at random
    pooled = model(model.text.batch(words_of(model)), weights=weights)
    assert torch.equal(pooled.heads.flatten(1), pooled.vector)
    (pooled.vector * probe).sum().backward()
    gradients = {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    trained = sum(parameter.requires_grad for parameter in model.parameters())
    # In evaluation mode what only decides a hard choice has no gradient.
    assert len(gradients) == trained - isinstance(model.encoder, GumbelTreeEncoder)
    return pooled.vector.detach(), gradients


@pytest.mark.parametrize("encoder", ENCODERS)
def test_two_threads_give_the_same_vectors_and_gradients(make_encoder, encoder: str) -> None:
    model = make_encoder("generalized", encoder)
    vectors, gradients = vectors_and_gradients(model)
    torch.set_num_threads(2)
    try:
        threaded, threaded_gradients = vectors_and_gradients(model)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert difference(threaded, vectors) <= TOLERANCE
    for name, gradient in gradients.items():
        assert difference(threaded_gradients[name], gradient) <= 1e-5, name


@every_pair
def test_other_precisions_give_about_the_same_vectors(make_encoder, pooling, encoder) -> None:
    model = make_encoder(pooling, encoder)
    single = model.encode(SENTENCES)
    double = model.double().encode(SENTENCES, convert_to_tensor=True)
    assert double.dtype is torch.float64
    assert difference(double, single) <= 1e-5
    assert model.encode(SENTENCES).dtype == np.float32
    rough = model.bfloat16().encode(SENTENCES, convert_to_tensor=True)
    assert rough.dtype is torch.bfloat16
    exact = model.double().encode(SENTENCES, convert_to_tensor=True)  # of the rounded weights
    # Eight bits of mantissa, through at most three layers of values up to 3.
    assert difference(rough.double(), exact) <= 0.05
    assert not rough[EMPTY].any()


def round_trip(model: SentenceEncoder, folder: Path) -> SentenceEncoder:
    """The saved model, in which everything is as it was."""
    model.save_pretrained(folder)
    loaded = load_model(folder)
    assert isinstance(loaded, SentenceEncoder) and not loaded.training
    assert loaded.settings == model.settings
    assert list(loaded.state_dict()) == list(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    for one, other in zip(loaded.parameters(), model.parameters(), strict=True):
        assert (one.requires_grad, one.dtype) == (other.requires_grad, other.dtype)
    vectors = loaded.encode(SENTENCES, convert_to_tensor=True)
    assert torch.equal(vectors, model.encode(SENTENCES, convert_to_tensor=True))
    return loaded


@every_pair
def test_saved_model_comes_back_bit_for_bit(make_encoder, pooling, encoder, tmp_path) -> None:
    round_trip(make_encoder(pooling, encoder, text=TextSettings(rules="whitespace")), tmp_path)


def test_saved_model_keeps_its_number_type(sentence_encoder, tmp_path: Path) -> None:
    loaded = round_trip(sentence_encoder.to(torch.bfloat16), tmp_path)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize(
    "sections",
    [
        {"text": TextSettings(sentence_ends=True)},
        {"text": TextSettings(max_length=3)},
        {"text": TextSettings(rules="whitespace", sentence_ends=True, max_length=2)},
        {"embedding": EmbeddingSettings(word_dim=3, characters=False)},
        {"pooling": Part("last", {"bidirectional": False})},
        {"encoder": Part("stacked-bilstm", {"hidden_dim": 2, "shortcut": "both"})},
        {"pooling": Part("generalized", {})},
    ],
    ids=str,
)
def test_every_setting_survives_saving(make_encoder, tmp_path: Path, sections) -> None:
    round_trip(make_encoder(**sections), tmp_path)


def test_what_the_pipeline_does_is_saved_even_where_the_settings_say_otherwise(
    make_text, make_settings, tmp_path: Path
) -> None:
    text = make_text("whitespace", sentence_ends=True, max_length=2)
    loaded = round_trip(SentenceEncoder.from_settings(text, make_settings()).eval(), tmp_path)
    assert loaded.settings.text == TextSettings("whitespace", True, 2)


def test_a_loaded_model_can_be_saved_again_without_change(sentence_encoder, tmp_path) -> None:
    sentence_encoder.notes = {"title": "Tiny", "seed": 3}
    sentence_encoder.save_pretrained(tmp_path / "one")
    loaded = SentenceEncoder.from_pretrained(tmp_path / "one")
    assert loaded.notes == {"title": "Tiny", "seed": 3}
    loaded.save_pretrained(tmp_path / "two")
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"pooling": Part("generalised")}, "unknown pooling 'generalised'. Did you mean 'general"),
        ({"pooling": Part("last"), "encoder": Part("bilsm")}, "unknown encoder 'bilsm'. Did you m"),
        ({"pooling": Part("mean", {"heads": 2})}, "unknown option of pooling 'mean' 'heads'"),
        ({"encoder": Part("gru", {"layer": 2})}, "'layer'. Did you mean 'layers'?"),
        (
            {"pooling": Part("generalized", {"heads": 0})},
            "heads is 0; expected a whole number of 1",
        ),
        ({"projection": ProjectionSettings(dim=0)}, "projection.dim is 0; expected a whole number"),
        (
            {"pooling": Part("gated"), "encoder": Part("cnn")},
            "which CNNEncoder does not have. Encoders that do: stacked-bilstm, bilstm, "
            "shortcut-stacked, residual-stacked, lstm.",
        ),
    ],
)
def test_settings_that_are_not_possible_are_refused_with_what_is(
    make_text, make_settings, sections, expected: str
) -> None:
    with pytest.raises((ConfigError, InputError)) as caught:
        SentenceEncoder.from_settings(make_text(), make_settings(**sections))
    assert expected in str(caught.value)


def test_last_pooling_learns_from_the_encoder_whether_states_have_two_directions(
    make_encoder,
) -> None:
    for encoder, given in ENCODERS.items():
        model = make_encoder("last", encoder)
        assert model.pooling.bidirectional is given.bidirectional
        assert model.settings.pooling.options["bidirectional"] is given.bidirectional


def test_using_a_model_leaves_its_mode_as_it_was(make_encoder) -> None:
    model = PairClassifier(make_encoder(), ["yes", "no"]).train()
    model.encoder.pooling.eval()
    before = {name: module.training for name, module in model.named_modules()}
    vectors = model.encoder.encode(SENTENCES)
    assert np.array_equal(model.encoder.encode(SENTENCES), vectors)  # no dropout inside
    model.encoder.explain("a dog runs")
    model.predict([("a dog", "a man")])
    assert {name: module.training for name, module in model.named_modules()} == before


def test_pair_features_are_those_of_the_first_and_second_half(pair_classifier) -> None:
    model = pair_classifier
    pairs = [("a dog runs", "a man"), ("two red men rest .", "the dog")]
    first, second = (model.encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
    features = np.concatenate([first, second, np.abs(first - second), first * second], axis=1)
    with torch.no_grad():
        logits = model.mlp(torch.from_numpy(features)).double().numpy()
    powers = np.exp(logits)
    expected = powers / powers.sum(axis=1, keepdims=True)
    assert difference(model.predict_proba(pairs), expected) <= TOLERANCE


def test_probabilities_have_a_row_per_pair_and_a_column_per_label(pair_classifier) -> None:
    pairs = [(one, other) for one in SENTENCES for other in SENTENCES[:3]]
    found = pair_classifier.predict_proba(pairs, batch_size=4)
    assert found.shape == (24, 3) and found.dtype == np.float32
    assert (found > 0).all() and difference(found.sum(axis=1), np.ones(24)) <= TOLERANCE
    assert np.ptp(found, axis=0).max() > 1e-3
    best = [pair_classifier.labels[number] for number in found.argmax(axis=1)]
    assert pair_classifier.predict(pairs, batch_size=4) == best


def test_same_probabilities_alone_and_in_any_batch(pair_classifier, text_classifier) -> None:
    pairs = list(zip(SENTENCES, SENTENCES[::-1], strict=True))
    for model, examples in ((pair_classifier, pairs), (text_classifier, SENTENCES)):
        alone = np.concatenate([model.predict_proba([example]) for example in examples])
        assert np.ptp(alone, axis=0).max() > 1e-3
        assert model.predict_proba([]).shape == (0, 3) and model.predict([]) == []
        for batch_size in (1, 2, 7, 64):
            assert difference(model.predict_proba(examples, batch_size), alone) <= TOLERANCE
        moved = model.predict_proba(examples[::-1])[::-1]
        assert difference(moved, alone) <= TOLERANCE


def test_columns_follow_the_order_of_the_labels(make_encoder) -> None:
    encoder = make_encoder()
    model = TextClassifier(encoder, ["c", "a", "b"]).eval()
    with torch.no_grad():
        model.mlp.output.weight.zero_()
        model.mlp.output.bias.copy_(torch.tensor([1.0, 3.0, 2.0]))
    assert model.labels == ("c", "a", "b")
    assert model.predict(["a dog"]) == ["a"]
    assert model.predict_proba(["a dog"])[0].argsort().tolist() == [0, 2, 1]


def test_batches_of_pairs_are_bounded_by_the_longer_side(pair_classifier, monkeypatch) -> None:
    shapes = []
    forward = pair_classifier.forward

    def watched(batch: Batch, weights: bool = False):
        shapes.append(tuple(batch.mask.shape))
        return forward(batch, weights)

    monkeypatch.setattr(pair_classifier, "forward", watched)
    pairs = [("dog", "dog " * length) for length in (1, 300, 2, 200, 3, 250)]
    assert pair_classifier.predict_proba(pairs, batch_size=2).shape == (6, 3)
    assert sum(rows for rows, _ in shapes) == 12
    assert all(rows * time <= 2 * 2 * 128 or rows == 2 for rows, time in shapes)
    assert sorted(time for _, time in shapes) == [2, 3, 200, 250, 300]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (
            "pair",
            [("a", "b"), ("a", "b", "c")],
            "pair 1 is ('a', 'b', 'c'); expected two sentences",
        ),
        ("pair", ["ab"], "pair 0 is 'ab'; expected two sentences"),
        ("pair", [None], "pair 0 is None; expected two sentences"),
        ("pair", [("a", "b"), ("a", 5)], "pair 1: got 5 (int); expected a sentence"),
        ("pair", None, "got None (NoneType); expected a list"),
        ("text", "a dog", "got one string; expected a list of sentences: predict([sentence])"),
        ("text", ["a", None], "sentence 1: got None (NoneType); expected a sentence"),
    ],
)
def test_what_is_no_example_is_refused_by_number(request, kind, given, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        request.getfixturevalue(f"{kind}_classifier").predict(given)
    assert expected in str(caught.value)


def test_a_batch_size_below_one_is_refused(pair_classifier) -> None:
    with pytest.raises(InputError, match="batch_size is 0; expected 1 or more"):
        pair_classifier.predict([("a", "b")], batch_size=0)
    with pytest.raises(InputError, match="batch_size is -3; expected 1 or more"):
        pair_classifier.encoder.encode(["a"], batch_size=-3)


@pytest.mark.parametrize("labels", [[], ["one"], ["a", "b", "a"], [0, 1], "ab"], ids=repr)
def test_labels_must_be_two_or_more_different_texts(make_encoder, labels) -> None:
    with pytest.raises(InputError, match="expected two or more different texts"):
        TextClassifier(make_encoder(), labels)


def test_a_batch_of_an_odd_number_of_sentences_is_no_batch_of_pairs(pair_classifier) -> None:
    batch = pair_classifier.text.batch([["dog"], ["man"], ["two"]])
    assert isinstance(batch, Batch)
    with pytest.raises(InputError, match="the two sides have shapes"):
        pair_classifier(batch)


@pytest.mark.parametrize("kind", ["text_classifier", "pair_classifier"])
def test_saved_classifier_comes_back_bit_for_bit(request, tmp_path: Path, kind: str) -> None:
    model = request.getfixturevalue(kind)
    model.save_pretrained(tmp_path / "model")
    loaded = type(model).from_pretrained(tmp_path / "model")
    assert loaded.labels == model.labels and loaded.settings == model.settings
    assert not loaded.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    examples = (
        SENTENCES if kind == "text_classifier" else [(sentence, "dog") for sentence in SENTENCES]
    )
    assert np.array_equal(loaded.predict_proba(examples), model.predict_proba(examples))
    assert type(load_model(tmp_path / "model")) is type(model)


def test_each_kind_of_folder_opens_as_its_kind_only(
    sentence_encoder, text_classifier, pair_classifier, tmp_path: Path
) -> None:
    for model in (sentence_encoder, text_classifier, pair_classifier):
        kind, folder = type(model), tmp_path / type(model).__name__
        model.save_pretrained(folder)
        for other in {TextClassifier, PairClassifier} - {kind}:
            with pytest.raises(FolderError) as caught:
                other.from_pretrained(folder)
            message = str(caught.value)
            assert f"contains a {kind.__name__}; expected a {other.__name__}" in message
            assert f"genpool.{kind.__name__}.from_pretrained" in message


def test_without_a_path_the_missing_pretrained_model_is_explained() -> None:
    with pytest.raises(FolderError, match=r"one that you trained, TextClassifier\.from_pretrained"):
        TextClassifier.from_pretrained()
