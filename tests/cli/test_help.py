"""Every command explains itself, with an example that works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from genpool.cli import app
from genpool.data.reader import BAD_ROWS
from genpool.reproduction.definitions import SCALES
from genpool.training.settings import DataSettings, StartSettings
from tests.helpers.training_runs import ONE_THREAD, SMALL_RULES, sets

COMMANDS = (
    *("train", "distil", "probe", "evaluate", "predict", "encode", "similarity", "search"),
    *("explain", "export", "reproduce", "serve", "demo", "index", "recipes"),
    *("index info", "index delete", "index build", "recipes list", "recipes show", "recipes copy"),
)


def example(text: str) -> list[str]:
    """The words of the example in a help text, which may be broken over lines."""
    found = re.search(r"Example: (.+?)\n\s*\n", text, re.DOTALL)
    assert found, text
    return shlex.split(found[1])


def test_these_are_all_commands():
    names = {command.name for command in app.registered_commands}
    names |= {command.name for command in app.registered_groups}
    assert names == {command.split()[0] for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_gives_an_example_of_it(genpool, command):
    said = genpool(*command.split(), "--help").ok()
    assert example(said.out)[: 1 + len(command.split())] == ["genpool", *command.split()]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[pytest.mark.slow] if command in ("probe", "export") else [])
        for command in COMMANDS
        if command not in ("train", "distil", "reproduce", "serve", "demo")
        and command not in ("index delete", "index build")  # the index of other tests
    ],
)
def test_the_example_works(genpool, place, command):
    words = example(genpool(*command.split(), "--help").out)
    assert genpool(*words[1:]).ok().out


def test_the_example_of_train_works(genpool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = example(genpool("train", "--help").out)
    smaller = sets([*SMALL_RULES, "reader.sizes=[30, 6, 6]"])
    said = genpool(*words[1:], *smaller).ok()
    assert "model:  runs/rules/best" in said.out
    assert (tmp_path / "runs" / "rules" / "best" / "config.json").is_file()


@pytest.mark.parametrize(
    ("command", "option", "choices"),
    [
        ("encode", "--bad-rows", BAD_ROWS),
        ("train", "--bad-rows", BAD_ROWS),
        ("train", "--freeze", get_args(get_type_hints(StartSettings)["freeze"])),
        ("train", "--task", get_args(get_type_hints(DataSettings)["task"])),
        ("reproduce", "--scale", tuple(SCALES)),
        ("encode", "--runtime", ("torch", "onnx")),
    ],
)
def test_the_help_shows_the_choices_of_an_option(genpool, command, option, choices):
    text = genpool(command, "--help").out
    shown = re.search(rf"^ +{option} +[<[]?([\w|]+)", text, re.MULTILINE)
    assert shown and set(shown[1].split("|")) == set(choices)


def test_a_shell_completes_commands_and_options():
    for words, expected in (("genpool enc", "encode"), ("genpool encode --trun", "--truncate-dim")):
        environment = {
            **ONE_THREAD,
            "_GENPOOL_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        command = str(Path(sys.executable).with_name("genpool"))
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.stdout.split() == [expected], done.stderr


def test_no_command_gives_the_list_of_them(genpool):
    said = genpool()
    for command in COMMANDS:
        assert command.split()[0] in said.out + said.err


def test_python_m_genpool_is_the_same():
    commands = ([sys.executable, "-m", "genpool"], [str(Path(sys.executable).with_name("genpool"))])
    one, other = (
        subprocess.check_output([*command, "recipes"], text=True, env=ONE_THREAD)
        for command in commands
    )
    assert one == other and "snli-small" in one
