"""Classes that settings and saved folders select by name, and the plugins that add to them.

A plugin is a module that registers classes when it is imported. Only its user names it, in a recipe
(`plugins = ["my_module"]`), on the command line (`--plugin my_module`) or by importing it: a saved
folder says which plugin it needs, and is never a reason to import one.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from genpool.errors import ConfigError, unknown_name

T = TypeVar("T")


class Configured:
    """Base class that remembers the arguments of the constructor.

    Settings and saved folders contain them, so they are numbers, strings, booleans, None, or lists
    of these. The first argument, such as `input_dim`, is left out: the rest of a model decides it.

    Attributes:
        options: the arguments by name, with their defaults, without the first.
    """

    options: dict[str, Any]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__init__" in cls.__dict__:
            setattr(cls, "__init__", _remembering(cls.__dict__["__init__"]))  # noqa: B010


def _remembering(init: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def remember(self: Any, *args: Any, **arguments: Any) -> None:
        # Only the outermost constructor: those of base classes have other arguments.
        if "options" not in self.__dict__:
            try:
                bound = signature.bind(self, *args, **arguments)
            except TypeError:
                init(self, *args, **arguments)  # raises the usual message
                return
            bound.apply_defaults()
            object.__setattr__(self, "options", dict(list(bound.arguments.items())[2:]))
        init(self, *args, **arguments)

    return remember


class Registry(dict[str, type[T]], Generic[T]):
    """Classes by name. It is a dictionary; `register` adds to it.

    Args:
        kind: what the classes are, for messages: "pooling".
        base: the class that they are subclasses of.
        classes: those of genpool itself.
    """

    def __init__(self, kind: str, base: type[T], classes: Mapping[str, type[T]]) -> None:
        super().__init__(classes)
        self.kind, self.base = kind, base
        #: the module that each further class came from
        self.plugins: dict[str, str] = {}

    def register(self, name: str, cls: Any = None) -> Any:
        """Adds a class, which settings and saved folders then select by its name.

        Args:
            name: the name, which no other class has.
            cls: the class. Default: None, which returns a decorator.

        Returns:
            The class, or the decorator.

        Raises:
            ConfigError: the name is taken, or the class is not a subclass of the base class.

        Example:
            >>> @genpool.pooling.register("first")
            ... class FirstPooling(Pooling): ...
        """
        if cls is None:
            return functools.partial(self.register, name)
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise ConfigError(
                f"the {self.kind} {name!r} is {cls!r}; expected a subclass of "
                f"{self.base.__module__}.{self.base.__qualname__}."
            )
        other = self.get(name)
        # A module that is run again, in a notebook or by reload, replaces its own classes.
        if other is not None and _origin(other) != _origin(cls):
            raise ConfigError(
                f"{'.'.join(_origin(cls))} is registered as the {self.kind} {name!r}, which is the "
                f"name of {'.'.join(_origin(other))}; select another name."
            )
        self[name] = cls
        self.plugins[name] = cls.__module__
        return cls

    def require(self, name: str) -> type[T]:
        """Returns a class by its name; ConfigError if there is none."""
        if name not in self:
            raise ConfigError(unknown_name(self.kind, name, self))
        return self[name]

    def options(self, name: str) -> dict[str, Any]:
        """Returns the types of a class's options: the arguments of its constructor, but the first.

        Where a constructor has `**options`, they are those of its base class, too.
        """
        types: dict[str, Any] = {}
        for init in (
            vars(cls)["__init__"] for cls in self[name].__mro__ if "__init__" in vars(cls)
        ):
            parameters = list(inspect.signature(init).parameters.values())
            hints: dict[str, Any] = {}
            with suppress(NameError):  # a name that the module imports for type checkers only
                hints = get_type_hints(init)
            for parameter in parameters[2:]:  # without self, and input_dim or path
                if parameter.kind is not parameter.VAR_KEYWORD:
                    types.setdefault(parameter.name, hints.get(parameter.name, Any))
            if parameters[-1].kind is not parameters[-1].VAR_KEYWORD:
                break
        return types

    def name_of(self, module: T) -> str:
        """Returns the name that the class of a module is registered by, or raises ConfigError."""
        cls = type(module)
        for name, other in self.items():
            if other is cls:
                return name
        raise ConfigError(
            f"the {self.kind} {cls.__module__}.{cls.__qualname__} has no name, which settings and "
            f'saved folders need: genpool.{self.kind}.register("NAME", {cls.__name__}).'
        )


def plugin_hint(plugins: Sequence[str]) -> str:
    """Returns what the message for an unknown name adds where settings or a folder name plugins."""
    missing = [plugin for plugin in plugins if plugin not in sys.modules]
    if missing:
        return (
            f" It may be registered by the plugin {', '.join(missing)}, which is not imported. "
            f"If you trust it: import {missing[0]} before, load the model with "
            f'from_pretrained(path, plugins=["{missing[0]}"]), or on the command line: '
            f"--plugin {missing[0]}"
        )
    listed = ", ".join(plugins)
    return f" The plugin {listed} is imported and does not register it." if plugins else ""


def load_plugins(modules: Iterable[str]) -> None:
    """Imports modules that register classes; those of the current folder are found, too."""
    for module in modules:
        if module in sys.modules:
            continue
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.append(folder)  # it stays: worker processes import the plugin, too
        try:
            import_module(module)
        except ConfigError as error:
            raise ConfigError(f"plugin {module}: {error}") from error
        except Exception as error:  # whatever the code of a plugin raises
            raise ConfigError(
                f"the plugin {module!r} cannot be imported: {type(error).__name__}: {error}. "
                f"Expected the name of a module on Python's path or in {folder}, without .py."
            ) from error


def _origin(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
