"""Teachers of two kinds, several at once, and folders that are no teachers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genpool.distillation import teachers
from genpool.distillation.lesson import Targets, spread_of_cosines
from genpool.distillation.settings import TeacherSettings
from genpool.distillation.teachers import OnnxTeacher, open_teacher, teacher_vectors
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
    integers = onnx.TensorProto.INT64
    inputs = [
        onnx.helper.make_tensor_value_info(name, integers, ["batch", "time"])
        for name in ("input_ids", "attention_mask")
    ]
    states = onnx.helper.make_tensor_value_info(
        "states", onnx.TensorProto.FLOAT, ["batch", "time", 6]
    )
    table = onnx.numpy_helper.from_array(TABLE, "table")
    node = onnx.helper.make_node("Gather", ["table", "input_ids"], ["states"])
    graph = onnx.helper.make_graph([node], "graph", inputs, [states], [table])
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    onnx.save(model, folder / "onnx" / "model.onnx")
    return folder


def by_loop(sentence: str) -> np.ndarray:
    rows = [TABLE[WORDS.index(word)] for word in sentence.split()]
    mean = sum(rows) / len(rows)
    return mean / np.linalg.norm(mean)


def test_the_vectors_of_an_onnx_folder_by_loops(onnx_folder: Path) -> None:
    found = open_teacher(str(onnx_folder), TeacherSettings(), onnx_folder)
    assert isinstance(found, OnnxTeacher)
    vectors = found.encode(SENTENCES)
    assert np.abs(vectors - np.stack([by_loop(text) for text in SENTENCES])).max() < 1e-6
    first = OnnxTeacher(onnx_folder, "cls", 128).encode(["dog a"])[0]
    assert np.abs(first - by_loop("dog")).max() < 1e-6
    cut = OnnxTeacher(onnx_folder, "mean", 2).encode(["a dog runs now"])[0]
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
    teacher_vectors(str(onnx_folder), SENTENCES[:2], tmp_path)
    assert "teacher: 2/2" in capsys.readouterr().err
    teacher_vectors(str(onnx_folder), SENTENCES[:2], tmp_path)
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
        teacher_vectors("x", ["a cat", "dog", "a dog"], tmp_path, None, False)
    kept = teacher_vectors("x", ["a cat"], tmp_path, None, False)
    assert np.abs(kept[0] - by_loop("a cat")).max() < 1e-3


@pytest.mark.parametrize("missing", ["tokenizer.json", "onnx/model.onnx"])
def test_an_onnx_folder_without_one_of_its_files(onnx_folder: Path, missing: str) -> None:
    (onnx_folder / missing).unlink()
    with pytest.raises(ConfigError, match=f"has no {missing}; expected"):
        open_teacher(str(onnx_folder), TeacherSettings(), onnx_folder)


def test_folders_that_are_no_teachers(onnx_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither modules\.json nor tokenizer\.json"):
        (tmp_path / "empty").mkdir()
        open_teacher(str(tmp_path / "empty"), TeacherSettings(), tmp_path)
    (onnx_folder / "onnx" / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ConfigError, match="cannot be used"):
        open_teacher(str(onnx_folder), TeacherSettings(), onnx_folder)


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
    targets = Targets.fit(vectors, TeacherSettings(model=("a", "b"), weights=(3.0, 1.0)))
    spreads = [spread_of_cosines(part, part.astype(np.float32).mean(axis=0)) for part in vectors]
    share = (3 / spreads[0]) / (3 / spreads[0] + 1 / spreads[1])
    assert targets.shares == pytest.approx((share, 1 - share), rel=1e-3)
    combined = targets.apply(vectors).astype(np.float64)
    one, two = (centred(part) @ centred(part).T for part in vectors)
    assert np.abs(combined @ combined.T - (share * one + (1 - share) * two)).max() < 5e-3
    assert np.abs(np.linalg.norm(combined, axis=1) - 1).max() < 2e-3


def test_centring_makes_unrelated_sentences_unrelated() -> None:
    vectors = shifted(0, 8, 3.0)
    plain = Targets.fit([vectors], TeacherSettings()).apply([vectors]).astype(np.float64)
    assert np.abs(plain - vectors).max() < 2e-3 and (plain @ plain.T).mean() > 0.8
    settings = TeacherSettings(centre=True)
    targets = Targets.fit([vectors], settings).apply([vectors]).astype(np.float64)
    assert abs((targets @ targets.T).mean()) < 0.02


def test_a_part_of_the_mean_can_be_subtracted() -> None:
    vectors = shifted(0, 8, 3.0)
    settings = TeacherSettings(centre=True, centre_share=0.25)
    targets = Targets.fit([vectors], settings).apply([vectors]).astype(np.float64)
    exact = vectors.astype(np.float64)
    for row, target in enumerate(targets):
        moved = exact[row] - 0.25 * exact.mean(axis=0)
        assert np.abs(target - moved / np.linalg.norm(moved)).max() < 2e-3


def test_the_spread_by_all_pairs() -> None:
    vectors = shifted(2, 6, 1.0)
    cosines = (centred(vectors) @ centred(vectors).T)[np.triu_indices(200, 1)]
    mean = vectors.astype(np.float32).mean(axis=0)
    assert spread_of_cosines(vectors, mean) == pytest.approx(cosines.std(), rel=0.05)
