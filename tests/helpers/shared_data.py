"""The real data sets, where they are available: in the folder GENPOOL_DATA or its default."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.data import data_folder, data_path, has_data


def shared_data(name: str) -> Path:
    """Returns a file or folder of the data sets, such as `snli/test.tsv.xz`; skips without it."""
    if not has_data(name):
        pytest.skip(
            f"{name} is not in {data_folder()}; set GENPOOL_DATA to the folder of the data sets"
        )
    return data_path(name)
