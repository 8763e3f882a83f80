"""Arguments that are sentences; the name of a file in the place of one is most often a slip."""

from __future__ import annotations

from pathlib import Path

from genpool.disk.files import uncompressed_name
from genpool.errors import DataError

#: how the files end that the commands read, apart from their compression
KINDS = (".txt", ".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")


def is_file(text: str) -> bool:
    """Whether an argument is the name of a file that is there."""
    try:
        return Path(text).is_file()
    except OSError:  # a sentence can be longer than the name of any file
        return False


def refuse_missing_file(text: str) -> None:
    """Raises DataError for the name of a file that is not there: nobody means it as a sentence."""
    one_word = text.split() == [text]
    if (
        one_word
        and Path(uncompressed_name(Path(text))).suffix.lower() in KINDS
        and not is_file(text)
    ):
        raise DataError("there is no such file, and it is no sentence; check the name", text)


def refuse_file(text: str) -> None:
    """Raises DataError for the name of a file, there or not, where only a sentence will do."""
    if is_file(text):
        raise DataError('is a file; expected a sentence, in quotes: "A man sleeps."', text)
    refuse_missing_file(text)
