"""Arguments that are sentences; the name of a file in the place of one is most often a slip."""

from __future__ import annotations

from pathlib import Path

from genpool.disk.files import is_file, is_folder, uncompressed_name
from genpool.errors import DataError, InputError

#: suffixes of the files that the commands read, apart from those of compression
FILE_SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
#: a single word with one of them at its end is a sentence
_SENTENCE_ENDS = (".", "!", "?")


def is_sentence(text: str) -> bool:
    """Returns whether an argument that may be a sentence or a file is meant as a sentence."""
    if is_file(text) or is_folder(text):
        return False
    if Path(uncompressed_name(Path(text))).suffix.lower() in FILE_SUFFIXES:
        return False
    one_word = text.split() == [text]
    return not one_word or (text.endswith(_SENTENCE_ENDS) and not text.startswith("."))


def require_sentence(text: str) -> None:
    """Raises an error if an argument is not a sentence.

    Raises:
        InputError: it is not UTF-8.
        DataError: it is the name of a file, existing or not.
    """
    if is_file(text):
        raise DataError('is a file; expected a sentence, in quotes: "A man sleeps."', text)
    require_sentence_or_file(text)


def require_sentence_or_file(text: str) -> None:
    """Raises an error if an argument is neither a sentence nor an existing file.

    Raises:
        InputError: it is not UTF-8.
        DataError: it is the name of a file that does not exist: nobody means it as a sentence.
    """
    if is_file(text):
        return
    one_word = text.split() == [text]
    if one_word and Path(uncompressed_name(Path(text))).suffix.lower() in FILE_SUFFIXES:
        raise DataError("there is no such file, and it is no sentence; check the name", text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        # Python has such bytes of an argument as lone surrogates.
        shown = text.encode("utf-8", "backslashreplace").decode("utf-8")
        raise InputError(
            f'"{shown}" is not UTF-8 text, from character {error.start + 1} on; set your terminal '
            "to UTF-8, or put the sentence into a UTF-8 file."
        ) from None
