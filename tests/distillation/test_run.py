"""A student learns the vectors of its teacher, and a stopped run continues where it was."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.distillation import distil, read_distillation, teachers
from genpool.distillation.run import (
    DistillationRun,
    group_batches,
    learning_rate_factor,
    neighbour_order,
)
from genpool.errors import ConfigError, DataError, Interrupted, TrainingError
from genpool.text.vocabulary import CharacterNgrams
from genpool.training.run_folder import save_checkpoint
from tests.helpers.distillation_runs import RECIPE, BagOfWords, sentence, write_tables


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tables(tmp_path)
    monkeypatch.setattr(teachers, "open_teacher", lambda *_: BagOfWords())
    return tmp_path


def test_batches_are_whole_groups() -> None:
    assert list(group_batches([2, 1, 3, 1], 3, [2, 0, 1, 3])) == [[3, 4, 5], [0, 1, 2]]
    assert list(group_batches([1] * 5, 2, [3, 1, 0, 2, 4])) == [[3, 1], [0, 2]]
    assert list(group_batches([1] * 3, 4, [2, 1, 0])) == [[2, 1, 0]]


def test_neighbours_follow_each_other() -> None:
    random = np.random.default_rng(0)
    topics = np.repeat(np.arange(12), 25)
    centres = np.linalg.qr(random.normal(size=(16, 12)))[0].T
    vectors = (centres[topics] + 0.05 * random.normal(size=(300, 16))).astype(np.float32)
    mixed = random.permutation(300)
    order = neighbour_order(vectors[mixed], 5, np.random.default_rng(1))
    assert sorted(order) == list(range(300))
    together = (topics[mixed][order][1:] == topics[mixed][order][:-1]).mean()
    assert together > 0.6  # at random: 0.08
    again, other = (neighbour_order(vectors[mixed], 5, np.random.default_rng(n)) for n in (1, 2))
    assert np.array_equal(order, again) and not np.array_equal(order, other)


def test_the_rate_rises_and_falls() -> None:
    factors = [learning_rate_factor(step, 12, rising=4) for step in range(13)]
    assert factors[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert (factors[8], factors[12]) == (0.5, 0.0)


def test_a_run_continues_to_the_same_weights(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = 22  # within an epoch
    settings = read_distillation(RECIPE, ["training.save_minutes=0"])  # a checkpoint at each step
    best = distil(settings, data, data / "whole", cache=data / "cache", show_progress=False)
    assert SentenceEncoder.from_pretrained(data / "whole" / "best").output_dim == 5
    assert "a-teacher" in (data / "whole" / "best" / "README.md").read_text()
    calls, step = BagOfWords.calls, DistillationRun.step
    steps: list[int] = []

    def stopping_once(self: DistillationRun, batch: list[int]) -> None:
        steps.append(self.state.step)
        if steps == list(range(stop + 1)):
            raise KeyboardInterrupt
        step(self, batch)

    monkeypatch.setattr(DistillationRun, "step", stopping_once)
    with pytest.raises(KeyboardInterrupt):
        distil(settings, data, data / "part", cache=data / "cache", show_progress=False)
    with pytest.raises(TrainingError, match="--resume"):
        distil(settings, data, data / "part", show_progress=False)
    distil(settings, data, data / "part", True, data / "cache", False)
    assert steps == [*range(stop + 1), *range(stop, steps[-1] + 1)]  # nothing is done twice
    assert BagOfWords.calls == calls  # the teacher's vectors were kept
    weights = [data / name / "best" / "model.safetensors" for name in ("whole", "part")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    metrics = [(data / name / "metrics.jsonl").read_text() for name in ("whole", "part")]
    first, second = (
        [json.loads(line) | {"seconds": 0} for line in text.splitlines()] for text in metrics
    )
    assert first == second and len(first) == 3
    assert best["dev_spearman"] == max(line["dev_spearman"] for line in first)


# --- The checks of --resume, which are those of a training run ------------------------------------


@pytest.fixture
def stopped(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that Ctrl-C stopped during its 12th step, and saved by that alone."""
    original = DistillationRun.step

    def interrupted(self: DistillationRun, batch: list[int]) -> None:
        if self.state.step == 11:
            signal.raise_signal(signal.SIGINT)
        original(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(DistillationRun, "step", interrupted)
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


def test_mistakes_are_named(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"teacher\.model is missing"):
        read_distillation("[training]\nepochs = 2\n")
    with pytest.raises(ConfigError, match=r"training\.epochs"):
        read_distillation(RECIPE, ["training.epochs=0"])
    with pytest.raises(ConfigError, match="2 values for 1 teachers"):
        read_distillation(RECIPE, ["teacher.weights=[1.0, 2.0]"])
    with pytest.raises(ConfigError, match="the word table would stay random"):
        distil(read_distillation(RECIPE, ["embedding.frozen=true"]), data, data / "run")
    wide = read_distillation(RECIPE, ["projection.dim=7"])
    with pytest.raises(ConfigError, match=r"7 dimensions, the teacher's 6.*projection\.dim=6"):
        distil(wide, data, data / "wide", show_progress=False)
    table = data / "train.tsv"
    table.write_text("a\tb\nthe man runs\ttoo short\n")
    with pytest.raises(DataError, match="a single sentence"):
        distil(read_distillation(RECIPE), data, data / "single", show_progress=False)


def test_a_student_continues_from_an_earlier_one_whose_tables_may_stay_as_they_are(
    data: Path,
) -> None:
    settings = read_distillation(RECIPE, ["training.epochs=6"])
    first = distil(settings, data, data / "first", cache=data / "cache", show_progress=False)
    more = ["training.epochs=2", f"training.start={data / 'first' / 'best'}"]
    more += ["training.learning_rate=0.001", "training.freeze_words=true"]
    again = read_distillation(RECIPE, more)
    second = distil(again, data, data / "second", cache=data / "cache", show_progress=False)
    assert second["loss"] < 1.2 * first["loss"]
    students = [
        SentenceEncoder.from_pretrained(data / name / "best") for name in ("first", "second")
    ]
    assert students[0].text.vocabulary.words == students[1].text.vocabulary.words
    vectors = [student.encode("the man runs", normalize_embeddings=True) for student in students]
    assert np.dot(*vectors) > 0.9
    before, after = (student.state_dict() for student in students)
    same = {name for name in before if before[name].equal(after[name])}
    # The softmax over the tokens does not depend on b2, whose gradient is zero.
    assert same - {"pooling.b2"} == {"embedding.words"}


def test_a_student_with_all_of_it_learns_and_continues(data: Path) -> None:
    random = np.random.default_rng(5)
    rows = [f"s{n % 2}\t{sentence(random)}" for n in range(80)]
    (data / "mixed.tsv").write_text("\n".join(["source\ttext", *rows]) + "\n")
    options = [
        "corpus.mixed=mixed.tsv:source,text",
        "corpus.counts=['*=30']",
        "corpus.held_out=15",
        "teacher.model=['one', 'two']",
        "teacher.weights=[2.0, 1.0]",
        "text.rules=parts",
        "text.folding=true",
        "embedding.ngram_buckets=50",
        "embedding.hidden_words=0.2",
        "embedding.characters=false",
        "training.neighbours=4",
        "training.widths=[2]",
        "training.epochs=8",
    ]
    settings = read_distillation(RECIPE, options)
    best = distil(settings, data, data / "run", show_progress=False)
    lines = [json.loads(line) for line in (data / "run/metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < 0.6 * lines[0]["loss"]
    scores = [(line["agreement"] + line["dev_spearman"]) / 2 for line in lines]
    assert best == lines[int(np.argmax(scores))]
    assert lines[-1]["agreement"] > max(0.5, lines[0]["agreement"])
    assert best["worst_agreement"] <= best["agreement"]
    student = SentenceEncoder.from_pretrained(data / "run" / "best")
    assert isinstance(student.text.characters, CharacterNgrams)
    assert np.array_equal(student.encode("the MÁN runs"), student.encode("the man runs"))
    more = [*options, f"training.start={data / 'run' / 'best'}", "training.epochs=1"]
    again = distil(read_distillation(RECIPE, more), data, data / "more", show_progress=False)
    assert again["epoch"] == 1
