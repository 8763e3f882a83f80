"""Several processes that save to one folder while it is read: every load is one of the versions."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
import torch

from genpool import TextClassifier
from genpool.config import TextSettings
from genpool.errors import FolderError
from genpool.text import Vocabulary
from tests.helpers.small_models import MakeEncoder

WRITERS, SAVES = 2, 50


def as_version(model: TextClassifier, version: int) -> TextClassifier:
    """Every file of the folder says the version; all versions have the same sizes."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(version)
    model.labels = (f"yes {version}", f"no {version}")
    words = model.text.vocabulary.words
    model.text.vocabulary = Vocabulary([*words[:-1], f"word{version}"])
    return model


def version_of(model: TextClassifier) -> int:
    """Returns the version that all parts of a model agree on."""
    version = int(model.labels[0].removeprefix("yes "))
    assert model.labels == (f"yes {version}", f"no {version}")
    assert model.text.vocabulary.words[-1] == f"word{version}"
    for parameter in model.parameters():
        assert torch.equal(parameter, torch.full_like(parameter, version))
    return version


def save_often(source: str, target: str, version: int, start: Barrier) -> None:
    torch.set_num_threads(1)
    os.fsync = lambda fd: None  # a test need not wait for the disk
    model = as_version(TextClassifier.from_pretrained(source), version)
    start.wait()
    for _ in range(SAVES):
        model.save_pretrained(target)


def test_savers_and_a_reader_of_one_folder_never_mix_versions(
    make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    # Rules that are loaded fast leave more of the time to what is tested.
    model = TextClassifier(make_encoder(text=TextSettings(rules="whitespace")), ["yes", "no"])
    model.save_pretrained(tmp_path / "source")
    target = tmp_path / "shared" / "model"
    as_version(model, 0).save_pretrained(target)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WRITERS)
    arguments = [
        (str(tmp_path / "source"), str(target), 1 + writer, start) for writer in range(WRITERS)
    ]
    writers = [context.Process(target=save_often, args=args) for args in arguments]
    for writer in writers:
        writer.start()
    versions = []
    while any(writer.is_alive() for writer in writers):
        versions.append(version_of(TextClassifier.from_pretrained(target)))
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    assert versions and set(versions) <= {0, 1, 2}
    assert version_of(TextClassifier.from_pretrained(target)) in (1, 2)
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_files_of_two_models_of_the_same_sizes_are_recognised(
    make_encoder: MakeEncoder, tmp_path: Path, name: str
) -> None:
    model = TextClassifier(make_encoder(), ["yes", "no"])
    for version in (1, 2):
        as_version(model, version).save_pretrained(tmp_path / str(version))
    (tmp_path / "1" / name).write_bytes((tmp_path / "2" / name).read_bytes())
    with pytest.raises(FolderError) as caught:
        TextClassifier.from_pretrained(tmp_path / "1")
    message = str(caught.value)
    assert f"{tmp_path / '1' / name} and {tmp_path / '1' / 'config.json'} do not belong" in message
    assert 'remove "checksums" from config.json' in message
