"""Pages of the site that are made from the program itself, and so cannot differ from it.

reference/commands.md    every command with its options, from the help texts
reference/settings.md    every setting of a recipe, from the docstrings of the settings
built/rooms.md           the layout and the walks, from CONTRIBUTING.md
paper/reproduction.md    the report of the reproduction, from results/
examples/                the notebooks
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent


@event_priority(100)  # before the plugin that renders notebooks
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made from the program."""
    pages = {
        "reference/commands.md": commands_page(),
        "reference/settings.md": settings_page(),
        "built/rooms.md": rooms_page(),
        "paper/reproduction.md": reproduction_page(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        name = f"examples/{notebook.name}"
        files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    for picture in sorted((ROOT / "results").rglob("*.png")):
        name = f"pictures/{picture.relative_to(ROOT / 'results').as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Names files of the repository that are not part of the site, instead of linking them."""
    return re.sub(r"\[([^\]]+)\]\(\.\./(?:results/[\w.]+|[A-Z]+\.md)\)", r"`\1`", markdown)


def commands_page() -> str:
    """Returns every command with its arguments and options."""
    from genpool.cli import app

    group = typer.main.get_command(app)
    parts = ["# Commands", "`python -m genpool` is the same as `genpool`."]
    parts += [_command(name, command) for name, command in _commands(group, "genpool")]
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, name: str) -> list[tuple[str, Any]]:
    """Returns the commands of a group of typer, also those of groups in it, by their name."""
    if not hasattr(command, "commands"):
        return [(name, command)]
    own = [(name, command)] if command.invoke_without_command else []
    subcommands = sorted(command.commands.items())
    return own + [pair for key, inner in subcommands for pair in _commands(inner, f"{name} {key}")]


def _command(name: str, command: Any) -> str:
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        is_argument = parameter.param_type_name == "argument"
        spelled = (parameter.name or "").upper() if is_argument else ", ".join(parameter.opts)
        meaning = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
        rows.append(f"| `{spelled}` | {meaning} |")
    table = "\n".join(["| option | meaning |", "|---|---|", *rows]) if rows else ""
    text = (command.help or "").strip()
    text = re.sub(r"^((?:Example|Use one|Your own table): )(.+)$", r"\1`\2`", text, flags=re.M)
    return "\n\n".join(part for part in (f"## {name}", text, table) if part)


def settings_page() -> str:
    """Returns every setting of a recipe with its meaning and default."""
    from genpool.distillation.settings import DistillationSettings
    from genpool.encoder import ENCODERS
    from genpool.pooling import POOLINGS
    from genpool.training.settings import RunSettings

    parts = [
        "# Settings",
        "A recipe is a TOML file with these sections; `--set section.key=value` changes one "
        "setting. All mistakes of a recipe are reported together, before anything starts. "
        "`genpool recipes` lists the recipes of the package, and `config.toml` in the folder of a "
        "run has every setting that it was made with.",
        "## genpool train",
        *_sections(RunSettings),
        _options("encoder", ENCODERS),
        _options("pooling", POOLINGS),
        "## genpool distil",
        *_sections(DistillationSettings),
    ]
    return "\n\n".join(parts) + "\n"


def _sections(settings: type) -> list[str]:
    parts = []
    for section in dataclasses.fields(settings):
        default = section.default
        if not dataclasses.is_dataclass(default) or not _attributes(type(default)):
            continue
        if [field.name for field in dataclasses.fields(default)] == ["name", "options"]:
            continue  # a part that is chosen by name: its options are those of the class
        title = (type(default).__doc__ or "").strip().splitlines()[0]
        rows = [f"| `{name}` | {text} |" for name, text in _attributes(type(default)).items()]
        table = "\n".join(["| setting | meaning |", "|---|---|", *rows])
        parts.append(f"### {section.name}\n\n{title}\n\n{table}")
    return parts


def _attributes(settings: type) -> dict[str, str]:
    """Returns the `Attributes:` of a docstring in Google's style."""
    _, found, text = (settings.__doc__ or "").partition("Attributes:\n")
    return _entries(text) if found else {}


def _entries(text: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if not line.strip():
            break
        start = re.match(r"^ {8}(\w+): (.*)", line)
        if start:
            name, entries[start[1]] = start[1], start[2]
        elif name:
            entries[name] += " " + line.strip()
    return {name: entry.replace("|", "\\|") for name, entry in entries.items()}


def _options(section: str, classes: dict[str, Any]) -> str:
    rows = []
    for name, cls in classes.items():
        title = (cls.__doc__ or "").strip().splitlines()[0]
        _, _, text = (cls.__doc__ or "").partition("Args:\n")
        names = [option for option in _entries(text) if option != "input_dim"]
        options = ", ".join(f"`{option}`" for option in names) or "none"
        rows.append(f"| `{name}` | {title} | {options} |")
    table = "\n".join(["| name | what it is | options |", "|---|---|---|", *rows])
    return (
        f"### {section}\n\nChosen by `{section}.name`; the other keys are its options.\n\n{table}"
    )


def rooms_page() -> str:
    """Returns the parts of CONTRIBUTING.md that say where things are."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    wanted = re.search(r"^## Where things are.*?(?=^## Habits)", text, re.M | re.S)
    body = wanted[0] if wanted else ""
    return "# The code\n\n" + body


def reproduction_page() -> str:
    """Returns the report of the reproduction, as far as it is measured."""
    report = ROOT / "results" / "reproduction" / "report.md"
    if not report.is_file():
        return (
            "# The paper's tables and figures\n\nNot measured yet: "
            "`genpool reproduce all --scale small --data DATA --out OUT` makes them.\n"
        )
    text = report.read_text(encoding="utf-8")
    return text.replace("](figures/", "](../pictures/reproduction/figures/")
