"""Terminals and arguments of every kind: words instead of tracebacks."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from genpool.cli.terminal import plain_tables, replace_unprintable
from genpool.disk.files import markdown_table
from tests.helpers.training_runs import ONE_THREAD

MODEL = "runs/rules/best"
LONG = "a" * 5000


def run(
    arguments: Iterable[str | bytes], encoding: str = "utf-8", shell: Iterable[str] = ()
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command in a process of its own; nothing may end in a traceback."""
    command = [*shell, sys.executable, "-m", "genpool", *arguments]
    env = {**ONE_THREAD, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=env)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


@pytest.mark.slow
def test_shades_become_ascii_where_the_terminal_has_none(place):
    command, encoding = ("explain", "A dog runs.", "--model", MODEL), "cp1252"
    usual, other = run(command), run(command, encoding)
    assert (usual.returncode, other.returncode) == (0, 0)
    shades = str.maketrans("░▒▓█", ".:*#")
    assert other.stdout.decode(encoding) == usual.stdout.decode("utf-8").translate(shades)
    assert "█" in usual.stdout.decode("utf-8")


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ("strict", b"#. \\u4e2d \\udce9 a\n"),
        ("ignore", b"   a\n"),  # chosen by the user, and kept
    ],
)
def test_characters_that_the_terminal_lacks_are_escaped(monkeypatch, errors, expected):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, "ascii", errors=errors, newline="\n", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    replace_unprintable()
    print("█░ 中 \udce9 a")
    assert written.getvalue() == expected


@pytest.mark.skipif(os.name != "posix", reason="arguments are bytes on POSIX only")
def test_a_sentence_that_is_not_utf8_is_refused():
    done = run((b"explain", b"caf\xe9 au lait"))
    assert done.returncode == 2
    assert done.stdout == b""
    assert b'error: "caf\\udce9 au lait" is not UTF-8 text, from character 4 on' in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux")
def test_a_file_whose_name_is_not_utf8_is_read_and_printed(place):
    name = b"caf\xe9.tsv"
    Path(os.fsdecode(name)).write_bytes((place / "pairs.tsv").read_bytes())
    done = run(["predict", MODEL, name, "-o", b"out-" + name])
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"2 rows: out-caf\\udce9.tsv\n"
    assert Path(os.fsdecode(b"out-" + name)).is_file()
    done = run(["predict", MODEL, b"none-" + name, "-o", "out.tsv"])
    assert done.returncode == 2
    assert b"there is no such file or folder" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="closed with a shell of POSIX")
def test_closed_standard_input_is_told(place):
    closed = ("sh", "-c", 'exec "$@" <&-', "sh")
    done = run(["encode", MODEL, "-", "-o", "vectors.npy"], shell=closed)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: standard input is closed; ")
    assert not (place / "vectors.npy").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", LONG, "pairs.tsv", "-o", "out.tsv"),
        ("predict", MODEL, f"{LONG}.tsv", "-o", "out.tsv"),
        ("predict", MODEL, "pairs.tsv", "-o", f"{LONG}.tsv"),
        ("evaluate", MODEL, "pairs.tsv", "--json", f"{LONG}.json"),
        ("evaluate", "--compare", f"{LONG}.tsv", "pairs.tsv"),
        ("explain", "A dog runs.", "--model", LONG),
        ("explain", "A dog runs.", "--model", MODEL, "--html", f"{LONG}.html"),
        ("similarity", f"{LONG}.txt", f"{LONG}.txt"),
        ("train", f"{LONG}.toml", "--out", "run"),
        ("train", "rules", "--out", LONG),
        ("recipes", "copy", "rules", f"{LONG}.toml"),
        ("encode", MODEL, f"{LONG}.txt", "-o", "out.npy"),
        ("encode", MODEL, "sentences.txt", "-o", f"{LONG}.npy"),
        ("encode", MODEL, f"{LONG}.txt", "--engine", "local", "-o", "out"),
        ("encode", MODEL, "sentences.txt", "--engine", "local", "-o", LONG),
        ("search", LONG, "a dog"),
        ("export", MODEL, LONG),
    ],
    ids=lambda arguments: " ".join(argument.replace(LONG, "LONG") for argument in arguments),
)
def test_a_name_that_is_too_long_is_told(genpool, place, arguments):
    before = sorted(place.rglob("*"))
    said = genpool(*arguments).refused()
    assert said.err.startswith("error: ")
    assert LONG[:40] in said.err  # and no other file is blamed
    assert sorted(place.rglob("*")) == before


def test_tables_are_aligned_for_people():
    table = markdown_table(["a | b", "rows"], [["**yes**", 12], ["a longer cell", 1234]])
    assert plain_tables(f"**Two** tables\n\n{table}\n\nend").splitlines() == [
        "Two tables",
        "",
        "a | b          rows",
        "-------------  ----",
        "yes              12",
        "a longer cell  1234",
        "",
        "end",
    ]
