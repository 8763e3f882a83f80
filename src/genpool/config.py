"""Settings: frozen dataclasses, read from plain dictionaries (TOML, JSON) and checked all at once.

text        how a sentence becomes tokens
embedding   how a token becomes a vector
encoder     a name of ENCODERS and its options
pooling     a name of POOLINGS and its options
projection  a linear map of the pooled vector to another width, if any
classifier  the MLP on top
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from genpool.errors import ConfigError, InputError, unknown_name
from genpool.tensors.meta import on_meta_device

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TextSettings:
    """How a sentence becomes tokens.

    rules          "penn" splits words from punctuation; "whitespace" is for tokenised text
    sentence_ends  add a begin and an end token to every sentence
    max_length     keep at most this many tokens; None keeps all
    """

    rules: Literal["penn", "whitespace"] = "penn"
    sentence_ends: bool = False
    max_length: int | None = field(default=None, metadata={"minimum": 1})


@dataclass(frozen=True)
class EmbeddingSettings:
    """How a token becomes a vector; the paper's numbers are the defaults.

    word_dim    width of the word table (that of the vector file, where one is used)
    frozen      keep the word table as it is while training
    characters  join the word vector with a vector made from the letters
    """

    word_dim: int = field(default=300, metadata={"minimum": 1})
    frozen: bool = True
    characters: bool = True
    character_dim: int = field(default=15, metadata={"minimum": 1})
    character_widths: tuple[int, ...] = field(default=(1, 3, 5), metadata={"minimum": 1})
    character_maps: int = field(default=100, metadata={"minimum": 1})
    dropout: float = field(default=0.5, metadata={"minimum": 0.0, "below": 1.0})


@dataclass(frozen=True)
class ProjectionSettings:
    """A linear map of the pooled vector: width of the sentence vector; None leaves it as it is."""

    dim: int | None = field(default=None, metadata={"minimum": 1})


@dataclass(frozen=True)
class ClassifierSettings:
    """The MLP: width of its two hidden layers, and dropout after each."""

    hidden_dim: int = field(default=300, metadata={"minimum": 1})
    dropout: float = field(default=0.5, metadata={"minimum": 0.0, "below": 1.0})


@dataclass(frozen=True)
class Part:
    """A part that is chosen by name, with the arguments of its class (input_dim left out)."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSettings:
    """A whole model. The defaults are the paper's MultiNLI model."""

    text: TextSettings = TextSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    encoder: Part = Part("stacked-bilstm")
    pooling: Part = Part("generalized")
    projection: ProjectionSettings = ProjectionSettings()
    classifier: ClassifierSettings = ClassifierSettings()


def to_dict(settings: Any) -> dict[str, Any]:
    """Settings as plain dictionaries; a Part is its name and its options side by side."""
    result: dict[str, Any] = {}
    for each in dataclasses.fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, Part):
            result[each.name] = {"name": value.name, **value.options}
        elif dataclasses.is_dataclass(value):
            result[each.name] = to_dict(value)
        else:
            result[each.name] = list(value) if isinstance(value, tuple) else value
    return result


def complete(section: str, part: Part, classes: Mapping[str, type]) -> Part:
    """The part with every option of its class written out, defaults too.

    This is what is saved: a folder keeps its meaning when a default changes.
    """
    if part.name not in classes:
        raise ConfigError(unknown_name(section, part.name, classes))
    parameters = inspect.signature(classes[part.name]).parameters
    known = list(parameters)[1:]
    if unknown := [key for key in part.options if key not in known]:
        title = f"option of {section} {part.name!r}"
        raise ConfigError([unknown_name(title, key, known) for key in unknown])
    defaults = {
        name: each.default
        for name, each in parameters.items()
        if each.default is not inspect.Parameter.empty
    }
    return Part(part.name, {**defaults, **part.options})


@dataclass(frozen=True)
class PartKind:
    """The names that a section may choose from, the options of each, and what is wrong with some.

    options(name) -> names of options; check(section, name, options) -> problems
    """

    names: Collection[str]
    options: Callable[[str], Sequence[str]]
    check: Callable[[str, str, Mapping[str, Any]], list[str]]


def from_dict(
    cls: type[Settings],
    given: Mapping[str, Any],
    parts: Mapping[str, PartKind],
    source: str | Path | None = None,
) -> Settings:
    """Settings of class `cls`; raises ConfigError with every mistake of `given`.

    parts: what each section that is a Part may hold.
    """
    problems: list[str] = []
    settings = _read(cls, given, parts, "", problems)
    if problems:
        raise ConfigError(problems, source)
    return settings


def _read(
    cls: type[Settings],
    given: Mapping[str, Any],
    parts: Mapping[str, PartKind],
    prefix: str,
    problems: list[str],
) -> Settings:
    hints = typing.get_type_hints(cls)
    known = {each.name: each for each in dataclasses.fields(cast(Any, cls))}
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = prefix + key
        if key not in known:
            problems.append(unknown_name("setting", name, [prefix + each for each in known]))
        elif hints[key] is Part:
            values[key] = _read_part(value, parts[key], name, problems)
        elif dataclasses.is_dataclass(hints[key]):
            if isinstance(value, Mapping):
                section = cast(type[Any], hints[key])
                values[key] = _read(section, value, parts, f"{name}.", problems)
            else:
                problems.append(f"{name} is {value!r}; expected a section of settings.")
        else:
            problem = _mismatch(name, value, hints[key], known[key].metadata)
            if problem:
                problems.append(problem)
            else:
                values[key] = tuple(value) if isinstance(value, list) else value
    # Wrong settings are left out, so that the rest can still be checked; the error is raised later.
    return cls(**values)


def _read_part(given: Any, kind: PartKind, section: str, problems: list[str]) -> Part:
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping) or "name" not in given:
        problems.append(f"{section} is {given!r}; expected a section with a name.")
        return Part("")
    options = {key: value for key, value in given.items() if key != "name"}
    if given["name"] not in list(kind.names):  # a list: the name may be anything, even unhashable
        problems.append(unknown_name(section, given["name"], kind.names))
    else:
        problems += kind.check(section, given["name"], options)
    plain = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    return Part(given["name"], plain)


def module_kind(classes: Mapping[str, type]) -> PartKind:
    """Parts that are modules: options are the arguments of the class, input_dim left out."""

    def known_options(name: str) -> list[str]:
        return list(inspect.signature(classes[name]).parameters)[1:]

    def check(section: str, name: str, options: Mapping[str, Any]) -> list[str]:
        hints = typing.get_type_hints(classes[name].__init__)  # type: ignore[misc]
        known = known_options(name)
        problems = []
        for key, value in options.items():
            if key not in known:
                problems.append(unknown_name(f"option of {section} {name!r}", key, known))
            elif problem := _mismatch(f"{section}.{key}", value, hints[key], {}):
                problems.append(problem)
        if not problems:
            try:
                with on_meta_device():  # sizes only, no memory: just to see whether it can be
                    classes[name](4, **options)
            except InputError as error:
                problems.append(f"{section}: {error}")
            except (RuntimeError, TypeError, OverflowError) as error:
                reason = str(error).splitlines()[0]
                problems.append(f"{section}: no tensor can be so large ({reason}).")
        return problems

    return PartKind(classes, known_options, check)


def _mismatch(name: str, value: Any, hint: Any, limits: Mapping[str, Any]) -> str | None:
    """What is wrong with a value, or None."""
    if typing.get_origin(hint) is Literal and value not in typing.get_args(hint):
        return unknown_name(name, value, typing.get_args(hint))
    if not _fits(value, hint):
        return f"{name} is {value!r}; expected {_describe(hint)}."
    numbers = value if isinstance(value, list | tuple) else [value]
    if "minimum" in limits and not numbers:
        return f"{name} is {value!r}; expected one number or more."
    for number in numbers:
        if number is None or isinstance(number, str | bool):
            continue
        # "not at least" rather than "less": NaN is neither.
        if "minimum" in limits and not number >= limits["minimum"]:
            return f"{name} is {value!r}; expected {limits['minimum']} or more."
        if "below" in limits and not number < limits["below"]:
            return f"{name} is {value!r}; expected a number below {limits['below']}."
    return None


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if origin in (tuple, Sequence):
        many = isinstance(value, list | tuple)
        return many and all(_fits(each, inner[0]) for each in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _describe(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(each) for each in inner)
    if origin in (tuple, Sequence):
        return f"a list, each {_describe(inner[0])}"
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    return names.get(hint, "nothing" if hint is type(None) else str(hint))
