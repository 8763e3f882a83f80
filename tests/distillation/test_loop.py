"""A student learns the vectors of its teacher, and a stopped run continues where it was."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from genpool import SentenceEncoder
from genpool.distillation import distil, read_distillation, teachers
from genpool.distillation.lesson import aligned_directions, group_batches, leading_directions
from genpool.distillation.run import DistillationRun, learning_rate_factor
from genpool.distillation.settings import DistillationLoopSettings, require_trainable
from genpool.distillation.student import turn_to_leading_axes
from genpool.errors import ConfigError, DataError, Interrupted, TrainingError
from genpool.training.state import save_checkpoint
from tests.helpers.distillation_runs import RECIPE, BagOfWords, write_tables

TEACHER = '[teacher]\nmodel = "a-teacher"\n'


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tables(tmp_path)
    monkeypatch.setattr(teachers, "open_teacher", lambda *_: BagOfWords())
    return tmp_path


def test_leading_directions_keep_cosines_and_put_the_most_first() -> None:
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 4)) * [0.1, 3.0, 1.0, 0.5]).astype(np.float16)
    axes = leading_directions(vectors, 4)
    turned = torch.from_numpy(vectors).float() @ axes
    spread = turned.square().mean(dim=0)
    assert (spread[:-1] > spread[1:]).all()
    original = torch.from_numpy(vectors).float()
    assert torch.allclose(turned @ turned.T, original @ original.T, atol=1e-3)


def test_batches_are_whole_groups() -> None:
    groups = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]]
    assert list(group_batches(groups, 3, np.array([2, 0, 1, 3]))) == [[3, 4, 5], [0, 1, 2]]


def test_the_rate_rises_and_falls() -> None:
    settings = DistillationLoopSettings(warm_up=4)
    factors = [learning_rate_factor(step, 12, settings) for step in range(13)]
    assert factors[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert (factors[8], factors[12]) == (0.5, 0.0)


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


def test_a_run_continues_to_the_same_weights(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = 22  # within an epoch
    settings = read_distillation(RECIPE, ["training.save_minutes=0"])  # a checkpoint at each step
    distil(settings, data, data / "whole", cache=data / "cache", show_progress=False)
    calls = BagOfWords.calls
    step = DistillationRun.step

    def stopping(self: DistillationRun, batch: list[int]) -> None:
        if self.state.step == stop:
            raise KeyboardInterrupt
        step(self, batch)

    monkeypatch.setattr(DistillationRun, "step", stopping)
    with pytest.raises(KeyboardInterrupt):
        distil(settings, data, data / "part", cache=data / "cache", show_progress=False)
    steps: list[int] = []

    def counting(self: DistillationRun, batch: list[int]) -> None:
        steps.append(self.state.step)
        step(self, batch)

    monkeypatch.setattr(DistillationRun, "step", counting)
    with pytest.raises(TrainingError, match="--resume"):
        distil(settings, data, data / "part", show_progress=False)
    distil(settings, data, data / "part", True, data / "cache", False)
    assert steps[0] == stop  # nothing is done twice
    assert BagOfWords.calls == calls  # the teacher's vectors were kept
    weights = [data / name / "best" / "model.safetensors" for name in ("whole", "part")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    metrics = [(data / name / "metrics.jsonl").read_text() for name in ("whole", "part")]
    first, second = (
        [json.loads(line) | {"seconds": 0} for line in text.splitlines()] for text in metrics
    )
    assert first == second and len(first) == 3


# --- The checks of --resume, which are those of a training run ------------------------------------


def interrupt_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Ctrl-C arrives during the step that follows `step` finished ones."""
    original = DistillationRun.step

    def interrupted(self: DistillationRun, batch: list[int]) -> None:
        if self.state.step == step:
            signal.raise_signal(signal.SIGINT)
        original(self, batch)

    monkeypatch.setattr(DistillationRun, "step", interrupted)


@pytest.fixture
def stopped(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was stopped after 12 steps, and saved by that alone."""
    with monkeypatch.context() as patch:
        interrupt_at(patch, 11)
        with pytest.raises(Interrupted, match=r"stopped after step 12; continue .* --resume"):
            run(data, "run", False)
    return data / "run"


def run(data: Path, name: str, resume: bool) -> dict[str, Any]:
    return distil(read_distillation(RECIPE), data, data / name, resume, data / "cache", False)


def test_an_interrupt_saves_where_the_run_is(data: Path, stopped: Path) -> None:
    assert run(data, "run", True)["loss"] == run(data, "whole", False)["loss"]


def test_a_run_is_not_continued_on_another_corpus_of_equal_size(data: Path, stopped: Path) -> None:
    table = data / "train.tsv"
    header, first, *rest = table.read_text().splitlines()
    table.write_text("\n".join([header, *rest, first]) + "\n")  # the same sentences, other order
    with pytest.raises(TrainingError, match=r"not the data that the run was trained on.*--data"):
        run(data, "run", True)
    save_checkpoint(stopped / "checkpoints", 99, {"invented": 1}, {})
    with pytest.raises(TrainingError, match=r"of another version of genpool.*--out"):
        run(data, "run", True)


def test_two_distillations_in_one_folder_are_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read_distillation(RECIPE, ["training.epochs=1"])
    step = DistillationRun.step
    errors: list[str] = []

    def second(self: DistillationRun, batch: list[int]) -> None:
        if self.state.step == 3:
            with pytest.raises(TrainingError) as error:
                distil(settings, data, data / "run", True, show_progress=False)
            errors.append(str(error.value))
        step(self, batch)

    monkeypatch.setattr(DistillationRun, "step", second)
    distil(settings, data, data / "run", show_progress=False)
    assert len(errors) == 1 and f"in use: process {os.getpid()} on " in errors[0]
    assert not list((data / "run").glob(".*"))


def test_mistakes_are_named(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"teacher\.model is missing"):
        read_distillation("[training]\nepochs = 2\n")
    with pytest.raises(ConfigError, match=r"training\.epochs"):
        read_distillation(RECIPE, ["training.epochs=0"])
    with pytest.raises(ConfigError, match="the word table would stay random"):
        require_trainable(read_distillation(TEACHER))
    for way_out in ("vectors.path=x.txt", "embedding.frozen=false", "training.start=runs/earlier"):
        require_trainable(read_distillation(TEACHER, [way_out]))
    wide = read_distillation(RECIPE, ["projection.dim=7"])
    with pytest.raises(ConfigError, match=r"7 dimensions, the teacher's 6.*projection\.dim=6"):
        distil(wide, data, data / "wide", show_progress=False)
    table = data / "train.tsv"
    table.write_text("a\tb\nthe man runs\ttoo short\n")
    with pytest.raises(DataError, match="a single sentence"):
        distil(read_distillation(RECIPE), data, data / "single", show_progress=False)


def test_a_teacher_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="pip install not-here"):
        teachers.teacher_folder("not_here:model")
    with pytest.raises(ConfigError, match="expected a folder"):
        teachers.teacher_folder("nowhere")


def test_the_axes_of_a_student_are_found_again() -> None:
    torch.manual_seed(0)
    teacher_vectors = torch.randn(500, 6)
    axes = torch.linalg.qr(torch.randn(6, 6)).Q[:, :4]
    student = teacher_vectors @ axes + 0.1 * torch.randn(500, 4)
    aligned = aligned_directions(teacher_vectors, student)
    assert torch.allclose(aligned.T @ aligned, torch.eye(4), atol=1e-5)
    assert (aligned - axes).abs().max() < 0.05


def test_a_student_of_another_teacher_turns_to_its_leading_axes() -> None:
    torch.manual_seed(0)
    scales = torch.tensor([3.0, 0.5, 2.0, 1.0, 0.1, 0.2])
    vectors = (torch.randn(2000, 6) * scales).half().numpy()
    learned = torch.linalg.qr(torch.randn(6, 6)).Q  # (teacher dim, student dim)
    projection = torch.nn.Linear(6, 6, bias=False)
    with torch.no_grad():
        projection.weight.copy_(learned.T)  # this student returns the vectors on its own axes
    targets = torch.from_numpy(vectors).float()
    before = projection(targets)
    leading = turn_to_leading_axes(projection, learned, vectors)
    after = projection(targets)
    assert torch.allclose(after @ after.T, before @ before.T, atol=1e-3)
    assert torch.allclose(after, targets @ leading, atol=1e-4)
    spreads = after.square().mean(dim=0)
    assert (spreads[:-1] >= spreads[1:]).all()


def test_a_student_continues_from_an_earlier_one(data: Path) -> None:
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
    cosine = np.dot(*(student.encode(sentence, normalize_embeddings=True) for student in students))
    assert cosine > 0.9


def test_tables_that_are_frozen_stay_as_they_are_and_the_rest_learns(data: Path) -> None:
    options: dict[str, Any] = {"cache": data / "cache", "show_progress": False}
    first = distil(read_distillation(RECIPE), data, data / "first", **options)
    more = ["training.freeze_words=true", f"training.start={data / 'first' / 'best'}"]
    second = distil(read_distillation(RECIPE, more), data, data / "second", **options)
    before, after = (
        SentenceEncoder.from_pretrained(data / name / "best").state_dict()
        for name in ("first", "second")
    )
    same = {name for name in before if torch.equal(before[name], after[name])}
    # The softmax over the tokens does not depend on b2, whose gradient is zero.
    assert same - {"pooling.b2"} == {"embedding.words"}
    assert second["loss"] < 1.2 * first["loss"]
