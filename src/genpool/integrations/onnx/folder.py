"""The exported folder: how it is replaced, how its settings are read, and its page.

    config.json      format, kind, and what is needed to turn text into ids
    model.onnx       the graph (above a gigabyte, its weights are in model.onnx.data)
    tokenizer.json   rules and vocabulary
    README.md        what it is and how to run it

Only JSON and the graph are read, and a graph is data: opening the folder runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from genpool.disk.atomic import atomic_folder, recover, require_version
from genpool.errors import FolderError
from genpool.integrations.onnx.graph import ONNX_FILE
from genpool.saving.storage import CARD, CONFIG, FORMAT, ONNX_FORMAT, TOKENIZER

EXPORT_VERSION = 1
#: the files that a new export replaces; others in the folder stay
EXPORTED_FILES = (CONFIG, ONNX_FILE, f"{ONNX_FILE}.data", TOKENIZER, CARD)

#: the row of every input on the page
INPUT_ROWS = {
    "word_ids": "| `word_ids` | int64 (batch, time) | id of each token in `tokenizer.json`: of the "
    "token {form}, else 1; with `sentence_ends` in `config.json`, 2 before and 3 after each "
    "sentence |",
    "letters": "| `letters` | int64 (batch, time, longest word) | {letters} |",
    "mask": "| `mask` | bool (batch, time) | true at real tokens; padding may be anywhere |",
    "input_ids": "| `input_ids` | int64 (batch, time) | ids of the tokens |",
    "attention_mask": "| `attention_mask` | int64 (batch, time) | 1 at real tokens, 0 at padding |",
    "token_type_ids": "| `token_type_ids` | int64 (batch, time) | 0 for single sentences |",
}
#: the content of the input `letters`
CHARACTERS = (
    "ids of the characters of each token: the position in `characters` of `config.json` plus 4, 1 "
    "for any other character, 0 for none; the begin and end tokens have the characters 2 and 3"
)
NGRAMS = (
    "for a token without an entry, ids of its n-grams: 4 + CRC-32 (of UTF-8) modulo "
    "`ngram_buckets`, of `<word>` (the first 40 characters of the folded form) and of all its "
    "parts of `ngram_sizes` characters, each once; 0 for none, and for tokens with an entry. Both "
    "settings are in `config.json`"
)
#: how a token is looked up
FOLDED = (
    "in its folded form: without characters of no width, curly quotes and dashes as in ASCII, "
    "NFKC, then NFKD without combining marks, lower case (`folded` of `genpool.text.tokenizer`)"
)
AS_WRITTEN = "as written"
LOWER_CASE = "as written, else of its lower-case form"
PAGE = """---
library_name: genpool
tags: [sentence-embedding, onnx]
---
# {title}

The model as one ONNX graph, exported by genpool: token ids in, sentence vectors out.
{use}
## The graph

`model.onnx`, for onnxruntime or another runtime for ONNX.

| input | type and shape | content |
|---|---|---|
{inputs}

Output: `sentence_embedding`, float32 (batch, {output_dim}). A sentence without tokens has a vector
of zeros. Batch size and length are dynamic, from 1 upwards.

Compared with PyTorch at the export: {checked}.
"""


def new_folder(path: str | Path) -> AbstractContextManager[Path]:
    """Yields an empty folder beside `path` to write to; at the end of the block it replaces it."""
    return atomic_folder(path, "the export", _check_replaced, EXPORTED_FILES)


def write_config(folder: Path, kind: str, settings: Mapping[str, Any]) -> None:
    """Writes config.json; other libraries show its model_type for a kind unknown to them."""
    config = {
        "format": ONNX_FORMAT,
        "format_version": EXPORT_VERSION,
        "model_type": f"ONNX graph of a {kind}, exported by genpool",
        "kind": kind,
        **settings,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8", newline="\n")


def read_config(folder: Path, kind: str, files: Sequence[str]) -> dict[str, Any]:
    """Returns the config of an export of this kind; the folder must have all `files`."""
    expected = f"expected the ONNX export of a {kind}"
    with suppress(OSError):
        recover(folder.resolve())
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; {expected}.")
    try:
        content = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise FolderError(f"{folder} has no {CONFIG}; {expected}. It contains: {names}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{folder / CONFIG} cannot be read: {error}") from None
    config = content if isinstance(content, dict) else {}
    if config.get("format") == FORMAT:
        raise FolderError(
            f"{folder} contains a {config.get('kind')} saved by genpool; {expected}. Export it "
            f"first: genpool export {folder} OUT."
        )
    if config.get("format") != ONNX_FORMAT:
        model_type = config.get("model_type", "unknown")
        raise FolderError(f"{folder} is of another kind (model type: {model_type}); {expected}.")
    require_version(config.get("format_version"), EXPORT_VERSION, folder / CONFIG)
    if config.get("kind") != kind:
        raise FolderError(
            f"{folder} contains the graph of a {config.get('kind')}; {expected}. Run it with "
            f"onnxruntime: {folder / 'README.md'} lists its inputs."
        )
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise FolderError(f"{folder} is incomplete: {' and '.join(missing)} missing.")
    return config


def _check_replaced(target: Path) -> None:
    """Only an earlier export may be overwritten."""
    with suppress(OSError, ValueError, AttributeError):
        config = json.loads((target / CONFIG).read_text(encoding="utf-8"))
        if config.get("format") == ONNX_FORMAT:
            return
    raise FolderError(
        f"{target} contains something that is no ONNX export, which exporting would replace. "
        "Choose a new or empty folder."
    )


def write_card(
    folder: Path,
    title: str,
    inputs: Sequence[str],
    output_dim: int,
    int8: bool,
    difference: float,
    use: str = "",
    form: str = AS_WRITTEN,
    letters: str = CHARACTERS,
) -> None:
    """Writes the page of the folder.

    inputs: the names of the graph's inputs; difference: the largest that the check found; use: how
    it is used from Python; form: in which form tokens are looked up; letters: the content of the
    input of this name.
    """
    checked = (
        f"8-bit weights, the smallest cosine was {1 - difference:.5f}"
        if int8
        else f"the largest difference was {difference:.1e}"
    )
    rows = "\n".join(INPUT_ROWS[name] for name in inputs).format(form=form, letters=letters)
    page = PAGE.format(title=title, use=use, inputs=rows, output_dim=output_dim, checked=checked)
    (folder / CARD).write_text(page, encoding="utf-8", newline="\n")
