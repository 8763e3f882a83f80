"""genpool: generalized pooling, from the token states of a sentence to one vector.

>>> from genpool import SentenceEncoder
>>> model = SentenceEncoder.from_pretrained("my-model")
>>> model.encode(["A man sleeps.", "A person rests."])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from genpool.errors import GenpoolError

if TYPE_CHECKING:
    from genpool import pooling
    from genpool.model import PairClassifier, SentenceEncoder, TextClassifier

__version__ = "0.1.0"

__all__ = [
    "GenpoolError",
    "PairClassifier",
    "SentenceEncoder",
    "TextClassifier",
    "__version__",
    "pooling",
]


def __getattr__(name: str) -> Any:
    # PyTorch is imported when something needs it: help, recipes and errors take no time.
    if name == "pooling":
        return import_module("genpool.pooling")
    if name in __all__:
        return getattr(import_module("genpool.model"), name)
    raise AttributeError(f"module 'genpool' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
