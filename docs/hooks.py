"""Pages of the site that are made from the program itself, and so cannot differ from it.

reference/commands.md    every command with its options, from the help texts
reference/settings.md    every setting of a recipe, from the docstrings of the settings
built/rooms.md           the layout, from CONTRIBUTING.md
paper/reproduction.md    the report of the reproduction, from results/
results/                 the measured figures, from results/
examples/                the notebooks
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
REPRODUCTION = """# Tables and figures

`genpool reproduce` trains all models of a table or a figure of the paper and writes a report, with
confidence intervals, paired tests and an answer to each claim:

```sh
genpool reproduce figure3 --scale tiny --out reproduction  # seconds per model, no data
genpool reproduce status reproduction
genpool reproduce all --scale small --data DATA            # minutes per model
genpool reproduce all --scale paper --data DATA            # the official data, on a GPU
```

Nothing is trained twice: after a stop, the same command continues.
[All options](../reference/commands.md#genpool-reproduce).

"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the pages of results/ that mkdocs.yml does not order to the end of their section."""
    section = next(item["Results"] for item in config.nav or [] if "Results" in item)
    names = [f"results/{page.name}" for page in sorted((ROOT / "results").glob("*.md"))]
    section += [name for name in names if name not in section]
    return config


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
    for page in sorted((ROOT / "results").glob("*.md")):
        files.append(File(f"results/{page.name}", str(ROOT), config.site_dir, True))
    for picture in sorted((ROOT / "results").rglob("*.png")):
        name = f"pictures/{picture.relative_to(ROOT / 'results').as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links the pages of results/; other files of the repository are named, not linked."""
    up = "../" * page.file.src_uri.count("/")
    # docs/promises.md links files as GitHub shows them; other pages name them
    markdown = re.sub(r"\]\(\.\./(results/\w+\.md)\)", rf"]({up}\1)", markdown)
    markdown = re.sub(r"\[([^\]]+)\]\(\.\./[A-Z]+\.md\)", r"`\1`", markdown)
    return re.sub(r"(?<!\[)`(results/\w+\.md)`", rf"[`\1`]({up}\1)", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Keeps an option such as --first, and other short names with a hyphen, on one line."""
    return re.sub(r"<code>([^<\n]*-[^<\n]*)</code>", _unbroken, html)


def _unbroken(code: re.Match[str]) -> str:
    words = [
        f"<span class=unbroken>{word}</span>" if "-" in word and len(word) <= 24 else word
        for word in re.split(r"(\s+)", code[1])
    ]
    return f"<code>{''.join(words)}</code>"


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
        meaning = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
        rows.append(f"| `{_spelled(parameter)}` | {meaning}{_default(parameter, meaning)} |")
    table = "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""
    text = _with_examples(inspect.cleandoc(command.help or ""))
    return "\n\n".join(part for part in (f"## {name}", text, table) if part)


def _spelled(parameter: Any) -> str:
    """Returns how an argument or option is written: `MODEL`, `--json`, `--top INTEGER`."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or (parameter.name or "").upper())
    options = ", ".join(parameter.opts)
    return options if parameter.is_flag else f"{options} {_value(parameter)}"


def _value(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    if not hasattr(parameter, "type_descriptor"):  # an older typer, on click
        return _click_value(parameter.type)
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "|".join(str(choice.value) for choice in kind)
    return {int: "INTEGER", float: "NUMBER", Path: "PATH"}.get(kind, "TEXT")


def _click_value(kind: Any) -> str:
    if kind.name == "choice":
        return "|".join(map(str, kind.choices))
    names = {"integer": "INTEGER", "float": "NUMBER", "path": "PATH"}
    return names.get(kind.name.removesuffix(" range"), "TEXT")


def _default(parameter: Any, meaning: str) -> str:
    default = parameter.default
    if default in (None, False, [], ()) or callable(default) or "Default" in meaning:
        return ""
    return f" Default: {default.value if isinstance(default, enum.Enum) else default}."


def _with_examples(text: str) -> str:
    """Makes the examples at the end of a help text ("SNLI: genpool ...") paragraphs of code."""
    *paragraphs, last = text.split("\n\n")
    examples = re.findall(r"^([A-Z][\w ]*): (genpool(?: .*(?:\n(?![A-Z]).*)*)?)$", last, re.M)
    if not examples:
        return text
    code = [f"{title}: `{' '.join(command.split())}`" for title, command in examples]
    return "\n\n".join([*paragraphs, *code])


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
        _readers(),
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
        start = re.match(r"^ {8}(\**\w+): (.*)", line)
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
    link = f"[reference]({section}s.md)"
    text = f"Chosen by `{section}.name`; the other keys are its options, explained in the {link}."
    return f"### {section}\n\n{text}\n\n{table}"


def _readers() -> str:
    """Returns the options of every reader: those of tables as one table, the others by name."""
    import genpool.reproduction  # noqa: F401 - registers its readers
    from genpool.data.reader import READERS
    from genpool.data.table import ColumnReader, TableReader

    entries = _arguments(ColumnReader) | _arguments(TableReader)
    known = READERS.options("table")
    rows = [f"| `{name}` | {text} |" for name, text in entries.items() if name in known]
    table = "\n".join(["| setting | meaning |", "|---|---|", *rows])
    lines = []
    for name, cls in READERS.items():
        own = [option for option in READERS.options(name) if option not in known]
        meanings = [f"`{option}`: {_explained(cls, option)}" for option in own]
        title = (cls.__doc__ or "").strip().splitlines()[0]
        lines.append(f"- `{name}`: {' '.join([title, *meanings])}")
    return "\n\n".join(
        [
            "### reader",
            "What reads the data, chosen by `reader.name`; the other keys are its options:",
            "\n".join(lines),
            "Options of `table`. All readers have `bad_rows`; `hub` has all but `quotes`, "
            "`delimiter`, `encoding` and `sheet`.",
            table,
        ]
    )


def _explained(cls: type, option: str) -> str:
    """Returns the meaning of an option, from the base class that a docstring may refer to."""
    texts = [_arguments(kind).get(option) for kind in cls.__mro__]
    return next(text for text in texts if text and "; see `" not in text)


def _arguments(cls: type) -> dict[str, str]:
    """Returns the `Args:` of a class's docstring in Google's style."""
    return _entries((cls.__doc__ or "").partition("Args:\n")[2])


def rooms_page() -> str:
    """Returns the map of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    body = text[text.index("## The map") : text.index("## Rules")]
    # Without a table of contents there is room for the long lines of the layout.
    return "---\nhide: [toc]\n---\n# Layout of the code\n\n" + body


def reproduction_page() -> str:
    """Returns the report of the reproduction, as far as it is measured."""
    report = ROOT / "results" / "reproduction" / "report.md"
    if not report.is_file():
        return REPRODUCTION + "No report has been published yet; these commands write one.\n"
    _, _, text = report.read_text(encoding="utf-8").partition("\n")  # without its title
    return REPRODUCTION + text.replace("](figures/", "](../pictures/reproduction/figures/")
