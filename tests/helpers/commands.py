"""The commands as a person gives them, in a folder with a model and some files."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from genpool import SentenceEncoder
from genpool.cli import main
from genpool.jobs.encode_file import EncodeOptions, encode_file
from genpool.recipes import recipe_text
from genpool.training import read_settings, train
from tests.helpers.training_runs import SMALL_RULES


class Said(NamedTuple):
    """What a command left behind: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    def ok(self) -> Said:
        """The command has succeeded."""
        assert self.code == 0, self.err
        return self

    def refused(self, *messages: str) -> Said:
        """The command has ended with an error that contains these messages."""
        assert self.code == 2 and "Traceback" not in self.err, self.err
        assert [message for message in messages if message not in self.err] == [], self.err
        return self


Command = Callable[..., Said]


@pytest.fixture
def genpool(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """genpool("recipes", "show", "snli", stdin=b"") runs the command in this process."""

    def run(*arguments: object, stdin: bytes = b"") -> Said:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["genpool", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        code = end.value.code
        assert code is None or isinstance(code, int)
        return Said(code or 0, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def rules_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run of the recipe `rules`; not to be changed."""
    out = tmp_path_factory.mktemp("cli") / "rules"
    overrides = [*SMALL_RULES, "reader.sizes=[60, 12, 9]", "training.epochs=1"]
    train(read_settings(recipe_text("rules"), overrides), None, out, show_progress=False)
    return out


@pytest.fixture(scope="session")
def rules_index(rules_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two sentences and an empty one, made with that run's model; not to be changed."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "sentences.txt").write_text("A dog runs.\n\nAn animal sleeps.\n")
    encoder, model = SentenceEncoder.from_pretrained(rules_run / "best"), rules_run / "best"
    options = EncodeOptions(model_path=model)
    encode_file(encoder, folder / "sentences.txt", folder / "index", options)
    return folder / "index"


@pytest.fixture
def place(
    tmp_path: Path, rules_run: Path, rules_index: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The current folder: runs/rules, pairs.tsv, sentences.txt as README.md has them, and index."""
    (tmp_path / "index").symlink_to(rules_index)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "rules").symlink_to(rules_run)
    films = [("good", "I love this film."), ("bad", "What a waste of time.")]
    rows = [f"{label}\t{text} ({number})\n" for number in range(6) for label, text in films]
    (tmp_path / "films.tsv").write_text("label\ttext\n" + "".join(rows))
    (tmp_path / "pairs.tsv").write_text(
        "label\tpremise\thypothesis\n"
        "entailment\tA dog runs.\tAn animal runs.\n"
        "neutral\tAn animal runs.\tA dog runs.\n"
    )
    (tmp_path / "sentences.txt").write_text("A dog runs.\n\nAn animal sleeps.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENPOOL_CACHE", str(rules_run.parent / "cache"))
    return tmp_path
