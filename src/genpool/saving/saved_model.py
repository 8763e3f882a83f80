"""What the models share: saving with a model card, and loading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from genpool.config import ModelSettings, from_dict, ngrams_of, to_dict
from genpool.disk.files import markdown_table
from genpool.encoder import ENCODERS
from genpool.errors import ConfigError, FolderError, InputError
from genpool.pooling import POOLINGS
from genpool.registry import Registry, load_plugins, plugin_hint
from genpool.saving import storage
from genpool.saving.weights_file import first_not_finite, quantize_weights
from genpool.tensors.modules import on_meta_device
from genpool.text import TextPipeline

#: the sections of the settings that select a class by name
PARTS: dict[str, Registry[Any]] = {"encoder": ENCODERS, "pooling": POOLINGS}
#: the model card: the README.md of a saved folder, and the program on it
PAGE = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
USES = {
    "SentenceEncoder": 'vectors = model.encode(["A man sleeps.", "A person rests."])\n'
    "print(model.similarity(vectors, vectors))",
    "TextClassifier": 'print(model.predict(["A man sleeps."]))',
    "PairClassifier": 'print(model.predict([("A man sleeps.", "A person rests.")]))',
}


class SavedModel(nn.Module):
    """A model that is saved as a folder; a subclass has `settings` and `from_settings`.

    Attributes:
        text: the text pipeline.
        notes: what the model card says of how the model was made; "title" is its heading.
        labels: the labels of a classifier, otherwise empty.
    """

    text: TextPipeline
    #: the name that folders of this model and of its subclasses have
    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.labels: tuple[str, ...] = ()
        self.notes: dict[str, Any] = {}

    @property
    def settings(self) -> ModelSettings:
        """The settings of all parts."""
        raise NotImplementedError

    @classmethod
    def from_settings(cls, text: TextPipeline, settings: ModelSettings, labels: Any = ()) -> Self:
        """Returns the model that settings describe, with initial weights."""
        raise NotImplementedError

    @property
    def plugins(self) -> list[str]:
        """The modules that register the encoder and the pooling; empty for those of genpool."""
        settings = self.settings
        parts = (ENCODERS, settings.encoder.name), (POOLINGS, settings.pooling.name)
        return sorted({classes.plugins[name] for classes, name in parts if name in classes.plugins})

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
        try:
            settings = to_dict(self.settings)
        except ConfigError as error:  # a class of the user's own that is not registered
            return {"settings": str(error)}
        parts = {"labels": ", ".join(self.labels)} if self.labels else {}
        words = len(self.text.vocabulary)
        parts["text"] = f"{words:,} words, max_length={self.text.max_length}"
        for section in ("embedding", "encoder", "pooling", "projection"):
            options = settings[section]
            if options != {"dim": None}:
                parts[section] = ", ".join(f"{key}={value}" for key, value in options.items())
        count = sum(parameter.numel() for parameter in self.parameters())
        return {**parts, "parameters": f"{count:,}"}

    def __repr__(self) -> str:
        parts = "".join(f"  {name}: {text}\n" for name, text in self.describe().items())
        return f"{type(self).__name__}(\n{parts})"

    def _repr_html_(self) -> str:
        rows = (f"<th>{key}</th><td>{escape(text)}</td>" for key, text in self.describe().items())
        return f"<b>{type(self).__name__}</b><table><tr>{'</tr><tr>'.join(rows)}</tr></table>"

    def save_pretrained(
        self, path: str | Path, int8: bool = False, int4_tables: bool = False
    ) -> None:
        """Writes the model as a folder, which `from_pretrained` loads.

        An earlier model at `path` is replaced when the new folder is complete; whatever goes wrong
        before leaves it unchanged. Files that you put into the folder are kept. The folder names
        the module of an encoder or a pooling of your own, which must be registered.

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
            ConfigError: the class of a part is not registered, or has an argument that cannot be
                written.

        Example:
            >>> model.save_pretrained("my-model")
        """
        weights = self.state_dict()
        if (damaged := first_not_finite(weights)) is not None:
            raise FolderError(
                f"{path}: the model was not saved, because its tensor {damaged} contains NaN or "
                "infinity. Did training diverge?"
            )
        settings = to_dict(self.settings)
        _require_plain(settings)
        if not self.labels:
            del settings["classifier"]
        precision = storage.INT8 if int8 else storage.FLOAT
        config = {
            "kind": self.kind,
            "precision": storage.INT4_TABLES if int4_tables else precision,
            "plugins": self.plugins,
            "settings": settings,
            "labels": list(self.labels),
            "characters": self.text.characters.characters,
            "notes": self.notes,
        }
        card = self._card(settings, weights)
        stored = quantize_weights(weights, int4_tables) if int8 or int4_tables else weights
        storage.write_folder(path, config, stored, self.text.to_tokenizers(), card)

    def _card(self, settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
        encoder, pooling = settings["encoder"]["name"], settings["pooling"]["name"]
        notes = {name: value for name, value in self.notes.items() if name != "title"}
        table = next(weights[name] for name in weights if name.endswith("embedding.words"))
        return PAGE.format(
            title=self.notes.get("title", f"{self.kind}: {encoder}, {pooling} pooling"),
            encoder=encoder,
            pooling=pooling,
            labels=f" Labels: {', '.join(self.labels)}." if self.labels else "",
            kind=self.kind,
            use=USES[self.kind],
            notes=f"\n## How it was made\n\n{_table(['', ''], notes)}\n" if notes else "",
            settings=_table(["part", "settings"], settings),
            parameters=sum(tensor.numel() for tensor in weights.values()),
            table=table.numel(),
            words=len(self.text.vocabulary),
        )

    @classmethod
    def from_pretrained(
        cls, path: str | Path | None = None, *, mmap: bool = False, plugins: Sequence[str] = ()
    ) -> Self:
        """Loads a model from a folder; nothing in the folder is run as code.

        Args:
            path: a folder that `save_pretrained` wrote. A `SentenceEncoder` is also loaded from the
                folder of a classifier. Default: None, the model inside the package; there is one
                for `SentenceEncoder` and `PairClassifier`.
            mmap: leave the weights in the file and map it into memory, which processes on one
                machine share. The file must then not change while the model is in use.
                Default: False, which reads them.
            plugins: names of modules to import first, which register an encoder or a pooling. A
                folder says which it needs, but no module is imported unless it is named here.
                Default: none.

        Returns:
            The model, on the CPU and in evaluation mode.

        Raises:
            FolderError: the folder is missing, incomplete, damaged, of another kind, or needs a
                plugin.
            ConfigError: a plugin cannot be imported.

        Example:
            >>> model = PairClassifier.from_pretrained("my-model")
        """
        load_plugins(plugins)
        return storage.read_folder(path or storage.embedded_folder(cls.kind), cls._load, mmap)

    @classmethod
    def _load(cls, folder: storage.SavedFolder) -> Self:
        """Returns the model of a folder that was opened."""
        if folder.kind != cls.kind:
            raise FolderError(
                f"{folder.path} contains a {folder.kind}; expected a {cls.kind}. "
                f"Load it with genpool.{folder.kind}.from_pretrained; a classifier has its encoder "
                "in .encoder."
            )
        source = folder.path / storage.CONFIG
        try:
            folder.require_plausible()
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
            with on_meta_device():  # sizes only: memory is taken when they are known to agree
                model = cls.from_settings(text, settings, tuple(folder.config["labels"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise FolderError(f"{source} is damaged: {type(error).__name__} at {error}") from error
        except (ConfigError, InputError, RuntimeError) as error:  # Runtime: a tensor is too large
            is_name = any(f"unknown {kind} " in str(error) for kind in ("encoder", "pooling"))
            plugins = map(str, folder.config["plugins"]) if is_name else ()
            hint = plugin_hint(list(plugins))
            raise FolderError(f"{folder.path} cannot be used: {error}{hint}") from error
        model.load_state_dict(folder.load_weights(model.state_dict()), assign=True)
        model.notes = folder.config["notes"]
        return model.eval()


def _require_plain(settings: dict[str, Any]) -> None:
    """Raises ConfigError for an argument of a user's class that JSON cannot contain."""
    for section in PARTS:
        for name, value in settings[section].items():
            values = value if isinstance(value, list | tuple) else [value]
            if not all(isinstance(entry, str | int | float | None) for entry in values):
                raise ConfigError(
                    f"{section}.{name} is {type(value).__name__}, which cannot be saved; expected "
                    "arguments that are numbers, strings, booleans, None, or lists of these."
                )


def _table(header: Sequence[str], values: Mapping[str, Any]) -> str:
    rows = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} = {entry}" for key, entry in value.items())
        rows.append((name, value))
    return markdown_table(header, rows, text=2)
