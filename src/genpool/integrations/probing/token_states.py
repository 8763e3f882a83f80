"""The states of the tokens of texts: what a frozen encoder, of genpool or transformers, returns."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.disk.folder_format import ST_MODULES, read_json
from genpool.disk.row_cache import HalfRows, RowCache
from genpool.errors import FolderError, InputError, require_extra
from genpool.inference.sentence_vectors import evaluation_mode, ignore_progress, length_groups
from genpool.model import SentenceEncoder
from genpool.model.reference import fingerprint
from genpool.tensors.packing import Packing
from genpool.text import Token

#: the largest value of half precision; larger states are cut there
MAX_STATE = float(np.finfo(np.float16).max)
#: which layers are read: "last", "all" (the input embeddings are layer 0), "0,6", or a list
Layers = str | Sequence[int]
#: tokens that are kept of a text where neither model nor tokenizer has a limit
MAX_TOKENS = 512
#: texts that are encoded together, fewer where they are long
ENCODING_BATCH = 32
#: characters of a token, to guess the length of a text before it is split
CHARACTERS_PER_TOKEN = 4
#: bytes of states that are computed before they are written to a cache
WRITE_BYTES = 2**24
EMBEDDED, TRANSFORMER = "embedded", "transformer:"
#: in a folder of sentence-transformers, the maximum length
TEXT_SETTINGS = "sentence_bert_config.json"


class TokenEncoder(ABC):
    """Texts in, token states out; the model itself is never trained."""

    reference: str | None  #: its name in a saved probe; None if it exists in memory only
    dim: int  #: dimensions of a state
    layers: int = 1  #: number of layers whose states are returned
    bidirectional: bool = False  #: whether states are [forward ; backward], as last pooling needs

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """The SHA-256 of all that the states depend on."""

    @abstractmethod
    def states(self, texts: Sequence[str]) -> list[HalfRows]:
        """Returns the states (tokens, layers, dim) of every text of a batch."""

    @abstractmethod
    def tokens(self, text: str) -> list[Token]:
        """Returns a token for each state of a text; special tokens are at (-1, -1)."""


def as_stored(states: Tensor, mask: Tensor) -> list[HalfRows]:
    """Returns the states (batch, time, layers, dim) of each text without padding, in half
    precision, which is exact enough; values beyond it are cut."""
    half = states.float().clamp(-MAX_STATE, MAX_STATE).half().cpu().numpy()
    return [text[kept] for text, kept in zip(half, mask.bool().cpu().numpy(), strict=True)]


class GenpoolTokenEncoder(TokenEncoder):
    """The states of a `SentenceEncoder`: what its pooling receives."""

    def __init__(
        self, encoder: SentenceEncoder, layers: Layers = "last", reference: str | None = None
    ) -> None:
        if layers != "last":
            raise InputError(
                f"layers is {layers!r}; of an encoder of genpool only the last layer is read. "
                "Leave layers out, or use a transformer."
            )
        self.encoder, self.reference = encoder, reference
        self.dim = encoder.encoder.output_dim
        self.bidirectional = encoder.encoder.bidirectional

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.encoder)

    def states(self, texts: Sequence[str]) -> list[HalfRows]:
        model = self.encoder
        batch = model.text.batch(model.text.words_batch(texts)).to(model.device)
        packing = Packing.from_mask(batch.mask)
        with evaluation_mode():
            rows = model.embedding.rows(batch, packing)  # (rows, embedding)
            states, _ = model.encoder.encode_rows(rows, packing, False)  # (rows, dim)
        return as_stored(packing.align(states).unsqueeze(2), batch.mask)

    def tokens(self, text: str) -> list[Token]:
        return self.encoder.text.with_ends(self.encoder.text.tokens(text))


class TransformerTokenEncoder(TokenEncoder):
    """The states of a folder of transformers, in which no code and no pickle is opened.

    `max_tokens` of a text are kept; 0 for as many as model and tokenizer are made for. Special
    tokens are states like all others, as they are in sentence-transformers' mean pooling.
    """

    def __init__(
        self, folder: Path, layers: Layers = "last", max_tokens: int = 0, reference: str = ""
    ) -> None:
        self.folder = folder.resolve()
        self.reference = reference or f"{TRANSFORMER}{self.folder}"
        self.model, self.tokenizer = _load_transformer(folder)
        config = self.model.config
        self.dim = int(config.hidden_size)
        # Tokenizers that know no limit say a huge number.
        limits = [self.tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
        self.max_tokens = max_tokens or min(MAX_TOKENS, *(int(limit) for limit in limits if limit))
        self.layer_numbers = layer_numbers(layers, int(config.num_hidden_layers))
        self.layers = len(self.layer_numbers)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.layer_numbers} {self.max_tokens}".encode())
        for path in sorted(self.folder.iterdir()):
            if path.suffix in (".json", ".safetensors", ".txt", ".model"):
                with path.open("rb") as file:
                    digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
        return f"sha256:{digest.hexdigest()}"

    def states(self, texts: Sequence[str]) -> list[HalfRows]:
        options = {"truncation": True, "max_length": self.max_tokens, "padding": True}
        inputs = self.tokenizer(list(texts), return_tensors="pt", **options)
        with torch.inference_mode():
            hidden = self.model(**inputs, output_hidden_states=True).hidden_states
            stacked = torch.stack([hidden[number] for number in self.layer_numbers], dim=2)
        return as_stored(stacked, inputs["attention_mask"])

    def tokens(self, text: str) -> list[Token]:
        return word_pieces(self.tokenizer, text, self.max_tokens)


def word_pieces(tokenizer: Any, text: str, max_tokens: int | None) -> list[Token]:
    """Returns the word pieces of a text by a tokenizer of transformers, and where they are."""
    options = {"truncation": max_tokens is not None, "max_length": max_tokens}
    encoded = tokenizer(text, return_offsets_mapping=tokenizer.is_fast, **options)
    ids = encoded["input_ids"]
    offsets = encoded.get("offset_mapping") or [(0, 0)] * len(ids)
    return [
        Token(name, start, end) if end > start else Token(name, -1, -1)
        for name, (start, end) in zip(tokenizer.convert_ids_to_tokens(ids), offsets, strict=True)
    ]


def _load_transformer(folder: Path) -> tuple[Any, Any]:
    """Returns model and tokenizer of a folder."""
    if not (folder / "config.json").is_file():
        raise FolderError(f"{folder} has no config.json; expected a folder of transformers.")
    with require_extra("Token states of a transformer", "st"):
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging
    options = {"local_files_only": True, "trust_remote_code": False}
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # of a second or less
    try:
        model = AutoModel.from_pretrained(folder, use_safetensors=True, **options)
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    except (OSError, ValueError, KeyError) as error:
        raise FolderError(f"{folder} cannot be loaded by transformers: {error}") from error
    finally:
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    return model.eval().float(), tokenizer


def layer_numbers(layers: Layers, count: int) -> tuple[int, ...]:
    """Returns the chosen layers of a model with `count` layers, counted from 0, the embeddings;
    negative numbers count from the last one."""
    named: dict[str, Sequence[int]] = {"last": [count], "all": range(count + 1)}
    listed: Any = named.get(str(layers), layers)
    try:
        listed = listed.split(",") if isinstance(listed, str) else listed
        numbers = tuple(range(count + 1)[int(number)] for number in listed)
    except (TypeError, ValueError, IndexError):
        numbers = ()
    if numbers and len(set(numbers)) == len(numbers):
        return numbers
    raise InputError(
        f"layers is {layers!r}; expected 'last', 'all', or different numbers from 0 (the input "
        f"embeddings) to {count} (the last layer)."
    )


def open_token_encoder(
    encoder: str | Path | SentenceEncoder | TokenEncoder, layers: Layers = "last"
) -> TokenEncoder:
    """Returns the token states of an encoder, named as in `AttentiveProbe`."""
    if isinstance(encoder, TokenEncoder):
        return encoder
    if isinstance(encoder, SentenceEncoder):
        return GenpoolTokenEncoder(encoder, layers)
    if not isinstance(encoder, str | Path):
        raise InputError(
            f"encoder is {type(encoder).__name__}; expected 'embedded', a folder, "
            "'transformer:FOLDER', or a SentenceEncoder."
        )
    name = str(encoder)
    if name == EMBEDDED:
        return GenpoolTokenEncoder(SentenceEncoder.from_pretrained(), layers, EMBEDDED)
    if name.startswith(TRANSFORMER):
        return TransformerTokenEncoder(Path(name.removeprefix(TRANSFORMER)), layers)
    folder = Path(name)
    inner, kind = _first_module(folder) if (folder / ST_MODULES).is_file() else (folder, "genpool.")
    reference = str(folder.resolve())
    if kind.startswith("genpool."):
        return GenpoolTokenEncoder(SentenceEncoder.from_pretrained(inner), layers, reference)
    settings = read_json(inner / TEXT_SETTINGS) if (inner / TEXT_SETTINGS).is_file() else {}
    return TransformerTokenEncoder(inner, layers, settings.get("max_seq_length") or 0, reference)


def _first_module(folder: Path) -> tuple[Path, str]:
    """Returns folder and type of the first module of sentence-transformers; those that follow it,
    such as a pooling, are not used."""
    source = folder / ST_MODULES
    try:
        first = dict(json.loads(source.read_text(encoding="utf-8"))[0])
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        raise FolderError(
            f"{source} is damaged: expected a list of modules in JSON ({error})."
        ) from None
    inner = folder / str(first.get("path", ""))
    if not inner.resolve().is_relative_to(folder.resolve()):
        raise FolderError(f"{source} names {inner}, which is outside of the folder.")
    return inner, str(first.get("type", ""))


# --- The states of many texts --------------------------------------------------------------------


@dataclass(frozen=True)
class TokenStates:
    """States of texts: the rows of all, (tokens, layers, dim), in half precision, and for each text
    the first of its rows and their number, (texts, 2)."""

    rows: HalfRows
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, texts: slice | NDArray[np.int64]) -> TokenStates:
        """Returns the states of some of the texts; no state is copied."""
        return TokenStates(self.rows, self.places[texts])

    def batch(
        self,
        texts: NDArray[np.int64],
        token_dropout: float = 0.0,
        random: torch.Generator | None = None,
    ) -> tuple[Tensor, Packing]:
        """Returns the states of the texts at these positions (batch,) as packed rows (rows, layers,
        dim), in single precision; a share of tokens is left out, drawn by `random`."""
        starts, lengths = torch.from_numpy(self.places[texts]).unbind(dim=1)  # (batch,) each
        longest = int(lengths.max()) if len(lengths) else 0
        mask = torch.arange(longest) < lengths.unsqueeze(1)  # (batch, time)
        if token_dropout:
            kept = mask & (torch.rand(mask.shape, generator=random) >= token_dropout)
            # A text keeps all of its tokens rather than none.
            mask = torch.where(kept.any(dim=1, keepdim=True), kept, mask)
        packing = Packing.from_mask(mask)
        position = packing.index % max(longest, 1)  # (rows,)
        index = starts[packing.sentence] + position  # (rows,)
        return torch.from_numpy(self.rows[index.numpy()].astype(np.float32)), packing

    def batches(self, batch_size: int) -> Iterator[NDArray[np.int64]]:
        """Yields the positions of all texts, those of similar lengths together."""
        for group in length_groups(self.places[:, 1].tolist(), batch_size):
            yield np.array(group, dtype=np.int64)


def open_state_cache(folder: str | Path, encoder: TokenEncoder) -> RowCache:
    """Returns the cache of an encoder's states, in a folder named after its fingerprint."""
    name = encoder.fingerprint.removeprefix("sha256:")[:24]
    return RowCache(Path(folder) / name, encoder.fingerprint, (encoder.layers, encoder.dim))


def encode_states(
    encoder: TokenEncoder,
    texts: Sequence[str],
    cache: RowCache | None = None,
    done: Callable[[int], object] = ignore_progress,
) -> TokenStates:
    """Returns the states of texts, each encoded once: in memory, or mapped from a cache."""
    todo = list(dict.fromkeys(texts)) if cache is None else cache.missing(texts)
    done(len(texts) - len(todo))
    keys: list[str] = []
    arrays: list[HalfRows] = []
    lengths = [len(text) // CHARACTERS_PER_TOKEN + 1 for text in todo]
    for positions in length_groups(lengths, ENCODING_BATCH):
        group = [todo[position] for position in positions]
        keys += group
        arrays += encoder.states(group)
        if cache is not None and sum(array.nbytes for array in arrays) >= WRITE_BYTES:
            cache.append(keys, arrays)
            keys, arrays = [], []
        done(len(group))
    if cache is not None:
        if keys:
            cache.append(keys, arrays)
        return TokenStates(cache.rows(), cache.places(texts))
    counts = np.array([len(array) for array in arrays], dtype=np.int64)
    places = dict(zip(keys, zip(np.cumsum(counts) - counts, counts, strict=True), strict=True))
    rows = np.concatenate([np.empty((0, encoder.layers, encoder.dim), np.float16), *arrays])
    return TokenStates(rows, np.array([places[text] for text in texts], np.int64).reshape(-1, 2))
