"""sentence-transformers is an extra of genpool: a missing one is answered with its pip line."""

from __future__ import annotations

from genpool.errors import MissingExtraError

try:
    import sentence_transformers  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("genpool.integrations.sentence_transformers", "st") from error
