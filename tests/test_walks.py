"""The walks of CONTRIBUTING.md: which files a sentence, a row, a file and a model pass through.

    python -m tests.test_walks            prints the lists as CONTRIBUTING.md has them
    python -m tests.test_walks --write    also writes them there

A walk has the files whose functions are called, in order of the first call. It follows the thing
itself: what makes objects (`__init__`) does not count, the SIDE_ROOMS are not entered, and the walk
of a row ends when the weights are updated.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import torch

import genpool
from genpool import SentenceEncoder, config
from genpool.cli import main
from genpool.errors import MissingExtraError
from genpool.pooling import MeanPooling
from tests.helpers.training_runs import SMALL_RULES, sets

PACKAGE = Path(genpool.__file__).parent
ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
#: from the first list to the next section
LISTS = re.compile(r"^### One sentence .*?(?=\n## )", re.MULTILINE | re.DOTALL)
#: the most files that a walk may pass through
LIMITS = {
    "One sentence through `SentenceEncoder.encode`": 12,
    "One row through `genpool train`": 26,
    "One file through `genpool encode FILE -o index/`": 21,
    "One model through `genpool export`": 19,
}
#: tools of every file: they do not count, what they call does
TOOLS = ("errors.py", "progress.py", "tensors/", "text/limits.py")
#: what is opened before or closed after: neither they nor what they call counts
SIDE_ROOMS = (
    "config.py",
    "disk/",
    "saving/",
    "cli/stopping.py",
    "cli/terminal.py",
    "text/tree_cache.py",
    "integrations/load_encoder.py",
    "data/rules/changes.py",
    "data/rules/generate.py",
    "data/rules/lexicon.py",
    "data/rules/scenes.py",
    "training/interrupt.py",
    "training/processes.py",
    "training/run_folder.py",
    "training/run_lock.py",
    "training/schedule.py",
    "training/settings.py",
    "training/start_model.py",
    "training/state.py",
    "training/tracking.py",
)
#: they count, what they call does not: the check of an exported graph runs the model again
LAST_STATIONS = ("integrations/onnx/checking.py",)
UNCOUNTED_FUNCTIONS = {"__init__", "__post_init__", "extra_repr"}


class Function(NamedTuple):
    """How a function, known by its code, takes part in a walk."""

    file: str | None  # the file that counts when the function is called
    is_entered: bool  # what it calls counts, too
    ends: bool  # the walk is over

    @classmethod
    @cache  # there are millions of calls, of thousands of functions
    def of(cls, code: CodeType) -> Function:
        path = Path(code.co_filename)
        if not path.is_relative_to(PACKAGE):
            return cls(None, True, code.co_name == "step" and "optim" in path.name)
        file = path.relative_to(PACKAGE).as_posix()
        # The code of modules and classes has no fast locals; that of functions has.
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
        is_named = code.co_name not in UNCOUNTED_FUNCTIONS
        if not (is_function and is_named) or file.startswith(SIDE_ROOMS):
            return cls(None, False, False)
        counts = path.name != "__init__.py" and not file.startswith(TOOLS)
        return cls(file if counts else None, not file.startswith(LAST_STATIONS), False)


class Recorder:
    """A profile function that lists the files of a walk."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.ended = False
        self.thread = threading.local()  # .skipped: the frame inside which nothing counts

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        skipped = getattr(self.thread, "skipped", None)
        if event == "return" and skipped is frame:
            self.thread.skipped = None
        elif event == "call" and skipped is None and not self.ended:
            function = Function.of(frame.f_code)
            self.ended = function.ends
            if function.file is not None:
                self.files.setdefault(function.file)
            if not function.is_entered:
                self.thread.skipped = frame


@contextlib.contextmanager
def recorded_files() -> Iterator[list[str]]:
    """The files of the package that are passed through inside, in order of the first call."""
    recorder = Recorder()
    files: list[str] = []
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        files.extend(recorder.files)


def import_everything() -> None:
    """Imports all modules first, so that no walk has the code that runs at an import."""
    for module in pkgutil.walk_packages([str(PACKAGE)], "genpool."):
        if module.name != "genpool.__main__":
            with contextlib.suppress(MissingExtraError):  # of an adapter that no walk passes
                importlib.import_module(module.name)


def run_command(*arguments: object) -> None:
    sys.argv = ["genpool", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"genpool {arguments} ended with {end.code}") from end


def make_walks(folder: Path) -> dict[str, Callable[[], object]]:
    encoder = SentenceEncoder.from_pretrained()
    sentences, run = folder / "sentences.txt", folder / "run"
    sentences.write_text("A man sleeps.\n", encoding="utf-8")
    tiny = sets([*SMALL_RULES, "reader.sizes=[8, 4, 4]", "training.epochs=1"])
    walks: list[Callable[[], object]] = [
        lambda: encoder.encode("A man sleeps."),
        lambda: run_command("train", "rules", "--quiet", "--out", run, *tiny),
        lambda: run_command("encode", sentences, "-o", f"{folder}/index/"),
        lambda: run_command("export", run / "best", folder / "onnx"),
    ]
    return dict(zip(LIMITS, walks, strict=True))


def walked_files() -> dict[str, list[str]]:
    import_everything()
    walks = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, walk in make_walks(Path(folder)).items():
            with contextlib.redirect_stdout(io.StringIO()), recorded_files() as files:
                walk()
            walks[name] = files
    return walks


def as_text(walks: dict[str, list[str]]) -> str:
    """The lists as CONTRIBUTING.md has them."""
    parts = []
    for name, files in walks.items():
        lines = [f"{place}. `{file}`" for place, file in enumerate(files, start=1)]
        parts.append("\n".join([f"### {name}", "", *lines, ""]))
    return "\n".join(parts)


def written_lists() -> str:
    (lists,) = LISTS.findall(GUIDE.read_text(encoding="utf-8"))
    return str(lists)


def test_the_walks_of_the_contributors_guide_are_those_of_the_code() -> None:
    # In a process of its own: what other tests have loaded or cached would shorten the walks.
    command = [sys.executable, "-m", "tests.test_walks"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert written_lists().splitlines() == done.stdout.splitlines()


def test_the_walks_are_short() -> None:
    sections = written_lists().split("### ")[1:]
    for section, (name, limit) in zip(sections, LIMITS.items(), strict=True):
        title, *lines = section.strip().splitlines()
        assert title == name
        assert 0 < len([line for line in lines if line]) <= limit, name


def test_a_walk_has_the_files_whose_functions_are_called() -> None:
    pooling = MeanPooling(3)
    states, mask = torch.ones(1, 2, 3), torch.ones(1, 2, dtype=torch.bool)
    with recorded_files() as files:
        MeanPooling(3)
        config.to_dict(config.TextSettings())
        pooling(states, mask)
    assert files == ["pooling/simple.py", "pooling/base.py", "pooling/masking.py"]


if __name__ == "__main__":
    should_write = "--write" in sys.argv[1:]  # before the walks, which replace the arguments
    text = as_text(walked_files())
    print(text, end="")
    if should_write:
        guide = GUIDE.read_text(encoding="utf-8")
        GUIDE.write_text(guide.replace(written_lists(), text), encoding="utf-8")
