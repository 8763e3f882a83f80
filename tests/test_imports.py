"""The layout of the source: imports point one way, files are short, and some things are absent."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import genpool

ROOT = Path(genpool.__file__).parent
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
#: from the bottom to the top: a unit imports from lower lines, and a folder from itself
LAYERS = [
    {"errors", "progress"},
    {"registry"},
    {"tensors", "disk"},
    {"recipes"},
    {"text"},
    {"embedding"},
    {"encoder"},
    {"pooling"},
    {"classifier"},
    {"config"},
    {"saving"},
    {"inference"},
    {"model"},
    {"__init__"},
    {"data"},
    {"evaluation"},
    {"search"},
    {"jobs"},
    {"training"},
    {"distillation"},
    {"integrations"},
    {"reproduction"},
    {"service"},
    {"cli"},
    {"__main__"},
]
#: imports that point up, inside a function or for types only, each with its reason
UPWARD = {
    ("inference", "model"): "types: the quick form and the workers are made of a SentenceEncoder",
    ("model", "training"): "`fit`, which trains a classifier",
}
HEIGHT = {unit: height for height, units in enumerate(LAYERS) for unit in units}


def unit_of(path: Path) -> str:
    """The folder of the package that a file is in, or its own name."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def package_of(path: Path) -> str:
    return ".".join(["genpool", *path.relative_to(ROOT).parent.parts])


def imported_modules(source: str, package: str) -> Iterator[str]:
    """Every module that a file imports, wherever in it, by its full name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: -node.level + 1 or None] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            # `from genpool import model` imports a module, `from genpool.text import Batch` not.
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            (argument,) = node.args
            yield str(argument.value) if isinstance(argument, ast.Constant) else "a variable"


def units_imported(source: str, package: str = "genpool") -> set[str]:
    """The units of genpool that a source text imports."""
    units = set()
    for name in imported_modules(source, package):
        first, *rest = name.split(".")
        if first == "genpool":
            is_unit = rest and ((ROOT / rest[0]).is_dir() or (ROOT / f"{rest[0]}.py").is_file())
            units.add(rest[0] if is_unit else "__init__")
    return units


MODULES = {path: set(imported_modules(text, package_of(path))) for path, text in SOURCES.items()}
IMPORTS: dict[str, set[str]] = {}
for path, text in SOURCES.items():
    upward = {other for unit, other in UPWARD if unit == unit_of(path)}
    imported = units_imported(text, package_of(path)) - {unit_of(path)} - upward
    IMPORTS.setdefault(unit_of(path), set()).update(imported)


def test_imports_are_found_however_they_are_written() -> None:
    source = """
import os, genpool.text.penn
from genpool import __version__
from genpool.saving import storage
from genpool.data.reader import Reader
def later():
    import genpool.cli as commands
    from . import model
    from .pooling import masking
    importlib.import_module("genpool.search")
"""
    expected = {"text", "__init__", "saving", "data", "cli", "model", "pooling", "search"}
    assert units_imported(source) == expected
    assert units_imported("from ..errors import InputError", "genpool.text") == {"errors"}
    assert units_imported("from .batch import Batch", "genpool.text") == {"text"}


def test_imports_point_one_way() -> None:
    """A new file or folder is entered in LAYERS above, where it belongs."""
    assert set(IMPORTS) == set(HEIGHT)
    for unit, others in IMPORTS.items():
        for other in others:
            assert HEIGHT[other] < HEIGHT[unit], f"{unit} imports {other}, which is not below it"


def test_modules_are_imported_by_literal_names() -> None:
    """Otherwise this file does not see them. Plugins and spaCy's pipelines are named by users."""
    files = {
        path.relative_to(ROOT).as_posix()
        for path, names in MODULES.items()
        if "a variable" in names
    }
    exceptions = {"registry.py", "reproduction/trees/annotator.py"}
    assert files <= exceptions


def test_only_the_command_line_imports_the_reproduction() -> None:
    assert {unit for unit, others in IMPORTS.items() if "reproduction" in others} == {"cli"}


def test_a_folder_imports_only_what_it_must() -> None:
    basics = {"disk", "errors", "registry", "tensors"}
    for unit in ("pooling", "text", "encoder", "data", "evaluation"):
        assert IMPORTS[unit] <= basics, unit
    for unit in ("embedding", "classifier"):
        assert IMPORTS[unit] <= basics | {"text"}, unit


def imports_torch(code: str) -> bool:
    """Whether PyTorch is loaded after the code, in a process of its own."""
    code = f"import sys; {code}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize("command", ["--help", "recipes show snli", "train --help"])
def test_what_needs_no_model_is_answered_without_torch(command: str) -> None:
    assert not imports_torch(
        f"sys.argv = ['genpool', *{command.split()}]; from genpool.cli import app; "
        "app(standalone_mode=False)"
    )


def private_imports(source: str, package: str) -> list[str]:
    """Names with an underscore that a source text imports from another folder of genpool."""
    unit = package.split(".")[1] if "." in package else ""
    return [
        name
        for name in imported_modules(source, package)
        for first, *rest in [name.split(".")]
        if first == "genpool" and rest[:1] != [unit]
        if any(part.startswith("_") and not part.endswith("__") for part in rest)
    ]


def test_private_names_stay_in_their_folder() -> None:
    source = """
from genpool import __version__
from genpool.text.penn import _RULES
from genpool.data._base import Reader
from .penn import _SAME_FOLDER
"""
    expected = ["genpool.text.penn._RULES", "genpool.data._base.Reader"]
    assert private_imports(source, "genpool.cli") == expected
    assert private_imports(source, "genpool.text") == expected[1:]
    for path, text in SOURCES.items():
        assert private_imports(text, package_of(path)) == [], path


def test_nothing_below_the_commands_knows_the_command_line() -> None:
    for path, names in MODULES.items():
        if unit_of(path) not in ("cli", "__main__"):
            assert not any(name.split(".")[0] in ("typer", "click") for name in names), path


def test_few_modules_stand_beside_the_folders_and_no_file_has_more_than_400_lines() -> None:
    assert len(list(ROOT.glob("*.py"))) <= 8
    assert [path for path, text in SOURCES.items() if len(text.splitlines()) > 400] == []


#: modules that turn bytes into objects by running them
RUNNING = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}


def dangers(source: str) -> list[str]:
    """What has no place in the package: assert, pickles and what opens them."""
    modules = imported_modules(source, "genpool")
    found = [name for name in modules if name.split(".")[0] in RUNNING]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            found.append("assert")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("eval", "exec", "torch.load", "torch.save", "__import__"):
                found.append(name)
            found += [key.arg for key in node.keywords if key.arg == "allow_pickle"]
    return found


def test_no_file_asserts_or_opens_pickles() -> None:
    source = """
import pickle
from joblib import load
assert True
torch.load("x")
np.load("x", allow_pickle=True)
"""
    expected = ["pickle", "joblib.load", "assert", "torch.load", "allow_pickle"]
    assert sorted(dangers(source)) == sorted(expected)
    assert dangers("raise AssertionError\nsafe_open('x')\n# assert pickle") == []
    for path, text in SOURCES.items():
        assert dangers(text) == [], path


def test_importing_genpool_loads_none_of_the_heavy_packages() -> None:
    assert not imports_torch("import genpool.data, genpool.evaluation")
    heavy = {"scipy", "sklearn", "matplotlib", "accelerate", "typer", "pyarrow", "datasets"}
    heavy |= {"onnx", "onnxruntime", "onnxscript"}
    # In a process of its own: this one has loaded them for other tests.
    loaded = f"print(sorted({heavy} & set(sys.modules)), 'torch' in sys.modules)"
    code = f"import sys, genpool; {loaded}; genpool.SentenceEncoder; {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] False", "[] True"]
