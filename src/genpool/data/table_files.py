"""Which files are tables, by their names, and the tables of a folder."""

from __future__ import annotations

from pathlib import Path

from genpool.data.excel import OTHER_SPREADSHEETS, SAVE_AS
from genpool.data.folders import list_names
from genpool.disk.files import COMPRESSED, uncompressed_name
from genpool.errors import DataError

TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm")
#: names that a dev set may have instead
_OTHER_NAMES = {"validation": "dev", "valid": "dev", "val": "dev"}
#: how names of files begin that are no data: hidden ones, and the locks of open Excel files
_NO_DATA = (".", "~$")


def table_format(path: Path) -> str | None:
    """Returns the suffix of a table without that of its compression; None if it is no table."""
    suffix = Path(uncompressed_name(path)).suffix.lower()
    return suffix if suffix in TABLE_SUFFIXES else None


def require_table(file: Path) -> None:
    """Raises DataError if a file is not a table by its name."""
    if table_format(file) is not None:
        return
    if Path(uncompressed_name(file)).suffix.lower() in OTHER_SPREADSHEETS:
        raise DataError(f"is a spreadsheet of a kind that is not read; {SAVE_AS}", file)
    kinds = f"{', '.join(TABLE_SUFFIXES)} (or these with {', '.join(COMPRESSED)})"
    raise DataError(
        f"is not a table by its name; expected {kinds}. If it is one, rename it; lines of text "
        "have no columns to name",
        file,
    )


def tables_of_folder(folder: Path) -> dict[str, Path]:
    """Returns the tables of a folder by the names of their splits.

    Raises:
        DataError: there is none, or two have the same name.
    """
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(_NO_DATA) or not path.is_file() or table_format(path) is None:
            continue
        stem = Path(uncompressed_name(path)).stem
        split = _OTHER_NAMES.get(stem.lower(), stem)
        if split in files:
            problem = f"{files[split].name} and {path.name} are both {split!r}; keep one of them"
            raise DataError(problem, folder)
        files[split] = path
    if not files:
        expected = ", ".join(f"train{suffix}" for suffix in TABLE_SUFFIXES)
        problem = f"looked for tables such as {expected}, but it holds: {list_names(folder)}"
        raise DataError(problem, folder)
    return files
