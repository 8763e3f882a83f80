"""What the models share: text, settings, saving and loading."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import nn

from genpool.config import ModelSettings, TextSettings, complete, from_dict, module_kind, to_dict
from genpool.embedded import embedded_folder
from genpool.encoder import ENCODERS
from genpool.errors import ConfigError, FolderError, InputError
from genpool.pooling import POOLINGS
from genpool.saving import storage
from genpool.saving.card import model_card
from genpool.saving.quantization import quantize_weights
from genpool.tensors.meta import on_meta_device
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.text.tokenizer import STORED
from genpool.text.vocabulary import UNKNOWN

#: what the sections of the settings that choose a part by name may hold
PARTS = {"encoder": module_kind(ENCODERS), "pooling": module_kind(POOLINGS)}


class SavedModel(nn.Module):
    """What the three models share: text, settings, notes for the card, saving and loading."""

    labels: tuple[str, ...] = ()

    def __init__(self, text: TextPipeline, settings: ModelSettings) -> None:
        super().__init__()
        self.text = text
        self.settings = replace(
            settings,
            text=_text_settings(text, settings.text),
            encoder=complete("encoder", settings.encoder, ENCODERS),
            pooling=complete("pooling", settings.pooling, POOLINGS),
        )
        #: what the model card says of how the model was made; "title" is its heading
        self.notes: dict[str, Any] = {}

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def save_pretrained(self, path: str | Path, int8: bool = False) -> None:
        """Writes the model as a folder; an earlier model there stays whole until this is done.

        int8: matrices as 8-bit integers with a scale for every row, a quarter of the size. They are
        single precision again when loaded, rounded.
        """
        vocabulary, kind = self.text.vocabulary, type(self).__name__
        weights = self.state_dict()
        settings = to_dict(self.settings)
        if not self.labels:
            del settings["classifier"]
        table = next(weights[name] for name in weights if name.endswith("embedding.words"))
        sizes = {
            "parameters": sum(each.numel() for each in weights.values()),
            "table": table.numel(),
            "words": len(vocabulary),
        }
        storage.write_folder(
            path,
            config={
                "format": storage.FORMAT,
                "format_version": storage.COMPACT_VERSION if int8 else storage.FORMAT_VERSION,
                "kind": kind,
                "settings": settings,
                "labels": list(self.labels),
                "characters": self.text.characters.characters,
                "notes": self.notes,
            },
            weights=quantize_weights(weights) if int8 else weights,
            tokenizer=self.text.tokenizer.to_tokenizers(vocabulary.ids, vocabulary.words[UNKNOWN]),
            card=model_card(kind, settings, self.labels, self.notes, sizes),
        )

    @classmethod
    def from_pretrained(cls, path: str | Path | None = None) -> Self:
        """Loads a folder that `save_pretrained` wrote. Nothing in it is ever run as code.

        Without a path: the model that comes with the package.
        """
        folder = storage.read_folder(path or embedded_folder(cls.__name__))
        kind = folder.config.get("kind")
        if kind != cls.__name__:
            raise FolderError(
                f"{folder.path} holds a {kind}; expected a {cls.__name__}. "
                f"Load it with genpool.{kind}.from_pretrained; a classifier has its encoder in "
                ".encoder."
            )
        with on_meta_device():  # sizes only: memory is taken when they are known to agree
            model = cls._from_folder(folder)
        expected = {name: tuple(each.shape) for name, each in model.state_dict().items()}
        model.load_state_dict(folder.load_weights(expected), assign=True)
        model.notes = folder.config.get("notes", {})
        return model.eval()

    @classmethod
    def _from_folder(cls, folder: storage.SavedFolder) -> Self:
        source = folder.path / storage.CONFIG
        try:
            _check_config(folder)
            settings = from_dict(ModelSettings, folder.config["settings"], PARTS, source)
            characters = Characters(folder.config["characters"])
            by_number = sorted(folder.tokenizer.get_vocab().items(), key=lambda item: item[1])
            text = TextPipeline(
                WordTokenizer.from_tokenizers(folder.tokenizer),
                Vocabulary([word for word, _ in by_number]),
                characters,
                settings.text.sentence_ends,
                settings.text.max_length,
            )
            return cls._assemble(text, settings, tuple(folder.config["labels"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise FolderError(f"{source} is damaged: {type(error).__name__} at {error}") from error
        except (ConfigError, InputError, RuntimeError) as error:  # Runtime: no tensor is so large
            raise FolderError(f"{folder.path} cannot be used: {error}") from error

    @classmethod
    def _assemble(
        cls, text: TextPipeline, settings: ModelSettings, labels: tuple[str, ...]
    ) -> Self:
        """The model of a folder's settings, with fresh weights."""
        raise NotImplementedError


def _text_settings(text: TextPipeline, settings: TextSettings) -> TextSettings:
    """What the text pipeline does is what is saved, whatever the settings said."""
    rules = text.tokenizer.rules
    return replace(
        settings,
        rules=cast(Any, settings.rules if rules == STORED else rules),
        sentence_ends=text.sentence_ends,
        max_length=text.max_length,
    )


def _check_config(folder: storage.SavedFolder) -> None:
    """Raises FolderError where values are of another type, or larger than the file of weights."""
    config, source = folder.config, folder.path / storage.CONFIG
    for name, kind in (("settings", dict), ("characters", str), ("labels", list), ("notes", dict)):
        value = config.get(name, {} if name == "notes" else None)
        if not isinstance(value, kind):
            shown = type(value).__name__
            raise FolderError(f"{source} is damaged: {name} is {shown}, expected {kind.__name__}.")
    # Widths are sides of some tensor, and every layer has one of its own: a larger number is wrong,
    # and would take time and memory even for a model that is only sized.
    largest = max([len(folder.shapes), *(side for each in folder.shapes.values() for side in each)])
    for section in ("encoder", "pooling"):
        given = config["settings"].get(section)
        for name, value in given.items() if isinstance(given, dict) else ():
            for number in value if isinstance(value, list) else [value]:
                if isinstance(number, int) and number > largest:
                    raise FolderError(
                        f"{folder.path / storage.WEIGHTS} does not agree with {storage.CONFIG}: "
                        f"{section}.{name} is {value}, but no side of a tensor is over {largest}."
                    )
