"""SNLI 1.0, the folder of Bowman et al. (2015): snli_1.0_train.jsonl and its companions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from genpool.data.nli import NliReader


class SnliReader(NliReader):
    """Reads SNLI: 549,367 / 9,842 / 9,824 pairs once those without a gold label are dropped.

    The splits are train, dev and test.

    Args:
        path: the folder `snli_1.0`, or one of its files.
        tokens: "parse" (default) or "raw"; see `NliReader`.
        labelled: True (default) drops pairs without a gold label; see `NliReader`.
        bad_rows: "error" (default) or "skip"; see `Reader`.

    Raises:
        DataError: the folder holds none of the official files.

    Example:
        >>> reader = SnliReader("snli_1.0")
        >>> for example in reader.read("train"):
        ...     example.label, example.first, example.second
        >>> reader.skipped
        Counter({'no gold label': 785})
    """

    file_names: ClassVar[Mapping[str, Sequence[str]]] = {
        split: (f"snli_1.0_{split}.jsonl", f"snli_1.0_{split}.txt")
        for split in ("train", "dev", "test")
    }
