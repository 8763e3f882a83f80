"""What is trained, compared with NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from genpool.errors import InputError
from genpool.pooling import POOLINGS
from genpool.probing.fitting import (
    LayerMix,
    ProbeModel,
    ProbeTraining,
    fit_probe,
    head_means,
    probe_logits,
    probe_pooling,
    start_classifier,
    training_steps,
)
from genpool.probing.token_states import TokenStates

DIM = 6


def random_states(texts: int, layers: int = 1, seed: int = 0) -> TokenStates:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 7, size=texts)
    rows = random.normal(2.0, 3.0, size=(lengths.sum(), layers, DIM)).astype(np.float16)
    return TokenStates(rows, np.cumsum(lengths) - lengths, lengths)


def make_model(pooling: str = "generalized", layers: int = 1, classes: int = 3) -> ProbeModel:
    torch.manual_seed(0)
    options = {"heads": 2, "hidden_dim": 4, "start": "mean", "initial_std": 0.01}
    return ProbeModel(probe_pooling(pooling, DIM, True, options), layers, classes)


def text_means(states: TokenStates) -> np.ndarray:
    """The mean of the tokens of every text, in NumPy."""
    parts = zip(states.starts, states.lengths, strict=True)
    return np.stack(
        [
            states.rows[start : start + length, 0].astype(float).mean(axis=0)
            for start, length in parts
        ]
    )


def random_labels(texts: int, classes: int = 3) -> np.ndarray:
    return np.random.default_rng(1).integers(classes, size=texts)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("pooling", ["mean", "generalized"])
def test_it_starts_as_logistic_regression_on_the_mean(pooling: str, classes: int) -> None:
    states, labels = random_states(80), random_labels(80, classes)
    model = make_model(pooling, classes=classes)
    start = start_classifier(model, states, labels, seed=0)
    means = text_means(states)
    standardized = (means - means.mean(axis=0)) / means.std(axis=0)
    expected = LogisticRegression(C=start.c, max_iter=1000).fit(standardized, labels)
    probabilities = probe_logits(model, states).softmax(dim=1).numpy()
    np.testing.assert_allclose(probabilities, expected.predict_proba(standardized), atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_its_penalty_the_start_is_a_minimum_for_the_classifier(classes: int) -> None:
    states, labels = random_states(80), random_labels(80, classes)
    model = make_model(classes=classes)
    start = start_classifier(model, states, labels, seed=0)
    logits = model(*states.batch(np.arange(80)))
    loss = functional.cross_entropy(logits, torch.from_numpy(labels))
    loss = loss + start.penalty * (model.classifier.weight**2).sum()
    loss.backward()
    assert model.classifier.weight.grad is not None
    assert float(model.classifier.weight.grad.abs().max()) < 1e-3
    without_penalty = functional.cross_entropy(
        model(*states.batch(np.arange(80))), torch.from_numpy(labels)
    )
    (gradient,) = torch.autograd.grad(without_penalty, model.classifier.weight)
    assert float(gradient.abs().max()) > 1e-3


def test_max_pooling_starts_as_logistic_regression_on_the_maximum() -> None:
    states, labels = random_states(80), random_labels(80)
    model = make_model("max")
    start = start_classifier(model, states, labels, seed=0)
    parts = zip(states.starts, states.lengths, strict=True)
    maxima = np.stack(
        [
            states.rows[start : start + length, 0].astype(float).max(axis=0)
            for start, length in parts
        ]
    )
    standardized = (maxima - maxima.mean(axis=0)) / maxima.std(axis=0)
    expected = LogisticRegression(C=start.c, max_iter=1000).fit(standardized, labels)
    probabilities = probe_logits(model, states).softmax(dim=1).numpy()
    np.testing.assert_allclose(probabilities, expected.predict_proba(standardized), atol=1e-3)


def test_a_dimension_that_never_changes_does_no_harm() -> None:
    states = random_states(30)
    states.rows[:, :, 2] = 5.0
    model = make_model()
    start_classifier(model, states, random_labels(30), seed=0)
    assert torch.isfinite(probe_logits(model, states)).all()


def test_layers_are_mixed_by_the_softmax_of_their_scores() -> None:
    mix = LayerMix(3)
    rows = torch.randn(5, 3, 4)
    torch.testing.assert_close(mix(rows), rows.mean(dim=1))
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.0, 1.0, -2.0]))
    weights = np.exp([0.0, 1.0, -2.0]) / np.exp([0.0, 1.0, -2.0]).sum()
    expected = sum(weights[layer] * rows[:, layer].numpy() for layer in range(3))
    np.testing.assert_allclose(mix(rows).detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, cls in POOLINGS.items() if not cls.needs_gates])
def test_every_pooling_that_needs_no_gates_can_be_trained(name: str) -> None:
    states, labels = random_states(40), random_labels(40)
    model = make_model(name)
    fit_probe(model, states, labels, ProbeTraining(steps=3, batch_size=8))
    assert torch.isfinite(probe_logits(model, states)).all()
    assert head_means(model, states).shape == (40, DIM)


def test_gated_pooling_and_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="unknown pooling of a probe 'gated'"):
        probe_pooling("gated", 4, False, {})
    with pytest.raises(InputError, match="Did you mean 'generalized'"):
        probe_pooling("generalised", 4, False, {})


def marked_states(texts: int, seed: int) -> tuple[TokenStates, np.ndarray]:
    """The sign of dimension 1 at the marked token is the label; at the others it is noise."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(texts, 8, 1, DIM))
    rows[:, :, :, 0] = -1.0
    labels = random.integers(2, size=texts)
    place = random.integers(8, size=texts)
    rows[np.arange(texts), place, 0, 0] = 3.0  # the mark
    rows[np.arange(texts), place, 0, 1] = 2.0 * labels - 1.0
    flat = rows.reshape(texts * 8, 1, DIM).astype(np.float16)
    return TokenStates(flat, np.arange(texts) * 8, np.full(texts, 8)), labels


def test_generalized_pooling_finds_the_token_that_the_mean_hides() -> None:
    states, labels = marked_states(400, seed=0)
    unseen, gold = marked_states(400, seed=1)
    accuracy = {}
    for pooling in ("mean", "generalized"):
        model = make_model(pooling, classes=2)
        fit_probe(model, states, labels, ProbeTraining(steps=300, learning_rate=1e-2, extent=1.0))
        accuracy[pooling] = float(
            (probe_logits(model, unseen).argmax(dim=1).numpy() == gold).mean()
        )
    assert accuracy["mean"] < 0.75
    assert accuracy["generalized"] > 0.9


def test_the_layer_that_knows_the_label_gets_the_largest_weight() -> None:
    states, labels = marked_states(200, seed=0)
    random = np.random.default_rng(5)
    noise = random.normal(size=(len(states.rows), 2, DIM)).astype(np.float16)
    signal = states.rows + np.repeat(2 * labels - 1, 8)[:, None, None].astype(np.float16)
    mixed = TokenStates(
        np.concatenate([noise[:, :1], signal, noise[:, 1:]], axis=1), states.starts, states.lengths
    )
    model = make_model("mean", layers=3, classes=2)
    fit_probe(model, mixed, labels, ProbeTraining(steps=100, learning_rate=2e-2))
    assert model.mix is not None
    assert int(model.mix.scores.argmax()) == 1


def test_equal_seeds_train_equal_probes() -> None:
    states, labels = random_states(40), random_labels(40)
    trained = []
    for seed in (0, 0, 1):
        model = make_model()
        fit_probe(model, states, labels, ProbeTraining(steps=5, extent=1.0, seed=seed))
        trained.append(probe_logits(model, states))
    assert torch.equal(trained[0], trained[1])
    assert not torch.equal(trained[0], trained[2])


def test_the_number_of_steps_grows_with_the_texts_within_limits() -> None:
    steps = [training_steps(texts, 32) for texts in (10, 200, 1000, 5000, 10**6)]
    assert steps == sorted(steps) and steps[0] < steps[-1]
