"""The exported folder: what is in it, what is refused, and what a failed export leaves behind."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from genpool import SentenceEncoder
from genpool.errors import FolderError, GenpoolError, MissingExtraError
from genpool.integrations.onnx import ExportError, OnnxEncoder, export
from genpool.integrations.onnx import graph as graphs
from genpool.integrations.onnx import onnx_encoder as encoder
from tests.helpers.commands import Command
from tests.helpers.saved_folders import content_of
from tests.helpers.small_models import MakeEncoder

from .onnx_comparison import SENTENCES, largest_difference, padded_vectors

EXPORTED_FILES = {"config.json", "model.onnx", "tokenizer.json", "README.md"}


@pytest.fixture(scope="module")
def model(make_encoder: MakeEncoder) -> SentenceEncoder:
    return make_encoder("generalized", "bilstm")


@pytest.fixture(scope="module")
def exported(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be changed."""
    folder = tmp_path_factory.mktemp("onnx") / "out"
    export(model, folder)
    return folder


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.fixture
def quick_export(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the tracing of a graph a copy of one that was made before: seconds less."""

    def copy(module: object, inputs: object, path: Path) -> None:
        shutil.copy(exported / "model.onnx", path)

    monkeypatch.setattr(graphs, "write_graph", copy)


def test_the_folder_holds_graph_config_tokenizer_and_page(
    exported: Path, model: SentenceEncoder
) -> None:
    assert {path.name for path in exported.iterdir()} == EXPORTED_FILES
    assert [path.name for path in exported.parent.iterdir()] == ["out"]
    page = (exported / "README.md").read_text()
    assert f"float32 (batch, {model.output_dim})" in page
    for name in ("word_ids", "letters", "mask"):
        assert f"| `{name}` |" in page
    graph = onnx.load(exported / "model.onnx")
    onnx.checker.check_model(graph, full_check=True)
    sizes = {
        value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in graph.graph.input
    }
    assert sizes == {
        "word_ids": ["batch", "time"],
        "letters": ["batch", "time", "longest_word"],
        "mask": ["batch", "time"],
    }


def test_the_graph_alone_turns_ids_into_vectors(exported: Path, model: SentenceEncoder) -> None:
    """By the page in the folder, without any code of genpool; padding first and last."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(exported / "model.onnx"))
    ids = json.loads((exported / "tokenizer.json").read_text())["model"]["vocab"]
    characters = json.loads((exported / "config.json").read_text())["characters"]
    word_ids = np.zeros((2, 5), np.int64)
    letters = np.zeros((2, 5, 7), np.int64)
    mask = np.zeros((2, 5), bool)
    for row, (start, sentence) in enumerate([(1, "the dog runs"), (3, "dog")]):
        for column, word in enumerate(sentence.split(), start):
            word_ids[row, column] = ids[word]
            letters[row, column, : len(word)] = [
                characters.index(character) + 4 for character in word
            ]
            mask[row, column] = True
    feeds = {"word_ids": word_ids, "letters": letters, "mask": mask}
    (actual,) = session.run(["sentence_embedding"], feeds)
    assert np.abs(actual - padded_vectors(model, ["the dog runs", "dog"])).max() < 1e-6


def test_the_encoder_does_all_that_sentence_encoders_do(
    exported: Path, model: SentenceEncoder
) -> None:
    graph = OnnxEncoder.from_pretrained(exported)
    assert (graph.output_dim, graph.device.type, graph.dtype) == (12, "cpu", torch.float32)
    expected = model.similarity(SENTENCES, SENTENCES[:2])
    assert torch.allclose(graph.similarity(SENTENCES, SENTENCES[:2]), expected, atol=1e-5)
    assert graph.encode("the dog").shape == (12,) and graph.encode([]).shape == (0, 12)


def test_a_word_without_end_is_run_in_smaller_batches(
    exported: Path, model: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = OnnxEncoder.from_pretrained(exported)
    runs = []
    run = graph.session

    def counting(inputs):
        runs.append(len(inputs["mask"]))
        return run(inputs)

    monkeypatch.setattr(graph, "session", counting)
    monkeypatch.setattr(encoder, "MAX_PADDED_CHARACTERS", 100)
    sentences = ["dog " + "z" * 90, "the dog", "dog", "red"]
    actual = np.asarray(graph.encode(sentences))
    assert max(runs) < 4 and sum(runs) == 4
    assert np.abs(actual - padded_vectors(model, sentences)).max() < 1e-6


# --- what is written over


@pytest.mark.usefixtures("quick_export")
def test_an_earlier_export_is_replaced_and_other_files_stay(
    folder: Path, model: SentenceEncoder
) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "README.md").write_text("old")
    (folder / "model.onnx.data").write_text("old")
    export(model, folder)
    assert {path.name for path in folder.iterdir()} == EXPORTED_FILES | {"notes.txt"}
    assert (folder / "README.md").read_text() != "old"
    assert OnnxEncoder.from_pretrained(folder).output_dim == 12


def test_a_saved_model_or_anything_else_is_never_written_over(
    model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save_pretrained(tmp_path / "saved")
    before = content_of(tmp_path)
    with pytest.raises(FolderError, match="contains something else, which saving would replace"):
        export(model, tmp_path / "saved")
    with pytest.raises(FolderError, match="is a file"):
        export(model, tmp_path / "saved" / "config.json")
    monkeypatch.chdir(tmp_path / "saved")
    with pytest.raises(FolderError, match="working folder"):
        export(model, tmp_path)
    assert content_of(tmp_path) == before


def test_a_graph_that_differs_is_not_kept(
    model: SentenceEncoder, folder: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One weight of the graph is not that of the model."""

    def wrong(module: object, inputs: object, path: Path) -> None:
        graph = onnx.load(exported / "model.onnx")
        table = next(tensor for tensor in graph.graph.initializer if list(tensor.dims) == [16, 4])
        values = onnx.numpy_helper.to_array(table).copy()
        values[7, 2] += 1e-3
        table.CopyFrom(onnx.numpy_helper.from_array(values, table.name))
        onnx.save(graph, path)

    monkeypatch.setattr(graphs, "write_graph", wrong)
    before = content_of(folder.parent)
    with pytest.raises(ExportError, match=r"largest difference is .* at most 1e-05") as error:
        export(model, folder)
    assert isinstance(error.value, GenpoolError)
    assert content_of(folder.parent) == before
    with pytest.raises(ExportError):
        export(model, folder.parent / "new")
    assert content_of(folder.parent) == before


def test_a_folder_between_its_two_renames_is_found_again(
    folder: Path, model: SentenceEncoder
) -> None:
    folder.rename(folder.parent / f".{folder.name}.previous")
    assert largest_difference(OnnxEncoder.from_pretrained(folder), model) < 1e-6
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


# --- what is refused


def change(folder: Path, remove: str = "", **values: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | values
    config.pop(remove, None)
    path.write_text(json.dumps(config))


def damage(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "incomplete: model.onnx": lambda folder: (folder / "model.onnx").unlink(),
    "incomplete: tokenizer.json": lambda folder: (folder / "tokenizer.json").unlink(),
    "has no config.json": lambda folder: (folder / "config.json").unlink(),
    "is not JSON": damage("config.json", b"{"),
    r"model.onnx and .* do not belong together": damage("model.onnx", b"another graph"),
    r"tokenizer.json and .* do not belong together": damage("tokenizer.json", b"{}"),
    "config.json was changed": lambda folder: change(folder, max_length=3),
    "format version 2": lambda folder: change(folder, format_version=2),
    "contains the graph of a transformer": lambda folder: change(folder, kind="transformer"),
    r"model type is ONNX graph": lambda folder: change(folder, format="other"),
}
#: what the checksums cannot show, because there are none
UNCHECKED: dict[str, Callable[[Path], object]] = {
    "not a graph that onnxruntime": damage("model.onnx", b"graph"),
    "tokenizer.json cannot be used": damage("tokenizer.json", b"{}"),
    "cannot be used: TypeError": lambda folder: change(folder, characters=3),
    "max_length is -1": lambda folder: change(folder, max_length=-1),
    "cannot be used: KeyError": lambda folder: change(folder, remove="output_dim"),
}


@pytest.mark.parametrize("message", [*DAMAGES, *UNCHECKED])
def test_a_damaged_folder_is_reported_in_words(folder: Path, message: str) -> None:
    if message in UNCHECKED:
        change(folder, remove="checksums")
    (DAMAGES | UNCHECKED)[message](folder)
    with pytest.raises(FolderError, match=message):
        OnnxEncoder.from_pretrained(folder)


def test_folders_of_both_kinds_say_what_they_are_and_what_is_not_installed(
    exported: Path, model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save_pretrained(tmp_path / "saved")
    with pytest.raises(FolderError, match=r"is a saved SentenceEncoder; export it: genpool export"):
        OnnxEncoder.from_pretrained(tmp_path / "saved")
    with pytest.raises(FolderError, match="ONNX graph of a SentenceEncoder"):
        SentenceEncoder.from_pretrained(exported)
    with pytest.raises(FolderError, match="no such folder"):
        OnnxEncoder.from_pretrained(tmp_path / "nowhere")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'genpool\[onnx\]'"):
        OnnxEncoder.from_pretrained(exported)
    with pytest.raises(MissingExtraError, match=r"pip install 'genpool\[onnx\]'"):
        export(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- genpool export, and genpool encode --runtime onnx

MODEL = "runs/rules/best"


def test_export_then_encode_returns_the_vectors_of_the_model(genpool: Command, place: Path) -> None:
    said = genpool("export", MODEL, "out").ok()
    assert said.out.startswith("vectors of 20 dimensions, largest difference from PyTorch")
    assert said.err == ""
    assert OnnxEncoder.from_pretrained(place / "out").output_dim == 20
    for model, runtime, out in ((MODEL, "torch", "a.npy"), ("out", "onnx", "b.npy")):
        said = genpool("encode", model, "sentences.txt", "-o", out, "--runtime", runtime).ok()
        assert said.out == f"3 vectors of 20 dimensions: {out}\n"
    assert np.abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-5
    said = genpool("encode", "out", "sentences.txt", "-o", "index/", "--runtime", "onnx")
    said.refused("an index needs the model itself")


@pytest.mark.slow
def test_without_a_model_the_encoder_inside_is_exported(genpool: Command, place: Path) -> None:
    said = genpool("export", "out", "--int8").ok()
    assert said.out.startswith("vectors of 384 dimensions")
    assert "smallest cosine to PyTorch 0.99" in said.out or "PyTorch 1.0" in said.out
    # The tables of words and n-grams, most of it, are in 8 bits too.
    inside = place / "out" / "model.onnx"
    values = sum(weights.numel() for weights in SentenceEncoder.from_pretrained().parameters())
    assert inside.stat().st_size < 1.1 * values
    said = genpool("encode", "out", "sentences.txt", "-o", "a.npy")
    said.refused("--runtime onnx", "contains the ONNX graph of a SentenceEncoder")


MISTAKES = {
    f"export {MODEL} out more": "got 3 paths; expected [MODEL] OUT",
    f"export {MODEL} runs": "is not an ONNX export of genpool",
    "export nowhere out": "no such folder",
    f"encode {MODEL} sentences.txt -o v.npy --runtime onnx": "export it: genpool export",
    f"encode {MODEL} sentences.txt -o v.npy --runtime onxn": "Did you mean 'onnx'?",
    "encode sentences.txt -o v.npy --runtime onnx": "needs MODEL",
}


def test_mistakes_are_reported_and_leave_nothing(genpool: Command, place: Path) -> None:
    before = sorted(place.rglob("*"))
    for arguments, message in MISTAKES.items():
        genpool(*arguments.split()).refused(message)
    assert sorted(place.rglob("*")) == before
