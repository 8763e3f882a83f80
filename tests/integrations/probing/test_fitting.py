"""What is trained, compared with NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from genpool.integrations.probing import AttentiveProbe, fitting
from genpool.integrations.probing.fitting import (
    ENOUGH_ROWS,
    EXTENTS,
    FOLDS,
    ProbeModel,
    fit_probe,
    fold_count,
    folds,
    probe_logits,
    probe_pooling,
    set_extent,
    start_classifier,
    steps_for,
)
from genpool.integrations.probing.token_states import TokenStates
from genpool.pooling import POOLINGS
from genpool.training.state import trained_weights

DIM = 6


def make_states(rows: np.ndarray, lengths: np.ndarray) -> TokenStates:
    places = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
    return TokenStates(rows.astype(np.float16), places)


def random_states(texts: int) -> TokenStates:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 7, size=texts)
    return make_states(random.normal(2.0, 3.0, size=(lengths.sum(), 1, DIM)), lengths)


def make_model(pooling: str = "generalized", layers: int = 1, classes: int = 3) -> ProbeModel:
    torch.manual_seed(0)
    options = {"heads": 2, "hidden_dim": 4}
    return ProbeModel(probe_pooling(pooling, DIM, True, **options), layers, classes)


def pooled_by_loop(states: TokenStates, pooling: str) -> np.ndarray:
    """The mean or the maximum of the tokens of every text, in NumPy."""
    reduce = np.max if pooling == "max" else np.mean
    places = states.places.tolist()
    texts = [states.rows[start : start + length, 0].astype(float) for start, length in places]
    return np.stack([reduce(tokens, axis=0) for tokens in texts])


def random_labels(texts: int, classes: int = 3) -> np.ndarray:
    return np.random.default_rng(1).integers(classes, size=texts)


@pytest.mark.parametrize(
    ("pooling", "classes"), [("mean", 2), ("generalized", 2), ("generalized", 3), ("max", 3)]
)
def test_it_starts_as_logistic_regression_on_the_untrained_pooling(
    pooling: str, classes: int
) -> None:
    states, labels = random_states(80), random_labels(80, classes)
    model = make_model(pooling, classes=classes)
    c, _ = start_classifier(model, states, labels, seed=0)
    means = pooled_by_loop(states, pooling)
    standardized = (means - means.mean(axis=0)) / means.std(axis=0)
    expected = LogisticRegression(C=c, max_iter=1000).fit(standardized, labels)
    probabilities = probe_logits(model, states).softmax(dim=1).numpy()
    np.testing.assert_allclose(probabilities, expected.predict_proba(standardized), atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_its_penalty_the_start_is_a_minimum_for_the_classifier(classes: int) -> None:
    states, labels = random_states(80), random_labels(80, classes)
    model = make_model(classes=classes)
    _, penalty = start_classifier(model, states, labels, seed=0)
    logits = model(*states.batch(np.arange(80)))
    loss, weight = (
        functional.cross_entropy(logits, torch.from_numpy(labels)),
        model.classifier.weight,
    )
    (without_penalty,) = torch.autograd.grad(loss, weight)
    (of_penalty,) = torch.autograd.grad(penalty * (weight**2).sum(), weight)
    assert (without_penalty + of_penalty).abs().max() < 1e-3 < without_penalty.abs().max()


def test_layers_are_mixed_by_the_softmax_of_their_scores() -> None:
    model, rows = make_model(layers=3), torch.randn(5, 3, DIM)
    torch.testing.assert_close(model.mixed(rows), rows.mean(dim=1))
    assert model.layer_scores is not None
    with torch.no_grad():
        model.layer_scores.copy_(torch.tensor([0.0, 1.0, -2.0]))
    weights = np.exp([0.0, 1.0, -2.0]) / np.exp([0.0, 1.0, -2.0]).sum()
    expected = sum(weights[layer] * rows[:, layer].numpy() for layer in range(3))
    np.testing.assert_allclose(model.mixed(rows).detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, cls in POOLINGS.items() if not cls.needs_gates])
def test_every_pooling_that_needs_no_gates_can_be_trained(name: str) -> None:
    states, labels = random_states(40), random_labels(40)
    states.rows[:, :, 2] = 5.0  # a dimension that never changes does no harm
    model = make_model(name)
    fit_probe(model, states, labels, AttentiveProbe(steps=3, batch_size=8, extent=1.0))
    assert torch.isfinite(probe_logits(model, states)).all()


def marked_states(texts: int, seed: int) -> tuple[TokenStates, np.ndarray]:
    """The sign of dimension 1 at the marked token is the label; at the others it is noise."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(texts, 8, 1, DIM))
    rows[:, :, :, 0] = -1.0
    labels = random.integers(2, size=texts)
    place = random.integers(8, size=texts)
    rows[np.arange(texts), place, 0, 0] = 3.0  # the mark
    rows[np.arange(texts), place, 0, 1] = 2.0 * labels - 1.0
    return make_states(rows.reshape(texts * 8, 1, DIM), np.full(texts, 8)), labels


def test_generalized_pooling_finds_the_token_that_the_mean_hides() -> None:
    states, labels = marked_states(400, seed=0)
    unseen, gold = marked_states(400, seed=1)
    accuracy = {}
    for pooling in ("mean", "generalized"):
        model = make_model(pooling, classes=2)
        fit_probe(model, states, labels, AttentiveProbe(steps=150, learning_rate=2e-2, extent=1.0))
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
    rows = np.concatenate([noise[:, :1], signal, noise[:, 1:]], axis=1)
    mixed = TokenStates(rows, states.places)
    model = make_model("mean", layers=3, classes=2)
    fit_probe(model, mixed, labels, AttentiveProbe(steps=50, learning_rate=2e-2, extent=1.0))
    assert model.layer_scores is not None and int(model.layer_scores.argmax()) == 1


def test_equal_seeds_train_equal_probes() -> None:
    states, labels = random_states(40), random_labels(40)
    trained = []
    for seed in (0, 0, 1):
        model = make_model()
        fit_probe(model, states, labels, AttentiveProbe(steps=5, extent=1.0, seed=seed))
        trained.append(probe_logits(model, states))
    assert torch.equal(trained[0], trained[1])
    assert not torch.equal(trained[0], trained[2])


def test_the_number_of_steps_grows_with_the_texts_within_limits() -> None:
    steps = [steps_for(AttentiveProbe(), texts) for texts in (10, 200, 1000, 5000, 10**6)]
    assert steps == sorted(steps) and steps[0] < steps[-1]


def test_every_row_is_held_out_once_and_labels_with_few_rows_never() -> None:
    labels = np.array([0] * 7 + [1] * 12 + [2] * 2)
    held = []
    for kept, held_out in folds(labels, seed=4):
        assert sorted([*kept, *held_out]) == list(range(21))
        assert set(labels[kept]) == {0, 1, 2}
        assert sum(labels[held_out] == 1) == 4
        held += held_out.tolist()
    assert sorted(held) == list(range(19))


def test_of_many_rows_as_many_folds_are_used_as_give_enough_rows() -> None:
    assert [fold_count(texts) for texts in (1, 200, 1000, 5000)] == [3, 3, 2, 1]
    labels = np.arange(2000) % 2
    held = [len(held_out) for _, held_out in folds(labels, seed=0)]
    assert len(held) == 1 and held[0] >= ENOUGH_ROWS
    assert held[0] == 2 * -(-1000 // FOLDS)  # of both labels


def test_weights_lie_on_the_line_between_start_and_end() -> None:
    model = make_model()
    start = {name: torch.randn_like(weight) for name, weight in trained_weights(model).items()}
    end = {name: torch.randn_like(weight) for name, weight in start.items()}
    for extent in (0.0, 0.25, 1.0):
        set_extent(model, start, end, extent)
        for name, weight in model.named_parameters():
            expected = (1 - extent) * start[name].numpy() + extent * end[name].numpy()
            np.testing.assert_allclose(weight.detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.95])
def test_the_extent_with_the_smallest_loss_on_held_out_rows_is_chosen(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose logits are its bias: the loss depends on the share of the labels alone."""
    labels = np.array([1] * int(300 * share) + [0] * (300 - int(300 * share)))

    def train(model: ProbeModel, *_: object) -> tuple[dict, dict]:
        start = {name: torch.zeros_like(part) for name, part in model.named_parameters()}
        return start, {**start, "classifier.bias": torch.tensor([0.0, 2.0])}

    monkeypatch.setattr(fitting, "start_classifier", lambda *_: (1.0, 0.0))
    monkeypatch.setattr(fitting, "train_probe", train)
    _, chosen = fit_probe(make_model(classes=2), random_states(300), labels, AttentiveProbe())
    ones = labels.mean()
    losses = [np.log1p(np.exp(2.0 * extent)) - ones * 2.0 * extent for extent in EXTENTS]
    assert chosen == EXTENTS[int(np.argmin(losses))]


def test_without_rows_to_hold_out_training_is_followed_to_its_end() -> None:
    states, labels = random_states(4), np.array([0, 0, 1, 2])
    assert fit_probe(make_model(), states, labels, AttentiveProbe(steps=2))[1] == 1.0


@pytest.mark.slow
def test_random_labels_lead_back_and_a_token_that_decides_leads_on() -> None:
    training = AttentiveProbe(steps=60, learning_rate=2e-2)
    _, extent = fit_probe(make_model(), random_states(60), random_labels(60), training)
    assert extent < 1
    states, labels = marked_states(300, seed=0)
    assert fit_probe(make_model(classes=2), states, labels, training)[1] == 1


def test_an_extent_of_zero_is_the_linear_start() -> None:
    states, labels = random_states(40), random_labels(40)
    model, start = make_model(), make_model()
    fit_probe(model, states, labels, AttentiveProbe(steps=3, extent=0.0))
    start_classifier(start, states, labels, seed=0)
    torch.testing.assert_close(probe_logits(model, states), probe_logits(start, states))
