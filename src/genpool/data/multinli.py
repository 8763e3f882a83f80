"""MultiNLI 1.0 (Williams et al. 2018): matched and mismatched sets, and the submission file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from genpool.data.nli import LABELS, NliReader
from genpool.disk.files import atomic_file
from genpool.errors import InputError, unknown_name

_LABELLED = ("train", "dev_matched", "dev_mismatched")
_TESTS = ("test_matched", "test_mismatched")


def _both(stem: str) -> tuple[str, str]:
    return f"{stem}.jsonl", f"{stem}.txt"


class MultiNliReader(NliReader):
    """Reads MultiNLI, with the genre of each pair and its pairID as the example's id.

    The splits are train, dev_matched, dev_mismatched, and test_matched and test_mismatched, whose
    examples have no label: predict them and hand the answers to `write_submission`.
    """

    # The test sets were published once, before version 1.0, and keep the old number.
    file_names: ClassVar[Mapping[str, Sequence[str]]] = {
        **{split: _both(f"multinli_1.0_{split}") for split in _LABELLED},
        **{split: _both(f"multinli_0.9_{split}_unlabeled") for split in _TESTS},
    }
    unlabelled: ClassVar[frozenset[str]] = frozenset(_TESTS)


def write_submission(path: str | Path, answers: Iterable[tuple[str | None, str]]) -> int:
    """Write the competition's file from (pairID, label) pairs; gives the number of pairs.

    The columns are pairID and gold_label. A file of the same name is replaced only when the new
    one is complete.
    """
    seen: set[str] = set()
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("pairID", "gold_label"))
        for pair, label in answers:
            if not pair or pair in seen:
                problem = "has no pairID" if not pair else f"repeats the pairID {pair!r}"
                raise InputError(f"answer {len(seen) + 1} {problem}; each pair is answered once")
            if label not in LABELS:
                raise InputError(f"pair {pair!r}: {unknown_name('label', label, LABELS)}")
            seen.add(pair)
            rows.writerow((pair, label))
    return len(seen)
