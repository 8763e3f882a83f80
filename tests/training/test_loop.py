"""The loop: what decides the weights, what stops it, what it keeps."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from genpool import TextClassifier
from genpool.errors import GenpoolError, Interrupted, Stopped, TrainingError
from genpool.saving import storage
from genpool.training import fitting, run_folder
from genpool.training.loop import Run
from genpool.training.preparation import prepare
from genpool.training.run_folder import save_checkpoint
from genpool.training.state import trained_weights
from tests.helpers.training_runs import Killed, metrics, outcome, run, settings, stopping, weights

# --- What decides the weights --------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights_bit_for_bit(tables, finished, tmp_path):
    torch.manual_seed(99)  # whatever the program did before
    run(tables, tmp_path / "again")
    assert outcome(tmp_path / "again") == outcome(finished)


def test_the_model_learns(tables, tmp_path):
    results = run(tables, tmp_path / "run", "training.epochs=12", "training.seed=6")
    assert results["dev"]["accuracy"] >= 0.9
    assert results["test"]["accuracy"] >= 0.9
    losses = [line["train_loss"] for line in metrics(tmp_path / "run")]
    assert losses[-1] < losses[0] / 3


def by_hand(data: Path, overrides: tuple[str, ...], clip: float) -> dict[str, np.ndarray]:
    """The weights after three steps on all rows, by the equations of Adam in 64-bit numbers."""
    prepared = prepare(settings(*overrides), data)
    model, rows = prepared.model, list(range(len(prepared.train)))
    batch = prepared.train.batch(rows, prepared.table)
    labels = torch.from_numpy(prepared.train.labels)
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    first = {name: np.zeros(weight.shape) for name, weight in model.named_parameters()}
    second = {name: np.zeros(weight.shape) for name, weight in model.named_parameters()}
    for step in (1, 2, 3):
        weights_now = dict(model.named_parameters())
        loss = torch.nn.functional.cross_entropy(model(batch).logits, labels)
        computed = torch.autograd.grad(loss, [weights_now[name] for name in names])
        gradients = {
            name: value.double().numpy() for name, value in zip(names, computed, strict=True)
        }
        norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
        for name in names:
            gradient = gradients[name] * min(clip / norm, 1.0)
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.999 * second[name] + 0.001 * gradient**2
            mean = first[name] / (1 - 0.9**step)
            variance = second[name] / (1 - 0.999**step)
            change = 1e-3 * mean / (np.sqrt(variance) + 1e-8)
            weights_now[name].data -= torch.from_numpy(change).float()
    return {name: weight.detach().numpy() for name, weight in model.named_parameters()}


def test_a_step_is_adam_on_the_clipped_gradient_of_the_mean_loss(tables, tmp_path):
    overrides = (
        "training.epochs=3",
        "training.batch_size=48",
        "training.clip=0.01",
        "training.learning_rate=1e-3",
        "training.schedule=constant",
        "embedding.dropout=0",
        "classifier.dropout=0",
    )
    run(tables, tmp_path / "run", *overrides)
    trained = saved(tmp_path / "run", "last")
    expected, unclipped = (by_hand(tables, overrides, clip) for clip in (0.01, 1e9))
    worst = max(np.abs(trained[name].numpy() - weight).max() for name, weight in expected.items())
    assert worst < 1e-5
    assert (
        max(np.abs(unclipped[name] - weight).max() for name, weight in expected.items())
        > 10 * worst
    )


# --- Schedule ------------------------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Dev accuracies set in advance; what the weights and moments were at each evaluation."""

    script: Any = SimpleNamespace(accuracies=[], seen=[], after=[], moments=[], rates=[])
    evaluate = Run.evaluate

    def moments(run: Run) -> list[torch.Tensor]:
        return [
            moments["exp_avg"].clone() for moments in run.optimizer.state_dict()["state"].values()
        ]

    def accuracy(run: Run) -> dict[str, float]:
        script.seen.append(trained_weights(run.model))
        script.moments.append(moments(run))
        return {"dev_accuracy": script.accuracies[len(script.seen) - 1]}

    def watched(run: Run) -> None:
        evaluate(run)
        script.after.append(trained_weights(run.model))
        script.moments.append(moments(run))
        script.rates.append(run.state.learning_rate)

    monkeypatch.setattr(Run, "_dev_metrics", accuracy)
    monkeypatch.setattr(Run, "evaluate", watched)
    return script


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def saved(out: Path, model: str) -> dict[str, torch.Tensor]:
    return load_file(out / model / storage.WEIGHTS)


def test_restore_halve_goes_back_to_the_best_weights(tables, tmp_path, scripted, monkeypatch):
    used: list[float] = []
    step = torch.optim.AdamW.step

    def watched(optimizer: torch.optim.AdamW, *arguments: Any, **options: Any) -> Any:
        used.append(optimizer.param_groups[0]["lr"])
        return step(optimizer, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    scripted.accuracies = [0.5, 0.8, 0.7, 0.8, 0.6]
    run(tables, tmp_path / "run", "training.epochs=5")
    assert used == [0.05] * 18 + [0.025] * 12  # the third of five epochs is worse
    seen, after = scripted.seen, scripted.after
    assert not same(seen[0], seen[1])
    assert same(after[1], seen[1])  # an improvement: on it goes
    assert not same(seen[2], seen[1])
    assert same(after[2], seen[1])  # worse: back to the best
    assert same(after[3], seen[3])  # a tie: the later one is the best now
    assert same(after[4], seen[3])
    assert not same(seen[3], seen[1])
    for before, afterwards in zip(scripted.moments[::2], scripted.moments[1::2], strict=True):
        assert all(map(torch.equal, before, afterwards))
    assert scripted.rates == [0.05, 0.05, 0.025, 0.025, 0.0125]
    logged = [line["learning_rate"] for line in metrics(tmp_path / "run")]
    assert logged == [0.05, 0.05, 0.05, 0.025, 0.025]  # the rate of the steps before
    assert same(seen[3], saved(tmp_path / "run", "best"))
    assert same(seen[3], saved(tmp_path / "run", "last"))


def test_a_constant_schedule_never_restores_and_stops_by_patience(tables, tmp_path, scripted):
    scripted.accuracies = [0.5, 0.4, 0.4, 0.9]
    overrides = ("training.schedule=constant", "training.patience=2", "training.epochs=9")
    run(tables, tmp_path / "run", *overrides)
    assert [line["epoch"] for line in metrics(tmp_path / "run")] == [1, 2, 3]
    assert all(map(same, scripted.after, scripted.seen))
    assert scripted.rates == [0.05] * 3
    assert same(scripted.seen[0], saved(tmp_path / "run", "best"))
    assert same(scripted.seen[2], saved(tmp_path / "run", "last"))


def test_it_can_be_evaluated_between_the_ends_of_epochs(tables, tmp_path):
    run(tables, tmp_path / "run", "training.evaluate_every=4", "training.epochs=2")
    evaluated = [(line["step"], line["epoch"]) for line in metrics(tmp_path / "run")]
    assert evaluated == [(4, 0), (6, 1), (10, 1), (12, 2)]


@pytest.mark.parametrize("frozen", ["true", "false"])
def test_a_frozen_word_table_is_the_same_at_the_end_and_another_is_not(tables, tmp_path, frozen):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"{word}{' 0.5 2.0' * 6}\n" for word in ("film", "joy")))
    overrides = (f"embedding.frozen={frozen}", f"vectors.path={vectors}")
    before = prepare(settings(*overrides), tables).model.encoder.embedding.words
    run(tables, tmp_path / "run", *overrides)
    for model in ("best", "last"):
        after = saved(tmp_path / "run", model)["encoder.embedding.words"]
        assert torch.equal(after, before) is (frozen == "true")


def test_padding_is_reported_where_it_is_computed(tables, tmp_path):
    """48 rows of one batch: the padding can be counted by hand."""
    overrides = ("training.batch_size=48", "training.epochs=1", "penalty.name=attention")
    run(tables, tmp_path / "run", *overrides)
    lengths = prepare(settings(), tables).train.lengths.ravel()
    expected = 1 - lengths.sum() / (len(lengths) * lengths.max())
    assert expected > 0.1
    assert metrics(tmp_path / "run")[0]["idle_positions"] == pytest.approx(expected)


# --- What stops it -------------------------------------------------------------------------------


def test_a_loss_that_is_not_finite_names_its_batch_and_keeps_the_model(
    tables, tmp_path, monkeypatch
):
    run(tables, tmp_path / "one", "training.epochs=1")
    batches: list[list[int]] = []
    step = Run.step

    def poisoned(run: Run, examples: Any) -> None:
        """From step 8 on a weight is NaN."""
        batches.append(examples.tolist())
        if len(batches) == 8:
            with torch.no_grad():
                next(iter(run.model.mlp.parameters()))[0] = float("nan")
        step(run, examples)

    monkeypatch.setattr(Run, "step", poisoned)
    with pytest.raises(TrainingError) as error:
        run(tables, tmp_path / "run", "training.epochs=3")
    rows = ", ".join(map(str, batches[-1]))
    assert str(error.value) == (
        f"the loss is nan at step 8 (epoch 2, training rows {rows}); the run stops. The best model "
        f"so far is kept in {tmp_path / 'run' / 'best'}. Try a lower training.learning_rate or "
        "training.clip."
    )
    assert len(batches) == 8
    assert weights(tmp_path / "run") == weights(tmp_path / "one")
    TextClassifier.from_pretrained(tmp_path / "run" / "best")


def test_a_gradient_that_is_not_finite_stops_the_run(tables, tmp_path, monkeypatch):
    clip = "accelerate.Accelerator.clip_grad_norm_"
    monkeypatch.setattr(clip, lambda *arguments: torch.tensor(float("inf")))
    with pytest.raises(TrainingError, match="the gradient is inf at step 1"):
        run(tables, tmp_path / "run")


# --- Going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "name", "at"),
    [(os, "fsync", at) for at in (1, 2, 8, 17, 25)]
    + [(Path, "rename", at) for at in (1, 2, 3, 6)]  # models
    + [(Path, "replace", at) for at in (3, 4)],  # checkpoints
)
def test_killed_at_any_write_it_goes_on_to_the_same_end(
    tables, finished, tmp_path, monkeypatch, module, name, at
):
    out = tmp_path / "run"
    # Every evaluation that is the best writes a model, so that there is more to go wrong.
    monkeypatch.setattr("genpool.training.loop.BEST_MODEL_SECONDS", 0.0)
    with stopping(module, name, at), pytest.raises(Killed):
        run(tables, out)
    assert not (out / "results.json").exists()
    run(tables, out, resume=True)
    assert outcome(out) == outcome(finished)


@pytest.mark.parametrize("module", [run_folder, storage])
def test_a_full_disk_while_files_are_written_loses_nothing(
    tables, finished, tmp_path, monkeypatch, module
):
    out, full = tmp_path / "run", OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("genpool.training.loop.BEST_MODEL_SECONDS", 0.0)
    expected = pytest.raises(GenpoolError, match=r"could not be written.*No space left")
    with stopping(module, "save_file", 2, full), expected:
        run(tables, out)
    TextClassifier.from_pretrained(out / "best")
    run(tables, out, resume=True)
    assert outcome(out) == outcome(finished)


def test_a_run_is_not_continued_on_other_data(tables, tmp_path):
    out, other = tmp_path / "run", tmp_path / "other"
    with stopping(Run, "step", 4), pytest.raises(Killed):
        run(tables, out, "training.save_minutes=0")
    other.mkdir()
    for table in tables.iterdir():
        (other / table.name).write_text(table.read_text().replace("film", "movie"))
    expected = r"not the data that the run was trained on.*run\.json.*--data"
    with pytest.raises(TrainingError, match=expected):
        run(other, out, "training.save_minutes=0", resume=True)
    # Of another version, with checksums that are right.
    save_checkpoint(out / "checkpoints", 9, {"invented": 1}, {})
    with pytest.raises(TrainingError, match=r"of another version of genpool.*--out"):
        run(tables, out, "training.save_minutes=0", resume=True)


def test_two_precisions_in_one_process_are_refused_in_words(tables, tmp_path):
    run(tables, tmp_path / "first", "training.epochs=1")
    with pytest.raises(TrainingError, match=r"training.precision is 'bfloat16'.*start a new one"):
        run(tables, tmp_path / "second", "training.epochs=1", "training.precision=bfloat16")
    assert not (tmp_path / "second").exists()


def test_ctrl_c_while_reading_leaves_nothing_and_while_scoring_a_run(tables, finished, tmp_path):
    out = tmp_path / "run"
    reading = stopping(fitting, "prepare", 1, KeyboardInterrupt)
    with reading, pytest.raises(Stopped, match="nothing was written"):
        run(tables, out)
    assert not out.exists()
    expected = r"stopped after step \d+; continue with .* --resume"
    with stopping(Run, "finish", 1, KeyboardInterrupt), pytest.raises(Interrupted, match=expected):
        run(tables, out)
    run(tables, out, resume=True)
    assert outcome(out) == outcome(finished)
