"""A student learns its teacher's vectors, and goes on where it stopped."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.distillation import distil, read_distillation, teacher
from genpool.distillation.loop import DistillationRun, group_batches, learning_rate_factor
from genpool.distillation.loss import (
    aligned_directions,
    distillation_loss,
    leading_directions,
)
from genpool.distillation.settings import DistillationLoopSettings
from genpool.errors import ConfigError, TrainingError

from .small import RECIPE, BagOfWords, write_tables


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tables(tmp_path)
    monkeypatch.setattr(teacher, "load_teacher", lambda name: BagOfWords())
    return tmp_path


def test_the_loss_by_loops() -> None:
    random = np.random.default_rng(0)
    student, target = random.normal(size=(4, 3)), random.normal(size=(4, 3))
    own = student / np.linalg.norm(student, axis=1, keepdims=True)
    goal = target / np.linalg.norm(target, axis=1, keepdims=True)
    expected = sum(1 - own[i] @ goal[i] for i in range(4)) / 4
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    expected += 2.5 * sum((own[i] @ own[j] - goal[i] @ goal[j]) ** 2 for i, j in pairs) / 12
    found = distillation_loss(torch.from_numpy(student), torch.from_numpy(target), 2.5)
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_leading_directions_keep_cosines_and_put_the_most_first() -> None:
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 4)) * [0.1, 3.0, 1.0, 0.5]).astype(np.float16)
    axes = leading_directions(vectors, 4)
    turned = torch.from_numpy(vectors).float() @ axes
    spread = turned.square().mean(dim=0)
    assert (spread[:-1] > spread[1:]).all()
    given = torch.from_numpy(vectors).float()
    assert torch.allclose(turned @ turned.T, given @ given.T, atol=1e-3)


def test_batches_are_whole_groups() -> None:
    groups = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]]
    assert list(group_batches(groups, 3, np.array([2, 0, 1, 3]))) == [[3, 4, 5], [0, 1, 2]]


def test_the_rate_rises_and_falls() -> None:
    settings = DistillationLoopSettings(warm_up=4)
    found = [learning_rate_factor(step, 12, settings) for step in range(13)]
    assert found[:4] == [0.25, 0.5, 0.75, 1.0]
    assert found[4] == 1.0
    assert found[8] == 0.5
    assert found[12] == 0.0


def test_a_student_learns(data: Path) -> None:
    settings = read_distillation(RECIPE, ["training.epochs=12"])
    best = distil(settings, data, data / "run", show_progress=False)
    metrics = (data / "run" / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in metrics.splitlines()]
    assert len(lines) == 12
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
    assert best["dev_spearman"] == max(line["dev_spearman"] for line in lines)
    student = SentenceEncoder.from_pretrained(data / "run" / "best")
    assert student.output_dim == 5
    assert "a-teacher" in (data / "run" / "best" / "README.md").read_text()


@pytest.mark.parametrize("stop", [7, 8, 22])
def test_a_run_goes_on_to_the_same_weights(
    data: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    settings = read_distillation(RECIPE, ["training.save_minutes=0"])  # a checkpoint at each step
    distil(settings, data, data / "whole", cache=data / "cache", show_progress=False)
    calls = BagOfWords.calls
    learn = DistillationRun.learn

    def stopping(self: DistillationRun, batch: list[int]) -> float:
        if self.step == stop:
            raise KeyboardInterrupt
        return learn(self, batch)

    monkeypatch.setattr(DistillationRun, "learn", stopping)
    with pytest.raises(KeyboardInterrupt):
        distil(settings, data, data / "part", cache=data / "cache", show_progress=False)
    steps: list[int] = []

    def counting(self: DistillationRun, batch: list[int]) -> float:
        steps.append(self.step)
        return learn(self, batch)

    monkeypatch.setattr(DistillationRun, "learn", counting)
    with pytest.raises(TrainingError, match="--resume"):
        distil(settings, data, data / "part", show_progress=False)
    distil(settings, data, data / "part", True, data / "cache", False)
    assert steps[0] == stop  # nothing is done twice
    assert BagOfWords.calls == calls  # the teacher's vectors were found
    weights = [data / name / "best" / "model.safetensors" for name in ("whole", "part")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    first, second = ((data / name / "metrics.jsonl").read_text() for name in ("whole", "part"))
    lines = [[json.loads(line) for line in text.splitlines()] for text in (first, second)]
    assert len(lines[0]) == len(lines[1]) == 3
    assert all(
        one | {"seconds": 0} == other | {"seconds": 0} for one, other in zip(*lines, strict=True)
    )


def test_an_interrupt_saves_where_the_run_is(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_distillation(RECIPE)
    learn = DistillationRun.learn

    def interrupted(self: DistillationRun, batch: list[int]) -> float:
        if self.step == 11:
            signal.raise_signal(signal.SIGINT)
        return learn(self, batch)

    monkeypatch.setattr(DistillationRun, "learn", interrupted)
    with pytest.raises(TrainingError, match=r"stopped after step 12; continue .* --resume"):
        distil(settings, data, data / "run", show_progress=False)
    monkeypatch.setattr(DistillationRun, "learn", learn)
    best = distil(settings, data, data / "run", True, show_progress=False)
    whole = distil(settings, data, data / "whole", show_progress=False)
    assert best["loss"] == whole["loss"]


def test_mistakes_are_named(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"teacher\.model is missing"):
        read_distillation("[training]\nepochs = 2\n")
    with pytest.raises(ConfigError, match=r"training\.epochs"):
        read_distillation(RECIPE, ["training.epochs=0"])
    wide = read_distillation(RECIPE, ["projection.dim=7"])
    with pytest.raises(ConfigError, match=r"projection\.dim=6"):
        distil(wide, data, data / "wide", show_progress=False)


def test_a_teacher_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="pip install not-here"):
        teacher.teacher_folder("not_here:model")
    with pytest.raises(ConfigError, match="expected a folder"):
        teacher.teacher_folder("nowhere")


def test_the_axes_of_a_student_are_found_again() -> None:
    torch.manual_seed(0)
    teacher_vectors = torch.randn(500, 6)
    axes = torch.linalg.qr(torch.randn(6, 6)).Q[:, :4]
    student = teacher_vectors @ axes + 0.1 * torch.randn(500, 4)
    found = aligned_directions(teacher_vectors, student)
    assert torch.allclose(found.T @ found, torch.eye(4), atol=1e-5)
    assert (found - axes).abs().max() < 0.05


def test_a_student_goes_on_from_an_earlier_one(data: Path) -> None:
    settings = read_distillation(RECIPE, ["training.epochs=6"])
    first = distil(settings, data, data / "first", cache=data / "cache", show_progress=False)
    more = ["training.epochs=2", f"training.start={data / 'first' / 'best'}"]
    more.append("training.learning_rate=0.001")
    again = read_distillation(RECIPE, more)
    second = distil(again, data, data / "second", cache=data / "cache", show_progress=False)
    assert second["loss"] < 1.2 * first["loss"]
    students = [
        SentenceEncoder.from_pretrained(data / name / "best") for name in ("first", "second")
    ]
    assert students[0].text.vocabulary.words == students[1].text.vocabulary.words
    sentence = "the man runs"
    cosine = np.dot(*(each.encode(sentence, normalize_embeddings=True) for each in students))
    assert cosine > 0.9
