"""Token states on disk: computed once for a text and an encoder, then mapped into memory.

    FOLDER/NAME/card.json     format, fingerprint of the encoder, layers, dimensions
    FOLDER/NAME/states.f16    the states of all texts, end to end
    FOLDER/NAME/texts.index   the digest of each text, the first of its states, and their number

NAME is the fingerprint of the encoder. A text is written before it is entered in the index, so that
a run that was stopped at any place continues where it was; texts are found by their digest, so that
other data with the same texts computes nothing twice. No text is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.disk.atomic import require_version
from genpool.disk.lock import exclusive
from genpool.errors import FolderError
from genpool.probing.token_encoder import StateArray, TokenEncoder
from genpool.probing.token_states import TokenStates, encode_groups

CARD, STATES, INDEX = "card.json", "states.f16", "texts.index"
FORMAT, FORMAT_VERSION = "genpool-token-states", 1
#: characters of the fingerprint in the name of the folder
NAME_CHARACTERS = 24
#: texts whose states are computed before they are written
TEXTS_PER_WRITE = 256
DIGEST_BYTES = 16
RECORD = np.dtype([("digest", f"V{DIGEST_BYTES}"), ("start", "<i8"), ("length", "<i8")])


def default_cache() -> Path:
    """Returns the folder of cached states: GENPOOL_CACHE, else genpool in the user's cache."""
    folder = os.environ.get("GENPOOL_CACHE")
    if folder:
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "genpool" / "token-states"


class StateCache:
    """The states of one encoder on disk.

    Args:
        folder: where the caches of all encoders are.
        encoder: the frozen encoder.

    Raises:
        FolderError: the folder cannot be used, or is of another encoder or version.

    Example:
        >>> states = StateCache("cache", open_token_encoder("embedded")).states(["A man sleeps."])
    """

    def __init__(self, folder: str | Path, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        name = encoder.fingerprint.removeprefix("sha256:")[:NAME_CHARACTERS]
        self.folder = Path(folder) / name
        self._known: dict[bytes, tuple[int, int]] = {}
        self._records_read, self._end = 0, 0  # of the index, and of the states, in tokens
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check_card()
        except OSError as error:
            raise FolderError(f"{self.folder} cannot be used as a cache: {error}") from error

    @property
    def row_bytes(self) -> int:
        """The size of the states of one token."""
        return self.encoder.layers * self.encoder.dim * np.dtype(np.float16).itemsize

    @property
    def size_bytes(self) -> int:
        """The size of all states."""
        path = self.folder / STATES
        return path.stat().st_size if path.is_file() else 0

    def states(
        self, texts: Sequence[str], done: Callable[[int], object] = lambda count: None
    ) -> TokenStates:
        """Returns the states of texts; those that are not there yet are computed and kept.

        Args:
            texts: the texts.
            done: called with the number of texts that are ready, when they are.

        Raises:
            FolderError: the cache cannot be read or written.
        """
        digests = [digest(text) for text in texts]
        try:
            with exclusive(self.folder / STATES):
                self._read_index()
            missing = dict(zip(digests, texts, strict=True))
            missing = {key: text for key, text in missing.items() if key not in self._known}
            done(len(texts) - len(missing))
            self._compute(missing, done)
            rows = self._map()
        except OSError as error:
            raise FolderError(f"{self.folder} cannot be read or written: {error}") from error
        places = np.array([self._known[key] for key in digests], dtype=np.int64).reshape(-1, 2)
        return TokenStates(rows, places[:, 0], places[:, 1])

    def _compute(self, missing: dict[bytes, str], done: Callable[[int], object]) -> None:
        keys = list(missing)
        for start in range(0, len(keys), TEXTS_PER_WRITE):
            part = keys[start : start + TEXTS_PER_WRITE]
            for group, states in encode_groups(self.encoder, [missing[key] for key in part]):
                self._append([part[position] for position in group], states)
                done(len(group))

    def _append(self, keys: list[bytes], states: list[StateArray]) -> None:
        """Writes states behind those that are there, then enters them in the index."""
        with exclusive(self.folder / STATES):
            self._read_index()  # another process may have written in the meantime
            end = self._end
            records = np.zeros(len(keys), dtype=RECORD)
            with (self.folder / STATES).open("ab") as file:
                file.truncate(end * self.row_bytes)  # the rest of a write that was stopped
                file.seek(0, os.SEEK_END)
                for record, key, array in zip(records, keys, states, strict=True):
                    file.write(np.ascontiguousarray(array).data)
                    record["digest"], record["start"] = np.void(key), end
                    record["length"] = len(array)
                    end += len(array)
            with (self.folder / INDEX).open("ab") as file:
                file.truncate(self._records_read * RECORD.itemsize)
                file.seek(0, os.SEEK_END)
                file.write(records.data)
            self._read_index()

    def _read_index(self) -> None:
        """Reads the records that are new; the last one may be incomplete."""
        path = self.folder / INDEX
        if not path.is_file():
            return
        count = path.stat().st_size // RECORD.itemsize
        with path.open("rb") as file:
            file.seek(self._records_read * RECORD.itemsize)
            data = file.read((count - self._records_read) * RECORD.itemsize)
        available = self.size_bytes // self.row_bytes
        for record in np.frombuffer(data, dtype=RECORD):
            start, length = int(record["start"]), int(record["length"])
            if start < 0 or length < 0 or start + length > available:
                raise FolderError(
                    f"{path} does not belong to {STATES} beside it: one of them was cut or "
                    f"replaced. Remove the folder {self.folder}; its states are computed again."
                )
            self._known[record["digest"].tobytes()] = start, length
            self._end = max(self._end, start + length)
        self._records_read = count

    def _map(self) -> StateArray:
        shape = (self.size_bytes // self.row_bytes, self.encoder.layers, self.encoder.dim)
        if not shape[0]:
            return np.empty(shape, dtype=np.float16)
        mapped: NDArray[np.float16] = np.memmap(
            self.folder / STATES, dtype=np.float16, mode="r", shape=shape
        )
        return mapped

    def _check_card(self) -> None:
        path = self.folder / CARD
        expected = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "fingerprint": self.encoder.fingerprint,
            "layers": self.encoder.layers,
            "dim": self.encoder.dim,
        }
        with exclusive(self.folder / STATES):
            if not path.is_file():
                path.write_text(
                    json.dumps(expected, indent=2) + "\n", encoding="utf-8", newline="\n"
                )
                return
            try:
                card = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise FolderError(f"{path} is not JSON: {error}") from None
        version = card.get("format_version") if isinstance(card, dict) else None
        require_version(version, FORMAT_VERSION, path)
        if card != expected:
            raise FolderError(
                f"{path} is {card}; expected {expected}. Choose another folder for the cache."
            )


def digest(text: str) -> bytes:
    """Returns what a text is found by; lone surrogates have one too."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).digest()
