"""The folder of a trained probe: config.json, model.safetensors and a card.

The encoder is named, with the fingerprint of its weights, and not copied.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from safetensors.torch import save_file

from genpool.disk.atomic import atomic_folder, read_consistently, require_version
from genpool.errors import FolderError, GenpoolError, InputError
from genpool.saving.storage import CHECKSUMS, config_checksum, require_checksums
from genpool.saving.weights_file import FLOATING, WeightsFile, file_checksum, first_not_finite
from genpool.tensors.initialization import on_meta_device

if TYPE_CHECKING:
    from genpool.probing.estimator import AttentiveProbe

FORMAT, FORMAT_VERSION = "genpool-probe", 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
#: arguments of a probe that are of the machine or of the training data, not of the model
NOT_SAVED = ("encoder", "cache", "show_progress_bar")

Probe = TypeVar("Probe", bound="AttentiveProbe")


def save_probe(probe: AttentiveProbe, path: str | Path) -> None:
    """Writes a trained probe as a folder; an earlier one is replaced when it is complete."""
    encoder = probe.token_encoder
    if encoder.reference is None:
        raise InputError(
            "the encoder of this probe exists in memory only, so that a saved probe could not name "
            "it. Save the encoder, and fit the probe with encoder=FOLDER."
        )
    state = probe.model_.state_dict()
    weights = {name: tensor.detach().contiguous() for name, tensor in state.items()}
    if (damaged := first_not_finite(weights)) is not None:
        raise FolderError(f"{path}: the probe was not saved, because {damaged} is not finite.")
    arguments = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in probe.get_params(deep=False).items()
        if name not in NOT_SAVED
    }
    config: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "encoder": encoder.reference,
        "fingerprint": encoder.fingerprint,
        "arguments": arguments,
        "classes": probe.classes_.tolist(),
        "c": probe.c_,
        "extent": probe.extent_,
    }
    with atomic_folder(path, "the probe", _require_probe, (CONFIG, WEIGHTS, CARD)) as fresh:
        (fresh / CARD).write_text(_card(probe, encoder.reference), encoding="utf-8", newline="\n")
        save_file(weights, fresh / WEIGHTS, metadata={"format": "pt"})
        checksums = {
            CONFIG: config_checksum(config),
            WEIGHTS: file_checksum((fresh / WEIGHTS).read_bytes()),
        }
        text = json.dumps({**config, CHECKSUMS: checksums}, indent=2, ensure_ascii=False)
        (fresh / CONFIG).write_text(text + "\n", encoding="utf-8", newline="\n")


def load_probe(cls: type[Probe], path: str | Path, encoder: Any = None) -> Probe:
    """Returns the probe of a folder, with the encoder that it names, or another place of it."""
    folder = Path(path)
    try:
        return read_consistently(folder, lambda: _load(cls, folder, encoder))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error}") from error


def _load(cls: type[Probe], folder: Path, encoder: Any) -> Probe:
    config = _read_config(folder)
    weights_file = WeightsFile.open(folder / WEIGHTS)
    try:
        probe = cls(encoder or config["encoder"], **config["arguments"])
        classes = np.array(config["classes"])
        c, extent = float(config["c"]), float(config.get("extent", 1.0))
        opened = _require_encoder(probe, config, folder)
        with on_meta_device():
            model = probe.build_model(opened, len(classes))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, GenpoolError):
            raise
        raise FolderError(f"{folder / CONFIG} is damaged: {error!r}") from error
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    floating = all(dtype in FLOATING for dtype in weights_file.dtypes.values())
    if weights_file.shapes != expected or not floating:
        raise FolderError(f"{folder / WEIGHTS} does not agree with {CONFIG}: were files mixed?")
    weights, checksum = weights_file.read()
    require_checksums(folder, config, {CONFIG: config_checksum(config), WEIGHTS: checksum})
    if first_not_finite(weights) is not None:
        raise FolderError(f"{folder / WEIGHTS} contains values that are not finite.")
    model.load_state_dict(weights, assign=True)
    probe.model_, probe.classes_ = model.eval(), classes
    probe.c_, probe.extent_ = c, extent
    return probe


def _require_encoder(probe: AttentiveProbe, config: dict[str, Any], folder: Path) -> Any:
    try:
        opened = probe.token_encoder
    except FolderError as error:
        raise FolderError(
            f"the encoder of the probe {folder} cannot be loaded: {error} If it is somewhere else "
            "now, say where: from_pretrained(path, encoder=...) (command line: --encoder)."
        ) from error
    if opened.fingerprint != config["fingerprint"]:
        raise FolderError(
            f"{opened.reference} is not the encoder that the probe {folder} was trained on: its "
            f"fingerprint is {opened.fingerprint[:19]}, that of the training was "
            f"{str(config['fingerprint'])[:19]}."
        )
    return opened


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not folder.is_dir():
        raise FolderError(f"{folder}: there is no such folder; expected a saved probe.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read: {error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise FolderError(f'{path} is not of a probe; expected "format": "{FORMAT}".')
    require_version(config.get("format_version"), FORMAT_VERSION, path)
    return config


def _require_probe(target: Path) -> None:
    """Only an earlier probe may be replaced."""
    try:
        _read_config(target)
    except FolderError:
        raise FolderError(
            f"{target} contains something else. Choose a new or empty folder."
        ) from None


def _card(probe: AttentiveProbe, reference: str) -> str:
    labels = ", ".join(str(label) for label in probe.classes_)
    return f"""# Attentive probe

{probe.pooling} pooling and a linear classifier on the frozen token states of `{reference}`.
Labels: {labels}.

```python
from genpool.integrations.sklearn import AttentiveProbe

probe = AttentiveProbe.from_pretrained("this folder")
print(probe.predict(["A text."]))
```
"""
