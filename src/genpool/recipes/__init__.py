"""Recipes: TOML files that are part of the package, each headed by the command that runs it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from genpool.errors import ConfigError, unknown_name


def recipe_names() -> list[str]:
    files = resources.files(__name__).iterdir()
    return sorted(each.name.removesuffix(".toml") for each in files if each.name.endswith(".toml"))


def recipe_text(name: str) -> str:
    """The text of a recipe that is part of the package, or of a file of your own."""
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"there is no recipe file {name}")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the recipe file {name} cannot be read: {error}") from None
    if name not in recipe_names():
        raise ConfigError(
            unknown_name("recipe", name, recipe_names()) + " A file of your own ends in .toml."
        )
    return (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def recipe_title(name: str) -> str:
    """The first line of a recipe, without its mark of a comment."""
    return recipe_text(name).splitlines()[0].removeprefix("#").strip()
