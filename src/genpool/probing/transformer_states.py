"""Token states of a transformer: a folder of transformers, or of sentence-transformers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genpool.errors import FolderError, InputError, require_extra
from genpool.probing.token_encoder import StateArray, TokenEncoder, as_stored
from genpool.text import Token

#: which layers are read: the last one, all of them (the input embeddings are layer 0), or a list
Layers = str | Sequence[int]
#: tokens that are kept of a text where neither model nor tokenizer has a limit
MAX_TOKENS = 512


class TransformerTokenEncoder(TokenEncoder):
    """The states of a model of the `transformers` library.

    Special tokens are states like all others, as they are in sentence-transformers' mean pooling.

    Args:
        folder: a folder with config.json, safetensors and a tokenizer. No code and no pickle in it
            is opened.
        layers: "last"; "all"; or numbers of layers, from 0, the input embeddings, or from -1, the
            last one. Default: "last".
        max_tokens: tokens that are kept of a text. Default: None, as many as model and tokenizer
            are made for.
        reference: how the folder was named. Default: None, transformer:FOLDER.

    Raises:
        FolderError: the folder is missing, or cannot be loaded without running its code.
        InputError: there is no such layer.
        MissingExtraError: transformers is not installed.
    """

    def __init__(
        self,
        folder: str | Path,
        layers: Layers = "last",
        max_tokens: int | None = None,
        reference: str | None = None,
    ) -> None:
        self.reference = reference or f"transformer:{Path(folder).resolve()}"
        self.model, self.tokenizer = _load(Path(folder))
        self.dim = int(self.model.config.hidden_size)
        self.max_tokens = max_tokens or _longest(self.model.config, self.tokenizer)
        self.layer_numbers = layer_numbers(layers, int(self.model.config.num_hidden_layers))
        self.layers = len(self.layer_numbers)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the weights, the vocabulary, the layers and the maximum length."""
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
        """Returns the states (tokens, layers, dim) of every text, in half precision."""
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
        """Returns the word pieces of a text and its special tokens, which have offsets (-1, -1)."""
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


def _load(folder: Path) -> tuple[Any, Any]:
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


def _longest(config: Any, tokenizer: Any) -> int:
    """How many tokens a model can read; tokenizers that do not know say a huge number."""
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    known = [int(limit) for limit in limits if limit is not None and limit > 0]
    return min([*known, MAX_TOKENS])
