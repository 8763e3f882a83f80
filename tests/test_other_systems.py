"""What genpool may not rely on, because another operating system lacks it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import genpool

PACKAGE = Path(genpool.__file__).parent

#: modules of the standard library that Windows does not have
UNIX_ONLY = (
    "crypt fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog termios tty"
)
PROGRAM = """
import builtins, importlib, pkgutil, sys

hidden = set(sys.argv[1:])
original = builtins.__import__
asked = set()

def hiding(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    # Other packages on this system may use them: theirs are other files on Windows.
    if importer.split(".")[0] == "genpool" and name.split(".")[0] in hidden:
        asked.add(name)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return original(name, globals, locals, fromlist, level)

builtins.__import__ = hiding
import genpool
names = [module.name for module in pkgutil.walk_packages(genpool.__path__, "genpool.")]
for name in names:
    if name.endswith(".__main__"):  # runs the command
        continue
    try:
        importlib.import_module(name)
    except genpool.errors.MissingExtraError:  # an adapter
        pass
from genpool.training.report import peak_memory_mb
print(len(names), sorted(asked), peak_memory_mb())
"""


def test_every_module_is_imported_where_the_unix_only_ones_are_missing() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *UNIX_ONLY.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, rest = done.stdout.split(maxsplit=1)
    assert int(count) > 100
    # It was asked for, so the hiding works; without it, there is no peak memory.
    assert rest.strip() == "['resource'] None"


def text_writes(source: str) -> Iterator[tuple[int, bool]]:
    """Yields the line of every call that writes text, and whether it says how lines end."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        modes = [text for text in texts if isinstance(text, str) and set(text) <= set("rwxabt+")]
        writes = name == "open" and any(set(mode) & set("wxa+") for mode in modes)
        # The function `write_text` is genpool's own, which calls the method.
        is_method = name == "write_text" and isinstance(function, ast.Attribute)
        if is_method or (writes and not any("b" in mode for mode in modes)):
            yield node.lineno, any(keyword.arg == "newline" for keyword in node.keywords)


def test_text_that_is_written_says_how_its_lines_end() -> None:
    """Elsewhere \\n would become \\r\\n: other checksums, and empty rows in CSV."""
    files = list(PACKAGE.rglob("*.py"))
    calls = [
        (f"{path.relative_to(PACKAGE)}:{line}", is_said)
        for path in files
        for line, is_said in text_writes(path.read_text(encoding="utf-8"))
    ]
    assert len(calls) > 5
    assert [place for place, is_said in calls if not is_said] == []
    source = """
path.write_text("a", encoding="utf-8")
path.write_text("a", newline="")
path.open("w", encoding="utf-8")
open(name, "a", newline="")
path.open("wb"), path.open(), open(name, "r"), path.write_bytes(b"a"), write_text(path, "a")
"""
    assert list(text_writes(source)) == [(2, False), (3, True), (4, False), (5, True)]
