"""genpool export, and genpool encode --runtime onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genpool import SentenceEncoder
from genpool.integrations.onnx import OnnxEncoder
from tests.helpers.commands import Command

MODEL = "runs/rules/best"


def test_export_then_encode_returns_the_vectors_of_the_model(
    genpool: Command,
    place: Path,
) -> None:
    said = genpool("export", MODEL, "out")
    assert said.code == 0, said.err
    assert said.out.startswith("vectors of 20 dimensions, largest difference from PyTorch")
    assert said.err == ""
    assert OnnxEncoder.from_pretrained(place / "out").output_dim == 20
    for model, runtime, out in ((MODEL, "torch", "a.npy"), ("out", "onnx", "b.npy")):
        said = genpool("encode", model, "sentences.txt", "-o", out, "--runtime", runtime)
        assert said.code == 0, said.err
        assert said.out == f"3 vectors of 20 dimensions: {out}\n"
    assert np.abs(np.load("a.npy") - np.load("b.npy")).max() < 1e-5
    said = genpool("encode", "out", "sentences.txt", "-o", "index/", "--runtime", "onnx")
    assert said.code == 2
    assert "an index needs the model itself" in said.err


def test_export_int8_reports_the_cosine(genpool: Command, place: Path) -> None:
    said = genpool("export", MODEL, "out", "--int8")
    assert said.code == 0, said.err
    assert "smallest cosine to PyTorch 0.99" in said.out or "PyTorch 1.0" in said.out


def test_without_a_model_the_encoder_inside_is_exported(
    genpool: Command,
    place: Path,
) -> None:
    said = genpool("export", "out", "--int8")
    assert said.code == 0, said.err
    assert said.out.startswith("vectors of 384 dimensions")
    # The tables of words and n-grams, most of it, are in 8 bits too.
    inside = place / "out" / "model.onnx"
    values = sum(weights.numel() for weights in SentenceEncoder.from_pretrained().parameters())
    assert inside.stat().st_size < 1.1 * values
    said = genpool("encode", "out", "sentences.txt", "-o", "a.npy")
    assert said.code == 2 and "--runtime onnx" in said.err
    assert "contains the ONNX graph of a SentenceEncoder" in said.err


MISTAKES = {
    f"export {MODEL} out more": "got 3 paths; expected [MODEL] OUT",
    f"export {MODEL} runs": "no ONNX export",
    "export nowhere out": "no such folder",
    f"encode {MODEL} sentences.txt -o v.npy --runtime onnx": "Export it first: genpool export",
    f"encode {MODEL} sentences.txt -o v.npy --runtime onxn": "Did you mean 'onnx'?",
    "encode sentences.txt -o v.npy --runtime onnx": "needs MODEL",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistakes_are_reported_and_leave_nothing(
    genpool: Command,
    place: Path,
    arguments: str,
) -> None:
    before = sorted(place.rglob("*"))
    said = genpool(*arguments.split())
    assert said.code == 2
    assert MISTAKES[arguments] in said.err
    assert sorted(place.rglob("*")) == before
