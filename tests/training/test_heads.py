"""The penalties on heads and the distances between them, against NumPy loops."""

from __future__ import annotations

import math
import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from genpool import PairClassifier, TextClassifier
from genpool.config import Part
from genpool.errors import InputError
from genpool.pooling import Pooled
from genpool.pooling.penalties import Penalty
from genpool.text import Batch
from genpool.training.heads import (
    MAX_PADDED_TOKENS,
    SAMPLE_EXAMPLES,
    HeadDistances,
    HeadPenalty,
    add_penalties,
    head_penalties,
    heads_report,
    penalty_gradient_share,
    penalty_metrics,
    sample_rows,
)
from genpool.training.objective import LossTerm
from genpool.training.preparation import Prepared, prepare
from genpool.training.settings import PenaltySettings
from genpool.training.state import SUMS
from tests.helpers.small_models import LABELS, MakeEncoder, lively
from tests.helpers.training_runs import metrics, run, settings


def hinge(one: np.ndarray, other: np.ndarray, threshold: float) -> float:
    return max(threshold - float(((one - other) ** 2).sum()), 0.0)


def pooled(sentences: int = 4, heads: int = 2, time: int = 3, width: int = 1) -> Pooled:
    random = torch.Generator().manual_seed(0)
    vectors = torch.rand(sentences, heads, 6, generator=random)
    weights = torch.rand(sentences, heads, time, width, generator=random)
    weights = weights / weights.sum(dim=2, keepdim=True)
    return Pooled(vectors.flatten(1), vectors, weights)


def terms(penalties: list[Penalty]) -> list[float]:
    return [float(penalty.term) for penalty in penalties]


def test_no_penalty_and_a_penalty_of_weight_zero_add_nothing(pair_classifier):
    assert head_penalties(PenaltySettings(), pair_classifier.encoder, pooled(), 2) == []
    assert not PenaltySettings().is_enabled
    assert not PenaltySettings("parameter", weight=0.0).is_enabled


def test_the_parameter_penalty_is_one_term_on_the_first_matrices(pair_classifier):
    w1 = pair_classifier.encoder.pooling.w1.detach().numpy()
    settings = PenaltySettings("parameter", weight=0.5, threshold=30.0)
    (penalty,) = head_penalties(settings, pair_classifier.encoder, pooled(), 2)
    assert float(penalty.term.detach()) == pytest.approx(0.5 * hinge(w1[0], w1[1], 30.0), rel=1e-5)
    penalty.term.backward()
    assert pair_classifier.encoder.pooling.w1.grad.abs().max() > 0


def test_the_terms_of_the_two_sides_of_pairs_are_added(pair_classifier):
    output = pooled(sentences=4)
    heads = output.heads.numpy()
    settings = PenaltySettings("embedding", weight=0.1, threshold=2.0)
    sides = [
        0.1 * np.mean([hinge(heads[row][0], heads[row][1], 2.0) for row in rows])
        for rows in ((0, 1), (2, 3))
    ]
    penalties = head_penalties(settings, pair_classifier.encoder, output, 2)
    assert terms(penalties) == pytest.approx(sides, rel=1e-5)


@pytest.mark.parametrize("average", ["sentence", "batch"])
def test_the_attention_penalty_is_a_hinge_per_sentence_or_of_the_batch(text_classifier, average):
    output = pooled(sentences=3, width=6)
    assert output.weights is not None
    weights = output.weights.numpy()
    distances = [float(((row[0] - row[1]) ** 2).sum()) for row in weights]
    threshold = sorted(distances)[1]  # one hinge inactive, so that the two ways differ
    per_sentence = float(np.mean([max(threshold - distance, 0.0) for distance in distances]))
    of_batch = max(threshold - float(np.mean(distances)), 0.0)
    assert per_sentence != pytest.approx(of_batch)
    settings = PenaltySettings("attention", 1.0, threshold, average)
    expected = per_sentence if average == "sentence" else of_batch
    assert terms(head_penalties(settings, text_classifier.encoder, output, 1)) == pytest.approx(
        [expected], rel=1e-4
    )


def test_lin_and_others_penalty_is_chosen_by_the_name_scalar(text_classifier):
    output = pooled(sentences=2)
    assert output.weights is not None
    rows = output.weights[..., 0].numpy()
    total = sum(((row @ row.T - np.eye(2)) ** 2).sum() / 2 for row in rows)
    penalties = head_penalties(PenaltySettings("scalar", 0.3), text_classifier.encoder, output, 1)
    assert terms(penalties) == pytest.approx([0.3 * total], rel=1e-5)


def penalty(term: float, distances: list[float], active: float) -> Penalty:
    return Penalty(torch.tensor(term), torch.tensor(distances), torch.tensor(active))


def add(sums: dict[str, float], *penalties: Penalty, share: float = 1.0) -> float:
    return add_penalties(sums, [LossTerm(one.term, True, one) for one in penalties], share)


def test_the_metrics_of_a_penalty_are_means_over_the_steps():
    sums = dict.fromkeys(SUMS, 0.0)
    assert penalty_metrics(sums, 0, math.inf) == {}
    single = add(sums.copy(), penalty(0.0, [], 0.0))  # one head has no distances
    assert "penalty_distance_min" not in penalty_metrics(sums, 1, single)
    closest = add(sums, penalty(1.0, [2.0, 4.0], 0.5), penalty(2.0, [6.0, 8.0], 1.0))
    closest = min(closest, add(sums, penalty(3.0, [1.0, 3.0], 0.25)))
    assert penalty_metrics(sums, 2, closest) == pytest.approx(
        {
            "penalty": (3.0 + 3.0) / 2,
            "penalty_active": (0.75 + 0.25) / 2,
            "penalty_distance_mean": (5.0 + 2.0) / 2,
            "penalty_distance_min": 1.0,
        }
    )


def test_shares_of_processes_add_up_to_what_one_process_sees():
    whole, parts = dict.fromkeys(SUMS, 0.0), dict.fromkeys(SUMS, 0.0)
    closest = add(whole, penalty((1.0 + 2 * 4.0) / 3, [1.0, 4.0, 4.0], 2 / 3))
    smallest = [add(parts, penalty(1.0, [1.0], 0.0), share=1 / 3)]
    smallest += [add(parts, penalty(4.0, [4.0, 4.0], 1.0), share=2 / 3)]
    assert parts == pytest.approx(whole)
    assert min(smallest) == closest


def test_a_penalty_that_is_inactive_for_an_epoch_is_reported(tables, tmp_path, monkeypatch, capsys):
    def prepare_apart(*arguments: Any) -> Prepared:
        """Heads as far apart as those of the paper's sizes are from the start."""
        prepared = prepare(*arguments)
        with torch.no_grad():
            prepared.model.encoder.pooling.get_parameter("w1")[0] += 1.0
        return prepared

    monkeypatch.setattr("genpool.training.fitting.prepare", prepare_apart)
    run(tables, tmp_path / "run", "penalty.name=parameter", "penalty.weight=0.1")
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == 2  # one for each epoch
    expected = r"the parameter penalty was inactive.*threshold 1 .*It has no effect\."
    assert all(re.search(expected, warning) for warning in warnings)
    line = metrics(tmp_path / "run")[0]
    assert line["penalty"] == line["penalty_active"] == 0
    # w1 has 4 x 16 values per head, which were moved apart by 1.
    assert line["penalty_distance_min"] > 48
    assert f"mean distance {line['penalty_distance_mean']:.3g}" in warnings[0]
    assert line["penalty_gradient_share"] == line["heads_parameter_active"] == 0
    report = (tmp_path / "run" / "report.md").read_text()
    text = warnings[-1].removeprefix("warning: ")
    assert f"**Warning** (2 of 2 evaluations): {text}" in report


# --- Heads ----------------------------------------------------------------------------------------
SENTENCES = [
    ["the", "man", "sleeps"],
    ["a", "red", "dog", "runs", ",", "two", "rests"],
    ["dog"],
    ["not", "the", "man"],
]


@pytest.fixture
def three_heads(make_encoder: MakeEncoder) -> PairClassifier:
    pooling = Part("generalized", {"heads": 3, "hidden_dim": 4})
    return lively(PairClassifier(make_encoder(pooling), LABELS), seed=1)


def by_loops(values: np.ndarray, threshold: float) -> HeadDistances:
    """values (sentences, heads, ...): every distance on its own."""
    pairs = list(combinations(range(values.shape[1]), 2))
    of_pairs: dict[tuple[int, int], list[float]] = {pair: [] for pair in pairs}
    active = 0
    for sentence in values:
        for i, j in pairs:
            distance = float(((sentence[i] - sentence[j]) ** 2).sum())
            of_pairs[i, j].append(distance)
            active += distance < threshold
    means = [sum(distances) / len(distances) for distances in of_pairs.values()]
    share = active / (len(pairs) * len(values))
    return HeadDistances(sum(means) / len(means), min(means), share)


def close(measured: HeadDistances | None, expected: HeadDistances) -> None:
    assert measured is not None
    assert measured.mean == pytest.approx(expected.mean, rel=1e-5)
    assert measured.smallest == pytest.approx(expected.smallest, rel=1e-5)
    assert measured.active == pytest.approx(expected.active, abs=1e-6)


def pooled_values(model: PairClassifier, batch: Batch) -> dict[str, np.ndarray]:
    with torch.no_grad():
        output = model.eval()(batch, weights=True).pooled
    parameters = model.encoder.pooling.get_parameter("w1").detach()[None]
    return {
        "parameters": parameters.numpy(),
        "attention": output.weights.numpy(),
        "embeddings": output.heads.numpy(),
    }


def test_distances_and_active_hinges_by_loops(three_heads):
    batch = three_heads.text.batch(SENTENCES)
    values = pooled_values(three_heads, batch)
    for name, measured in values.items():
        # A threshold between the distances, so that some hinges are active and some are not.
        threshold = by_loops(measured, 0.0).mean
        report = heads_report(three_heads.train(), batch, threshold)
        expected = by_loops(measured, threshold)
        assert 0 < expected.active < 1, name
        close(getattr(report, name), expected)
    assert (report.heads, report.sentences) == (3, 4)
    close(heads_report(three_heads.encoder, batch, threshold).embeddings, expected)


def test_a_hinge_of_the_batch_mean_counts_each_side_of_pairs(three_heads):
    batch = three_heads.text.batch(SENTENCES)
    heads = pooled_values(three_heads, batch)["embeddings"]
    means = []
    for side in (heads[:2], heads[2:]):
        for i, j in combinations(range(3), 2):
            means.append(float(np.mean([((row[i] - row[j]) ** 2).sum() for row in side])))
    threshold = sorted(means)[2] * 1.0001
    report = heads_report(three_heads, batch, threshold, average="batch")
    assert report.embeddings.active == pytest.approx(3 / 6)
    plain = heads_report(three_heads, batch, threshold)
    assert report.embeddings.mean == pytest.approx(plain.embeddings.mean)
    assert report.embeddings.smallest == pytest.approx(plain.embeddings.smallest)


def test_shared_parameters_have_no_distance_and_one_head_or_no_sentence_is_refused(make_encoder):
    encoder, single = make_encoder("scalar"), make_encoder("max")
    report = heads_report(encoder, encoder.text.batch(SENTENCES))
    assert report.parameters is None and report.attention is not None
    values = ("distance_mean", "distance_min", "active")
    names = {f"heads_{kind}_{value}" for kind in ("attention", "embedding") for value in values}
    assert report.metrics().keys() == names
    with pytest.raises(InputError, match="1 head; expected two or more"):
        heads_report(single, single.text.batch(SENTENCES))
    with pytest.raises(InputError, match="no sentence"):
        heads_report(encoder, encoder.text.batch([]))


# --- The share of the gradient -------------------------------------------------------------------


def entropy_gradients(model: PairClassifier, batch: Batch, labels: Tensor) -> dict[str, np.ndarray]:
    entropy = functional.cross_entropy(model.eval()(batch).logits, labels)
    named = dict(model.encoder.pooling.named_parameters())
    gradients = torch.autograd.grad(entropy, list(named.values()))
    return {name: value.double().numpy() for name, value in zip(named, gradients, strict=True)}


def test_the_gradient_of_the_parameter_penalty_by_its_derivative(three_heads):
    batch, labels = three_heads.text.batch(SENTENCES), torch.tensor([2, 0])
    w1 = three_heads.encoder.pooling.get_parameter("w1").detach().double().numpy()
    distances = {(i, j): ((w1[i] - w1[j]) ** 2).sum() for i, j in combinations(range(3), 2)}
    threshold, weight = float(np.mean(list(distances.values()))), 0.01
    of_penalty = np.zeros_like(w1)
    for (i, j), distance in distances.items():
        if distance < threshold:  # d/dW1_i of -||W1_i - W1_j||^2
            of_penalty[i] -= 2 * weight * (w1[i] - w1[j])
            of_penalty[j] += 2 * weight * (w1[i] - w1[j])
    gradients = entropy_gradients(three_heads, batch, labels)
    gradients["w1"] = gradients["w1"] + of_penalty
    total = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    expected = np.sqrt((of_penalty**2).sum()) / total
    assert expected > 0.01
    penalty = HeadPenalty(PenaltySettings("parameter", weight, threshold))
    share = penalty_gradient_share(three_heads.train(), batch, labels, [penalty])
    assert share == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["attention", "embedding"])
def test_the_gradient_share_by_finite_differences(three_heads, name):
    model = three_heads.double().eval()
    batch, labels = model.text.batch(SENTENCES), torch.tensor([2, 0])
    penalty = HeadPenalty(PenaltySettings(name, weight=0.5, threshold=1e3))

    def losses() -> np.ndarray:
        with torch.no_grad():
            output = model(batch, weights=True)
            entropies = functional.cross_entropy(output.logits, labels, reduction="none")
            term = sum(float(term.value) for term in penalty(model, output, entropies, labels))
            entropy = entropies.mean()
        return np.array([term, float(entropy) + term])

    squares = np.zeros(2)
    step = 1e-5
    for parameter in model.encoder.pooling.parameters():
        flat = parameter.data.view(-1)
        for at in range(len(flat)):
            before = float(flat[at])
            flat[at] = before + step
            above = losses()
            flat[at] = before - step
            squares += ((above - losses()) / (2 * step)) ** 2
            flat[at] = before
    expected = np.sqrt(squares[0] / squares[1])
    assert penalty_gradient_share(model, batch, labels, [penalty]) == pytest.approx(
        expected, rel=1e-3
    )


def test_an_inactive_penalty_has_no_share_and_without_one_there_is_none(three_heads):
    batch, labels = three_heads.text.batch(SENTENCES), torch.tensor([2, 0])
    inactive = HeadPenalty(PenaltySettings("parameter", threshold=1e-6))
    assert penalty_gradient_share(three_heads, batch, labels, [inactive]) == 0
    assert penalty_gradient_share(three_heads, batch, labels, []) is None
    assert all(parameter.grad is None for parameter in three_heads.parameters())


# --- In every run --------------------------------------------------------------------------------


def test_the_metrics_of_a_run_are_those_of_its_model_on_a_seeded_sample(tables, finished):
    prepared = prepare(settings(), tables)
    model = TextClassifier.from_pretrained(finished / "last")
    rows = sample_rows(prepared.dev, seed=0)
    assert len(rows) == 20
    expected = heads_report(model, prepared.dev.batch(rows, prepared.table)).metrics()
    last = metrics(finished)[-1]
    assert len(expected) == 9
    assert {name: last[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_a_model_with_one_head_is_not_measured(tables, tmp_path):
    run(tables, tmp_path / "run", "pooling.name=max", "training.epochs=1")
    assert not [name for name in metrics(tmp_path / "run")[0] if name.startswith("heads_")]
    assert "## Heads" not in (tmp_path / "run" / "report.md").read_text()


def test_measuring_does_not_change_what_is_trained(tables, finished, tmp_path, monkeypatch):
    monkeypatch.setattr("genpool.training.heads.run_metrics", lambda *arguments: {})
    run(tables, tmp_path / "run")
    for model in ("best", "last"):
        path = f"{model}/model.safetensors"
        assert (tmp_path / "run" / path).read_bytes() == (finished / path).read_bytes()


def test_the_sample_is_seeded_and_small_where_texts_are_long(tables):
    train = prepare(settings(), tables).train
    rows = sample_rows(train, 3)
    assert rows == sample_rows(train, 3) and rows != sample_rows(train, 4)
    assert len(set(rows)) == len(rows) == SAMPLE_EXAMPLES
    long = train.take(range(len(train)))
    long.starts = train.starts * 200  # only lengths are read
    rows = sample_rows(long, 3)
    longest = long.lengths.max(axis=1)
    assert 1 <= len(rows) < SAMPLE_EXAMPLES
    assert len(rows) * longest[rows].max() <= MAX_PADDED_TOKENS
