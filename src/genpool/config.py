"""Settings: frozen dataclasses, read from plain dictionaries (TOML, JSON) and checked all at once.

Every setting is saved in config.json. A folder that was saved before a setting existed has no value
for it and gets the default, so a default must never change its meaning.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from torch import nn

from genpool.embedding.characters import CharacterPadding
from genpool.errors import ConfigError, InputError, unknown_name
from genpool.registry import Registry
from genpool.tensors.modules import DropoutScaling, Initialization, on_meta_device
from genpool.text.vocabulary import CharacterNgrams

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TextSettings:
    """How a sentence becomes tokens.

    Attributes:
        rules: "penn" splits words from punctuation; "parts" also splits `well-known` and
            `his/her`; "whitespace" is for tokenized text. Default: "penn".
        sentence_ends: add a begin and an end token to every sentence. Default: False.
        max_length: keep at most this many tokens. Default: None, which keeps all.
        lower_case_fallback: look a word that is not in the vocabulary as written up in lower case.
            Default: True.
        folding: words that differ in capitals, accents, the kind of their apostrophe, full-width
            or characters without width are the same word. Default: False.
    """

    rules: Literal["penn", "parts", "whitespace"] = "penn"
    sentence_ends: bool = False
    max_length: int | None = field(default=None, metadata={"minimum": 1})
    lower_case_fallback: bool = True
    folding: bool = False


@dataclass(frozen=True)
class EmbeddingSettings:
    """How a token becomes a vector; the defaults are the paper's.

    Attributes:
        word_dim: dimension of the word table (that of the vector file, where one is used).
            Default: 300.
        frozen: do not train the word table. Default: True.
        characters: concatenate the word vector with a vector computed from the characters.
            Default: True.
        character_dim: dimension of a character's vector. Default: 15.
        character_widths: widths of the character filters. Default: (1, 3, 5).
        character_maps: feature maps of each width. Default: 100.
        dropout: probability that a value is dropped in training. Default: 0.5.
        dropout_scaling: "inverted" rescales in training, as PyTorch does; "test" multiplies by
            1 - dropout at inference, as the released program does. Default: "inverted".
        character_initialization: initial character filters: "torch" as `nn.Conv1d`, "gaussian"
            with standard deviation 0.01 as the released program. Default: "torch".
        character_padding: "both" centres a filter on a character; "right" starts it there, as the
            released program does. Default: "both".
        ngram_buckets: rows of a table of character n-grams, from which a word without an entry
            gets its vector; it takes the place of the character CNN. Default: 0, no such table.
        ngram_sizes: characters of an n-gram. Default: (3, 4, 5).
        hidden_words: probability that a known word of a batch is represented by its n-grams in
            training. Default: 0.
    """

    word_dim: int = field(default=300, metadata={"minimum": 1})
    frozen: bool = True
    characters: bool = True
    character_dim: int = field(default=15, metadata={"minimum": 1})
    character_widths: tuple[int, ...] = field(default=(1, 3, 5), metadata={"minimum": 1})
    character_maps: int = field(default=100, metadata={"minimum": 1})
    dropout: float = field(default=0.5, metadata={"minimum": 0.0, "below": 1.0})
    dropout_scaling: DropoutScaling = "inverted"
    character_initialization: Initialization = "torch"
    character_padding: CharacterPadding = "both"
    ngram_buckets: int = field(default=0, metadata={"minimum": 0})
    ngram_sizes: tuple[int, ...] = field(default=(3, 4, 5), metadata={"minimum": 1})
    hidden_words: float = field(default=0.0, metadata={"minimum": 0.0, "below": 1.0})


@dataclass(frozen=True)
class ProjectionSettings:
    """A linear map of the pooled vector.

    Attributes:
        dim: dimension of the sentence vector. Default: None, which has no projection.
    """

    dim: int | None = field(default=None, metadata={"minimum": 1})


@dataclass(frozen=True)
class ClassifierSettings:
    """The MLP.

    Attributes:
        hidden_dim: dimension of its two hidden layers. Default: 300.
        dropout: probability that a hidden value is dropped in training. Default: 0.5.
        initialization: "torch" as `nn.Linear`; "gaussian" with standard deviation 0.01 and zero
            biases as the released program. Default: "torch".
        dropout_scaling: as in `EmbeddingSettings`. Default: "inverted".
    """

    hidden_dim: int = field(default=300, metadata={"minimum": 1})
    dropout: float = field(default=0.5, metadata={"minimum": 0.0, "below": 1.0})
    initialization: Initialization = "torch"
    dropout_scaling: DropoutScaling = "inverted"


@dataclass(frozen=True)
class Part:
    """A class that is selected by name, with its arguments.

    Attributes:
        name: a name of ENCODERS, POOLINGS or READERS.
        options: arguments of the class, without `input_dim`. Default: none.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSettings:
    """A complete model. The defaults are the paper's MultiNLI model."""

    text: TextSettings = TextSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    encoder: Part = Part("stacked-bilstm")
    pooling: Part = Part("generalized")
    projection: ProjectionSettings = ProjectionSettings()
    classifier: ClassifierSettings = ClassifierSettings()


def ngrams_of(settings: EmbeddingSettings) -> CharacterNgrams | None:
    """Returns the n-grams that the settings ask for; None where they have a character CNN."""
    if not settings.ngram_buckets:
        return None
    return CharacterNgrams(settings.ngram_buckets, settings.ngram_sizes)


def to_dict(settings: Any) -> dict[str, Any]:
    """Returns settings as plain dictionaries; a Part is its name and its options side by side."""
    result: dict[str, Any] = {}
    for setting in dataclasses.fields(settings):
        value = getattr(settings, setting.name)
        if isinstance(value, Part):
            result[setting.name] = {"name": value.name, **value.options}
        elif dataclasses.is_dataclass(value):
            result[setting.name] = to_dict(value)
        else:
            result[setting.name] = list(value) if isinstance(value, tuple) else value
    return result


def from_dict(
    cls: type[Settings],
    values: Mapping[str, Any],
    parts: Mapping[str, Registry[Any]],
    source: str | Path | None = None,
) -> Settings:
    """Returns the settings of nested dictionaries, or raises ConfigError with every mistake.

    The fields of `cls` are settings, sections (dataclasses), or parts: classes of `parts`.
    """
    problems: list[str] = []

    def read(cls: type[Any], values: Mapping[str, Any], prefix: str) -> Any:
        hints = typing.get_type_hints(cls)
        known = {setting.name: setting for setting in dataclasses.fields(cls)}
        valid: dict[str, Any] = {}
        for key, value in values.items():
            name, problem = prefix + key, None
            if key not in known:
                problem = unknown_name("setting", name, [prefix + other for other in known])
            elif hints[key] is Part:
                valid[key] = _read_part(value, parts[key], name, problems)
            elif not dataclasses.is_dataclass(hints[key]):
                problem = _mismatch(name, value, hints[key], known[key].metadata)
                if problem is None:  # otherwise it is left out, so that the rest can be checked
                    valid[key] = tuple(value) if isinstance(value, list) else value
            elif isinstance(value, Mapping):
                valid[key] = read(hints[key], value, f"{name}.")
            else:
                problem = f"{name} is {value!r}; expected a section of settings."
            problems.extend([problem] if problem else [])
        return cls(**valid)

    settings: Settings = read(cls, values, "")
    if problems:
        raise ConfigError(problems, source)
    return settings


def _read_part(value: Any, classes: Registry[Any], section: str, problems: list[str]) -> Part:
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping) or "name" not in value:
        problems.append(f"{section} is {value!r}; expected a section with a name.")
        return Part("")
    name, options = value["name"], {key: option for key, option in value.items() if key != "name"}
    if name not in list(classes):  # a list: the name may be anything, even unhashable
        problems.append(unknown_name(section, name, classes))
    else:
        wrong = option_problems(section, name, classes, options)
        if not wrong and issubclass(classes.base, nn.Module):
            wrong = _size_problems(section, classes[name], options)
        problems += wrong
    plain = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    return Part(name, plain)


def option_problems(
    section: str, name: str, classes: Registry[Any], options: Mapping[str, Any]
) -> list[str]:
    """Returns the options that are unknown or not of the type that the class says."""
    problems, types = [], classes.options(name)
    for key, value in options.items():
        if key not in types:
            problems.append(unknown_name(f"option of {section} {name!r}", key, types))
        elif problem := _mismatch(f"{section}.{key}", value, types[key], {}):
            problems.append(problem)
    return problems


def _size_problems(section: str, cls: Any, options: Mapping[str, Any]) -> list[str]:
    """Returns why a module cannot be made, which is tried without taking memory."""
    try:
        with on_meta_device():
            cls(4, **options)
    except InputError as error:
        return [f"{section}: {error}"]
    except (RuntimeError, TypeError, OverflowError) as error:
        return [f"{section}: a tensor would be too large ({str(error).splitlines()[0]})."]
    return []


def _mismatch(name: str, value: Any, hint: Any, limits: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with a value, or None."""
    if typing.get_origin(hint) is Literal and value not in typing.get_args(hint):
        return unknown_name(name, value, typing.get_args(hint))
    if not _fits(value, hint):
        return f"{name} is {value!r}; expected {_describe(hint)}."
    entries = value if isinstance(value, list | tuple) else [value]
    if "minimum" in limits and not entries:
        return f"{name} is {value!r}; expected at least one value."
    for entry in entries:
        if entry is None or isinstance(entry, str | bool):
            continue
        # "not at least" rather than "less": NaN is neither.
        if "minimum" in limits and not entry >= limits["minimum"]:
            return f"{name} is {value!r}; expected {limits['minimum']} or more."
        if "below" in limits and not entry < limits["below"]:
            return f"{name} is {value!r}; expected a number below {limits['below']}."
    return None


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:  # an argument of a user's class that has no type
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is Literal:
        return value in arguments
    if origin in (tuple, Sequence):
        is_list = isinstance(value, list | tuple)
        return is_list and all(_fits(entry, arguments[0]) for entry in value)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, hint)


def _describe(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments)
    if origin in (tuple, Sequence):
        return f"a list in which every value is {_describe(arguments[0])}"
    names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
    return names.get(hint, "none" if hint is type(None) else str(hint))
