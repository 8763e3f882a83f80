"""What a student learns from: sources in given numbers, neighbours together, short vectors too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from genpool import SentenceEncoder
from genpool.distillation import distil, read_distillation, teachers
from genpool.distillation.corpus import CorpusSettings, read_corpus, read_counts, take_mixture
from genpool.distillation.lesson import (
    agreement_by_source,
    cut_batches,
    distillation_loss,
    neighbour_order,
)
from genpool.errors import ConfigError
from genpool.text.vocabulary import CharacterNgrams
from tests.helpers.distillation_runs import RECIPE, BagOfWords, sentence, write_tables


def test_every_source_gives_its_number_after_those_held_out() -> None:
    rows = [(f"s{n % 3}", f"text {n}") for n in range(30)]
    learned, held_out = take_mixture(rows, {"s0": 2, "s1": 4}, 3, lambda text: text)
    assert held_out == {
        "s0": ["text 0", "text 3", "text 6"],
        "s1": ["text 1", "text 4", "text 7"],
    }
    expected = ["text 9", "text 10", "text 12", "text 13", "text 16", "text 19"]
    assert learned == expected
    others, _ = take_mixture(rows, {"*": 1, "s1": 0}, 0, lambda text: text)
    assert others == ["text 0", "text 2"]


def test_skipped_sentences_are_neither_held_out_nor_learned() -> None:
    rows = [(f"s{n % 2}", f"text {n}") for n in range(20)]
    learned, held_out = take_mixture(rows, {"s0": 2, "s1": 2}, 1, lambda text: text, {"s0": 3})
    assert held_out == {"s0": ["text 0"], "s1": ["text 1"]}
    assert learned == ["text 3", "text 5", "text 8", "text 10"]
    other, _ = take_mixture(rows, {"s0": 1, "s1": 1}, 0, lambda text: text, {"*": 4, "s1": 0})
    assert other == ["text 1", "text 8"]


def test_no_more_rows_are_read_than_needed() -> None:
    def rows():
        yield from (("a", f"text {n}") for n in range(2000))
        raise AssertionError("read on although every source was full")

    assert len(take_mixture(rows(), {"a": 5}, 1, lambda text: text)[0]) == 5


def test_counts_that_are_none_are_named_together() -> None:
    with pytest.raises(ConfigError, match=r"'a'.*\n.*'b=x'"):
        read_counts(["a", "b=x", "c=3"])
    assert read_counts(["a=b=3", "*=4"]) == {"a=b": 3, "*": 4}
    with pytest.raises(ConfigError, match=r"corpus\.skip has 'a'"):
        read_counts(["a"], "corpus.skip")


def test_a_corpus_of_sources_leaves_empty_repeated_and_excluded_lines_out(tmp_path: Path) -> None:
    lines = ["news\tThe first one here", "news\t", "news\tthe FIRST one, here!", "web\tA b c d"]
    lines += ["news\tIt is excluded now", "web\tone two three four", "news\tThe last one here"]
    (tmp_path / "all.tsv").write_text("\n".join(["source\ttext", *lines]) + "\n")
    (tmp_path / "test.tsv").write_text("text\nIt is excluded: now\n")
    settings = CorpusSettings(
        mixed="all.tsv:source,text", counts=("*=9",), held_out=1, exclude=("test.tsv:text",)
    )
    corpus = read_corpus(settings, tmp_path)
    assert corpus.held_out == {"news": ["The first one here"], "web": ["A b c d"]}
    assert corpus.groups == [["one two three four"], ["The last one here"]]


def test_a_table_may_have_a_limit(tmp_path: Path) -> None:
    rows = [f"sentence number {n} here\tits other number {n}" for n in range(9)]
    (tmp_path / "t.tsv").write_text("\n".join(["a\tb", *rows]) + "\n")
    corpus = read_corpus(CorpusSettings(tables=("t.tsv:a,b:5",)), tmp_path)
    assert [len(group) for group in corpus.groups] == [2, 2, 1]


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
    again = neighbour_order(vectors[mixed], 5, np.random.default_rng(1))
    assert np.array_equal(order, again)
    assert not np.array_equal(order, neighbour_order(vectors[mixed], 5, np.random.default_rng(2)))


def test_batches_of_an_order_have_one_size() -> None:
    assert list(cut_batches(np.array([3, 1, 0, 2, 4]), 2)) == [[3, 1], [0, 2]]
    assert list(cut_batches(np.array([3, 1, 0]), 4)) == [[3, 1, 0]]


@pytest.mark.parametrize("widths", [(), (2, 1)])
def test_the_loss_by_loops(widths: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    student, target = random.normal(size=(5, 4)), random.normal(size=(5, 4))

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    errors = []
    for width in (4, *widths):
        pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
        squares = [
            (cosine(student[i, :width], student[j, :width]) - cosine(target[i], target[j])) ** 2
            for i, j in pairs
        ]
        errors.append(sum(squares) / len(pairs))
    expected = sum(1 - cosine(a, b) for a, b in zip(student, target, strict=True)) / 5
    expected += 3.0 * sum(errors) / len(errors)
    loss = distillation_loss(torch.from_numpy(student), torch.from_numpy(target), 3.0, widths)
    assert float(loss) == pytest.approx(expected, abs=1e-12)


def test_agreement_by_scipy_source_by_source() -> None:
    random = np.random.default_rng(0)
    known = {f"t{n}": random.normal(size=3) for n in range(9)}
    targets = random.normal(size=(9, 5)).astype(np.float16)
    sources = {"a": ["t0", "t1", "t2", "t3"], "few": ["t4", "t5"], "b": ["t6", "t7", "t8"]}
    scores = agreement_by_source(
        lambda texts: np.stack([known[text] for text in texts]), sources, targets
    )
    assert set(scores) == {"a", "b"}
    student, teacher_cosines = [], []
    for i in range(4):
        for j in range(i + 1, 4):
            one, two = known[f"t{i}"], known[f"t{j}"]
            student.append(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
            first, second = targets[i].astype(float), targets[j].astype(float)
            teacher_cosines.append(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    assert scores["a"] == pytest.approx(spearmanr(student, teacher_cosines).statistic)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tables(tmp_path)
    random = np.random.default_rng(5)
    rows = [f"s{n % 2}\t{sentence(random)}" for n in range(80)]
    (tmp_path / "mixed.tsv").write_text("\n".join(["source\ttext", *rows]) + "\n")
    monkeypatch.setattr(teachers, "open_teacher", lambda *_: BagOfWords())
    return tmp_path


def test_a_student_with_all_of_it_learns_and_continues(data: Path) -> None:
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


def test_weights_of_other_teachers_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match="2 values for 1 teachers"):
        read_distillation(RECIPE, ["teacher.weights=[1.0, 2.0]"])
