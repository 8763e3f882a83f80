"""Saving over something that exists: only an earlier model is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from genpool import SentenceEncoder
from genpool.errors import FolderError
from genpool.model import load_model
from tests.helpers.saved_folders import FILES, change_json, content_of


@pytest.mark.parametrize("content", ["a thesis", '{"model_type": "bert"}', '{"format": "genpool"'])
@pytest.mark.parametrize("name", ["config.json", "thesis.tex", ".git"])
def test_saving_over_what_is_no_model_is_refused(sentence_encoder, tmp_path, name, content) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / name).write_text(content)
    with pytest.raises(
        FolderError, match="contains something else, which saving would replace"
    ) as e:
        sentence_encoder.save_pretrained(target)
    assert "Choose a new or empty folder" in str(e.value)
    assert content_of(tmp_path) == {f"mine/{name}": content.encode()}


def test_saving_over_a_model_of_a_newer_format_is_refused(sentence_encoder, folder: Path) -> None:
    change_json(folder / "config.json", "format_version", 4)
    before = content_of(folder)
    with pytest.raises(FolderError, match="has format version 4"):
        sentence_encoder.save_pretrained(folder)
    assert content_of(folder) == before


def test_saving_over_a_file_is_refused(sentence_encoder, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="is a file; expected a folder"):
        sentence_encoder.save_pretrained(tmp_path / "notes.txt")
    assert content_of(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("path", [".", "..", "sub/.."])
def test_saving_in_place_of_the_working_folder_is_refused(
    sentence_encoder, tmp_path: Path, monkeypatch, path: str
) -> None:
    inside = tmp_path / "mine" / "deep"
    (inside / "sub").mkdir(parents=True)
    monkeypatch.chdir(inside)
    with pytest.raises(FolderError, match="is the working folder, or contains it"):
        sentence_encoder.save_pretrained(path)
    assert Path.cwd() == inside  # which is gone if the folder was replaced
    sentence_encoder.save_pretrained("model")
    assert isinstance(load_model("model"), SentenceEncoder)


def test_a_working_folder_that_is_gone_is_no_obstacle(
    sentence_encoder, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    sentence_encoder.save_pretrained(tmp_path / "model")
    assert isinstance(load_model(tmp_path / "model"), SentenceEncoder)


def test_saving_below_a_file_is_refused(sentence_encoder, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="could not be written"):
        sentence_encoder.save_pretrained(tmp_path / "notes.txt" / "model")
    assert content_of(tmp_path) == {"notes.txt": b"mine"}


def test_saving_into_an_empty_folder_and_over_a_model_works(sentence_encoder, folder) -> None:
    empty = folder.parent / "empty"
    empty.mkdir()
    for target in (empty, folder):
        sentence_encoder.save_pretrained(target)
        assert isinstance(load_model(target), SentenceEncoder)
        assert {path.name for path in target.iterdir()} == FILES


def test_files_of_others_stay_in_the_folder(sentence_encoder, folder: Path) -> None:
    (folder / "scores.tsv").write_text("93")
    (folder / ".hidden").write_text("x")
    (folder / "plots" / "deep").mkdir(parents=True)
    (folder / "plots" / "deep" / "curve.svg").write_text("<svg/>")
    (folder / "nothing").symlink_to("nowhere")
    (folder / "outside").symlink_to(folder.parent)
    os.utime(folder / "scores.tsv", (1000, 1000))
    for _ in range(2):
        sentence_encoder.save_pretrained(folder)
    assert (folder / "scores.tsv").read_text() == "93"
    assert (folder / "scores.tsv").stat().st_mtime == 1000
    assert (folder / ".hidden").read_text() == "x"
    assert (folder / "plots" / "deep" / "curve.svg").read_text() == "<svg/>"
    assert str((folder / "nothing").readlink()) == "nowhere"
    assert (folder / "outside").is_symlink() and (folder / "outside").readlink() == folder.parent
    assert isinstance(load_model(folder), SentenceEncoder)


def test_a_link_to_a_folder_stays_one_and_its_target_is_replaced(sentence_encoder, folder) -> None:
    link = folder.parent / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(folder)
    for _ in range(2):
        sentence_encoder.save_pretrained(link)
        assert link.is_symlink()
        assert isinstance(load_model(link), SentenceEncoder)
        assert isinstance(load_model(folder), SentenceEncoder)
    assert [path.name for path in link.parent.iterdir()] == ["link"]
    assert {path.name for path in folder.parent.iterdir()} == {"model", "elsewhere"}
