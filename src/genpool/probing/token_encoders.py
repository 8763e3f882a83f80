"""The states of the tokens of a text: what a frozen encoder gives to a probe."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.errors import FolderError, InputError, require_extra
from genpool.inference.sentence_vectors import evaluation_mode
from genpool.model import SentenceEncoder
from genpool.search.index_card import fingerprint
from genpool.tensors.packing import Packing
from genpool.text import Token
from genpool.text.vocabulary import BEGIN, END

#: what is stored: half precision is exact enough for states, and takes half the space
StateArray = NDArray[np.float16]
#: the largest value of half precision; larger states are cut there
MAX_STATE = float(np.finfo(np.float16).max)
#: which layers are read: the last one, all of them (the input embeddings are layer 0), or a list
Layers = str | Sequence[int]
#: tokens that are kept of a text where neither model nor tokenizer has a limit
MAX_TOKENS = 512

EMBEDDED, TRANSFORMER = "embedded", "transformer:"
#: of a folder of sentence-transformers: its list of modules, and the maximum length
MODULES, TEXT_SETTINGS = "modules.json", "sentence_bert_config.json"


class TokenEncoder(ABC):
    """Texts in, token states out; the model itself is never trained.

    Attributes:
        reference: how the encoder is named on the command line and in a saved probe: "embedded",
            a folder, or "transformer:FOLDER"; None if it exists in memory only.
        dim: dimensions of a state.
        layers: number of layers whose states are returned.
        bidirectional: whether states are [forward ; backward], which last pooling depends on.
    """

    reference: str | None
    dim: int
    layers: int
    bidirectional: bool = False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """The SHA-256 of all that the states depend on."""

    @abstractmethod
    def states(self, texts: Sequence[str]) -> list[StateArray]:
        """Returns the states (tokens, layers, dim) of every text, in half precision; the texts,
        of similar lengths, are encoded as one batch."""

    @abstractmethod
    def tokens(self, text: str) -> list[Token]:
        """Returns the tokens of a text, one for each of its states; special tokens have the
        offsets (-1, -1)."""


def as_stored(states: NDArray[np.float32]) -> StateArray:
    """Returns states in half precision; values beyond its range are cut to its limits."""
    return np.clip(states, -MAX_STATE, MAX_STATE).astype(np.float16)


class GenpoolTokenEncoder(TokenEncoder):
    """The states of a `SentenceEncoder`, before its pooling; `reference`: where it was loaded."""

    layers = 1

    def __init__(self, encoder: SentenceEncoder, reference: str | None = None) -> None:
        self.encoder, self.reference = encoder, reference
        self.dim = encoder.encoder.output_dim
        self.bidirectional = encoder.encoder.bidirectional

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.encoder)

    def states(self, texts: Sequence[str]) -> list[StateArray]:
        model = self.encoder
        batch = model.text.batch(model.text.words_batch(texts)).to(model.device)
        packing = Packing.from_mask(batch.mask)
        with evaluation_mode():
            rows = model.embedding.rows(batch, packing)  # (rows, embedding)
            states, _ = model.encoder.encode_rows(rows, packing, False)  # (rows, dim)
            aligned = packing.align(states).float().cpu().numpy()  # (batch, longest, dim)
        lengths = batch.mask.sum(dim=1).tolist()
        return [
            as_stored(text[:length, None]) for text, length in zip(aligned, lengths, strict=True)
        ]

    def tokens(self, text: str) -> list[Token]:
        tokens = self.encoder.text.tokens(text)
        if not self.encoder.text.sentence_ends:
            return tokens
        names = self.encoder.text.vocabulary.words
        return [Token(names[BEGIN], -1, -1), *tokens, Token(names[END], -1, -1)]


class TransformerTokenEncoder(TokenEncoder):
    """The states of a model of the `transformers` library.

    Special tokens are states like all others, as they are in sentence-transformers' mean pooling.

    The folder has config.json, safetensors and a tokenizer; no code and no pickle in it is opened.
    `max_tokens` of a text are kept, by default as many as model and tokenizer are made for;
    `reference` is how the folder was named, by default transformer:FOLDER.
    """

    def __init__(
        self,
        folder: str | Path,
        layers: Layers = "last",
        max_tokens: int | None = None,
        reference: str | None = None,
    ) -> None:
        self.reference = reference or f"{TRANSFORMER}{Path(folder).resolve()}"
        self.model, self.tokenizer = _load_transformer(Path(folder))
        config = self.model.config
        self.dim = int(config.hidden_size)
        # Tokenizers that know no limit say a huge number.
        limits = [self.tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
        known = [int(limit) for limit in limits if limit is not None and limit > 0]
        self.max_tokens = max_tokens or min([*known, MAX_TOKENS])
        self.layer_numbers = layer_numbers(layers, int(config.num_hidden_layers))
        self.layers = len(self.layer_numbers)

    @cached_property
    def fingerprint(self) -> str:
        description = {
            "config": self.model.config.to_diff_dict(),
            "vocabulary": self.tokenizer.get_vocab(),
            "layers": list(self.layer_numbers),
            "max_tokens": self.max_tokens,
        }
        text = json.dumps(description, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
        for name, weight in sorted(self.model.state_dict().items()):
            digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
            digest.update(weight.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return f"sha256:{digest.hexdigest()}"

    def states(self, texts: Sequence[str]) -> list[StateArray]:
        inputs = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self.max_tokens,
            return_tensors="pt",
        )
        with torch.inference_mode():
            hidden = self.model(**inputs, output_hidden_states=True).hidden_states
        chosen = [hidden[number].float().numpy() for number in self.layer_numbers]
        stacked = np.stack(chosen, axis=2)  # (batch, time, layers, dim)
        masks = inputs["attention_mask"].bool().numpy()  # (batch, time)
        return [as_stored(text[mask]) for text, mask in zip(stacked, masks, strict=True)]

    def tokens(self, text: str) -> list[Token]:
        encoded = self.tokenizer(
            text,
            truncation=True,
            max_length=self.max_tokens,
            return_offsets_mapping=self.tokenizer.is_fast,
        )
        ids = encoded["input_ids"]
        offsets = encoded.get("offset_mapping") or [(0, 0)] * len(ids)
        names = self.tokenizer.convert_ids_to_tokens(ids)
        return [
            Token(name, start, end) if end > start else Token(name, -1, -1)
            for name, (start, end) in zip(names, offsets, strict=True)
        ]


def layer_numbers(layers: Layers, count: int) -> tuple[int, ...]:
    """Returns the chosen layers of a model with `count` layers, counted from 0, the embeddings."""
    if layers == "last":
        return (count,)
    if layers == "all":
        return tuple(range(count + 1))
    if not isinstance(layers, str):
        numbers = tuple(
            number + count + 1 if isinstance(number, int) and number < 0 else number
            for number in layers
        )
        in_range = all(isinstance(number, int) and 0 <= number <= count for number in numbers)
        if numbers and in_range and len(set(numbers)) == len(numbers):
            return numbers
    raise InputError(
        f"layers is {layers!r}; expected 'last', 'all', or different numbers from 0 (the input "
        f"embeddings) to {count} (the last layer)."
    )


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


def open_token_encoder(
    encoder: str | Path | SentenceEncoder | TokenEncoder, layers: Layers = "last"
) -> TokenEncoder:
    """Returns the token states of an encoder, named as in `AttentiveProbe`.

    FolderError for a folder that is missing or of another kind, InputError for anything else that
    is no encoder, or has no such layers.
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
    modules = _read_json(folder / MODULES)
    if not isinstance(modules, list) or not modules or not isinstance(modules[0], dict):
        raise FolderError(f"{folder / MODULES} is damaged: expected a list of modules.")
    inner, kind = folder / str(modules[0].get("path", "")), str(modules[0].get("type", ""))
    if not inner.resolve().is_relative_to(folder.resolve()):
        raise FolderError(f"{folder / MODULES} names {inner}, which is outside of the folder.")
    reference = str(folder.resolve())
    if kind.startswith("genpool."):
        return _genpool(SentenceEncoder.from_pretrained(inner), reference, layers)
    settings = _read_json(inner / TEXT_SETTINGS) if (inner / TEXT_SETTINGS).is_file() else {}
    limit = settings.get("max_seq_length") if isinstance(settings, dict) else None
    return TransformerTokenEncoder(inner, layers, limit, reference)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read as JSON: {error}") from None
