"""What genpool may not rely on, because another operating system lacks it."""

from __future__ import annotations

import subprocess
import sys

#: modules of the standard library that Windows does not have
UNIX_ONLY = (
    "crypt",
    "fcntl",
    "grp",
    "nis",
    "ossaudiodev",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "spwd",
    "syslog",
    "termios",
    "tty",
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
from genpool.training.tracking import peak_memory_mb
print(len(names), sorted(asked), peak_memory_mb())
"""


def test_every_module_is_imported_where_the_unix_only_ones_are_missing() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *UNIX_ONLY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, rest = done.stdout.split(maxsplit=1)
    assert int(count) > 100
    # It was asked for, so the hiding works; without it, there is no peak memory.
    assert rest.strip() == "['resource'] None"
