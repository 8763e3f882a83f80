"""Where the data sets are: in the folder GENPOOL_DATA, else in ../shared/data beside the clone."""

from __future__ import annotations

import os
from pathlib import Path

from genpool.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[1]
DEFAULT_FOLDER = REPOSITORY.parent / "shared" / "data"


def data_folder() -> Path:
    """Returns the folder of the data sets, which need not exist."""
    return Path(os.environ.get("GENPOOL_DATA", DEFAULT_FOLDER))


def has_data(name: str) -> bool:
    """Returns whether a file or folder such as `snli/test.tsv.xz` is among the data sets."""
    return (data_folder() / name).exists()


def data_path(name: str) -> Path:
    """Returns the path of a file or folder of the data sets, such as `snli/test.tsv.xz`.

    Raises:
        InputError: It does not exist.
    """
    if not has_data(name):
        raise InputError(
            f"{name} is not in the data folder {data_folder()}; set the environment variable "
            "GENPOOL_DATA to the folder that contains it"
        )
    return data_folder() / name
