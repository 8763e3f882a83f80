"""Recipes: TOML files that are part of the package, each headed by the command that runs it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from genpool.disk.files import is_file
from genpool.errors import ConfigError, unknown_name

#: the recipes of the package by what they are for, as `genpool recipes` lists them
RECIPE_GROUPS = {
    "Your own table": ("texts", "pairs", "texts-scratch", "pairs-scratch"),
    "Small enough for a CPU": (
        "rules",
        "trec",
        "sst5",
        "sick",
        "reviews-stars",
        "reviews-age",
        "snli-small",
    ),
    "The paper": ("snli", "multinli", "age", "yelp", "snli-released"),
    "Earlier systems of the paper's Table 1": (
        "snli-tree-cnn",
        "snli-spinn",
        "snli-nti",
        "snli-nse",
        "snli-gumbel-tree",
        "snli-gumbel-tree-600",
        "snli-cafe",
        "snli-resan",
    ),
    "The models inside the package": ("embedded", "embedded-nli"),
}


def recipe_names() -> list[str]:
    """Returns the names of the recipes of the package, sorted."""
    names = [file.name for file in resources.files(__name__).iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def recipe_text(name: str) -> str:
    """Returns the text of a recipe of the package, or of a file of your own.

    Args:
        name: A name of `recipe_names()`, or the path of a .toml file.

    Raises:
        ConfigError: there is no such recipe, or its file cannot be read.

    Example:
        >>> recipe_text("rules").splitlines()[0].startswith("# Sentence pairs")
        True
    """
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not is_file(path):
            raise ConfigError(f"there is no recipe file {name}")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the recipe file {name} cannot be read: {error}") from None
    if name not in recipe_names():
        problem = unknown_name("recipe", name, recipe_names())
        raise ConfigError(f"{problem} The path of your own file ends in .toml.")
    return (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def recipe_title(name: str) -> str:
    """Returns the first line of a recipe, which says what it trains."""
    return recipe_text(name).splitlines()[0].removeprefix("#").strip()
