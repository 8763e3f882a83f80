"""What the models share: text, settings, saving and loading."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import nn

from genpool.config import (
    ModelSettings,
    TextSettings,
    fill_defaults,
    from_dict,
    module_kind,
    ngrams_of,
    to_dict,
)
from genpool.embedded import embedded_folder
from genpool.encoder import ENCODERS
from genpool.errors import ConfigError, FolderError, InputError
from genpool.pooling import POOLINGS
from genpool.saving import storage
from genpool.saving.card import model_card
from genpool.saving.config_check import require_plausible
from genpool.saving.quantization import quantize_weights
from genpool.saving.weights_file import first_not_finite
from genpool.tensors.initialization import on_meta_device
from genpool.text import TextPipeline

#: what the sections of the settings that select a class by name may contain
PARTS = {"encoder": module_kind(ENCODERS), "pooling": module_kind(POOLINGS)}


class SavedModel(nn.Module):
    """What the three models share: text, settings, notes for the card, saving and loading.

    Args:
        text: turns sentences into ids.
        settings: the settings of all parts; those of the text are taken from `text`.
    """

    labels: tuple[str, ...] = ()

    def __init__(self, text: TextPipeline, settings: ModelSettings) -> None:
        super().__init__()
        self.text = text
        self.settings = replace(
            settings,
            text=_text_settings(text, settings.text),
            encoder=fill_defaults("encoder", settings.encoder, ENCODERS),
            pooling=fill_defaults("pooling", settings.pooling, POOLINGS),
        )
        #: what the model card says of how the model was made; "title" is its heading
        self.notes: dict[str, Any] = {}

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The data type of the weights."""
        return next(self.parameters()).dtype

    def describe(self) -> dict[str, str]:
        """Returns the parts of the model and what they are, for people."""
        settings = to_dict(self.settings)
        options = {
            section: ", ".join(f"{key}={value}" for key, value in settings[section].items())
            for section in ("embedding", "encoder", "pooling")
        }
        parameters = sum(parameter.numel() for parameter in self.parameters())
        projection = self.settings.projection.dim
        return {
            **({"labels": ", ".join(self.labels)} if self.labels else {}),
            "text": f"{len(self.text.vocabulary):,} words, max_length={self.text.max_length}",
            **options,
            **({"projection": f"dim={projection}"} if projection else {}),
            "parameters": f"{parameters:,}",
        }

    def __repr__(self) -> str:
        parts = "".join(f"  {name}: {text}\n" for name, text in self.describe().items())
        return f"{type(self).__name__}(\n{parts})"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{name}</th><td>{escape(text)}</td></tr>"
            for name, text in self.describe().items()
        )
        return f"<b>{type(self).__name__}</b><table>{cells}</table>"

    def save_pretrained(
        self, path: str | Path, int8: bool = False, int4_tables: bool = False
    ) -> None:
        """Writes the model as a folder, which `from_pretrained` loads.

        An earlier model at `path` is replaced when the new folder is complete; whatever goes wrong
        before leaves it unchanged. Files that you put into the folder are kept.

        Args:
            path: the folder, which is created. There may be an earlier model, or nothing.
            int8: store matrices as 8-bit integers with a scale for every row, which takes a quarter
                of the space. They are rounded, and single precision again when loaded.
                Default: False.
            int4_tables: as `int8`, and the tables of words and n-grams as 4-bit integers, which
                takes half of that. Default: False.

        Raises:
            FolderError: a weight is NaN or infinite, there is something other than a model at
                `path`, or the folder cannot be written.

        Example:
            >>> model.save_pretrained("my-model")
        """
        kind, weights = type(self).__name__, self.state_dict()
        damaged = first_not_finite(weights)
        if damaged is not None:
            raise FolderError(
                f"{path}: the model was not saved, because its tensor {damaged} contains NaN or "
                "infinity. Did training diverge?"
            )
        settings = to_dict(self.settings)
        if not self.labels:
            del settings["classifier"]
        table = next(weights[name] for name in weights if name.endswith("embedding.words"))
        sizes = {
            "parameters": sum(tensor.numel() for tensor in weights.values()),
            "table": table.numel(),
            "words": len(self.text.vocabulary),
        }
        version = storage.COMPACT_VERSION if int8 else storage.FORMAT_VERSION
        if int4_tables:
            version = storage.INT4_VERSION
        storage.write_folder(
            path,
            config={
                "format": storage.FORMAT,
                "format_version": version,
                "kind": kind,
                "settings": settings,
                "labels": list(self.labels),
                "characters": self.text.characters.characters,
                "notes": self.notes,
            },
            weights=quantize_weights(weights, int4_tables) if int8 or int4_tables else weights,
            tokenizer=self.text.to_tokenizers(),
            card=model_card(kind, settings, self.labels, self.notes, sizes),
        )

    @classmethod
    def from_pretrained(cls, path: str | Path | None = None, *, mmap: bool = False) -> Self:
        """Loads a model from a folder; nothing in the folder is run as code.

        Args:
            path: a folder that `save_pretrained` wrote. Default: None, the model inside the
                package.
            mmap: leave the weights in the file and map it into memory, which processes on one
                machine share. The file must then not change while the model is in use.
                Default: False, which reads them.

        Returns:
            The model, on the CPU and in evaluation mode.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, or of another kind.

        Example:
            >>> model = PairClassifier.from_pretrained("my-model")
        """
        return storage.read_folder(path or embedded_folder(cls.__name__), cls._load, mmap)

    @classmethod
    def _load(cls, folder: storage.SavedFolder) -> Self:
        """Returns the model of a folder that was opened."""
        if folder.kind != cls.__name__:
            raise FolderError(
                f"{folder.path} contains a {folder.kind}; expected a {cls.__name__}. "
                f"Load it with genpool.{folder.kind}.from_pretrained; a classifier has its encoder "
                "in .encoder."
            )
        with on_meta_device():  # sizes only: memory is taken when they are known to agree
            model = cls._from_settings(folder)
        expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        model.load_state_dict(folder.load_weights(expected), assign=True)
        model.notes = folder.config.get("notes", {})
        return model.eval()

    @classmethod
    def _from_settings(cls, folder: storage.SavedFolder) -> Self:
        source = folder.path / storage.CONFIG
        try:
            require_plausible(folder)
            settings = from_dict(ModelSettings, folder.config["settings"], PARTS, source)
            text = TextPipeline.from_stored(
                folder.tokenizer,
                folder.config["characters"],
                settings.text.sentence_ends,
                settings.text.max_length,
                settings.text.lower_case_fallback,
                settings.text.folding,
                ngrams_of(settings.embedding),
            )
            return cls._assemble(text, settings, tuple(folder.config["labels"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise FolderError(f"{source} is damaged: {type(error).__name__} at {error}") from error
        except (ConfigError, InputError, RuntimeError) as error:  # Runtime: a tensor is too large
            raise FolderError(f"{folder.path} cannot be used: {error}") from error

    @classmethod
    def _assemble(
        cls, text: TextPipeline, settings: ModelSettings, labels: tuple[str, ...]
    ) -> Self:
        """Returns the model of a folder's settings, with initial weights."""
        raise NotImplementedError


def _text_settings(text: TextPipeline, settings: TextSettings) -> TextSettings:
    """Returns the settings of what the text pipeline does, which are the ones to save."""
    return replace(
        settings,
        rules=cast(Any, text.tokenizer.rules),
        sentence_ends=text.sentence_ends,
        max_length=text.max_length,
        lower_case_fallback=text.vocabulary.lower_case_fallback,
        folding=text.vocabulary.folding,
    )
