"""From the name of an encoder to its token states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from genpool.errors import FolderError, InputError
from genpool.model import SentenceEncoder
from genpool.probing.genpool_states import GenpoolTokenEncoder
from genpool.probing.token_encoder import TokenEncoder
from genpool.probing.transformer_states import Layers, TransformerTokenEncoder

EMBEDDED, TRANSFORMER = "embedded", "transformer:"
#: the file that says that a folder is of sentence-transformers
MODULES = "modules.json"
#: the file in which sentence-transformers keeps the maximum length
TEXT_SETTINGS = "sentence_bert_config.json"


def open_token_encoder(
    encoder: str | Path | SentenceEncoder | TokenEncoder, layers: Layers = "last"
) -> TokenEncoder:
    """Returns the token states of an encoder.

    Args:
        encoder: "embedded", the encoder inside the package; a folder of genpool or of
            sentence-transformers; "transformer:FOLDER", a folder of transformers; or a
            `SentenceEncoder` or a `TokenEncoder` in memory.
        layers: which layers of a transformer: "last", "all", or their numbers. Encoders of genpool
            have the last one only. Default: "last".

    Raises:
        FolderError: the folder is missing, or of another kind.
        InputError: `encoder` is something else, or has no such layers.
        MissingExtraError: transformers is needed and not installed.

    Example:
        >>> open_token_encoder("embedded").dim
        600
    """
    if isinstance(encoder, TokenEncoder):
        return encoder
    if isinstance(encoder, SentenceEncoder):
        return _genpool(encoder, None, layers)
    if not isinstance(encoder, str | Path):
        raise InputError(
            f"encoder is {type(encoder).__name__}; expected 'embedded', a folder, "
            "'transformer:FOLDER', or a SentenceEncoder."
        )
    name = str(encoder)
    if name == EMBEDDED:
        return _genpool(SentenceEncoder.from_pretrained(), EMBEDDED, layers)
    if name.startswith(TRANSFORMER):
        return TransformerTokenEncoder(name.removeprefix(TRANSFORMER), layers)
    folder = Path(name)
    if (folder / MODULES).is_file():
        return _sentence_transformer(folder, layers)
    return _genpool(SentenceEncoder.from_pretrained(folder), str(folder.resolve()), layers)


def _genpool(encoder: SentenceEncoder, reference: str | None, layers: Layers) -> TokenEncoder:
    if layers != "last":
        raise InputError(
            f"layers is {layers!r}; of an encoder of genpool only the last layer is read. Leave "
            "layers out, or use a transformer."
        )
    return GenpoolTokenEncoder(encoder, reference)


def _sentence_transformer(folder: Path, layers: Layers) -> TokenEncoder:
    """Returns the states of the first module; later ones, such as a pooling, are not used."""
    first = _first_module(folder)
    inner, kind = folder / str(first.get("path", "")), str(first.get("type", ""))
    if not inner.resolve().is_relative_to(folder.resolve()):
        raise FolderError(f"{folder / MODULES} names {inner}, which is outside of the folder.")
    reference = str(folder.resolve())
    if kind.startswith("genpool."):
        return _genpool(SentenceEncoder.from_pretrained(inner), reference, layers)
    settings = _read_json(inner / TEXT_SETTINGS) if (inner / TEXT_SETTINGS).is_file() else {}
    limit = settings.get("max_seq_length") if isinstance(settings, dict) else None
    return TransformerTokenEncoder(inner, layers, limit, reference)


def _first_module(folder: Path) -> dict[str, Any]:
    modules = _read_json(folder / MODULES)
    if not isinstance(modules, list) or not modules or not isinstance(modules[0], dict):
        raise FolderError(f"{folder / MODULES} is damaged: expected a list of modules.")
    return modules[0]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from None
