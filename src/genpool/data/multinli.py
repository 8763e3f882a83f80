"""MultiNLI 1.0 (Williams et al. 2018): matched and mismatched sets, and the submission file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from genpool.data.nli import LABELS, NliReader
from genpool.data.reader import SubmissionWriter
from genpool.disk.atomic import atomic_file
from genpool.errors import InputError, unknown_name

_LABELLED = ("train", "dev_matched", "dev_mismatched")
_TESTS = ("test_matched", "test_mismatched")


def write_submission(path: str | Path, answers: Iterable[tuple[str | None, str]]) -> int:
    """Writes the file that the MultiNLI competition accepts: columns pairID and gold_label.

    Args:
        path: the .csv file; an existing one is replaced only when the new one is complete.
        answers: (pairID, predicted label) of every pair of a test set.

    Returns:
        The number of pairs.

    Raises:
        InputError: an answer has no pairID, repeats one, or has a label that is not MultiNLI's.
        DataError: the file cannot be written.

    Example:
        >>> write_submission("test_matched.csv", [("31193", "neutral"), ("92164", "entailment")])
        2
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


def _both_formats(stem: str) -> tuple[str, str]:
    return f"{stem}.jsonl", f"{stem}.txt"


class MultiNliReader(NliReader):
    """Reads MultiNLI, with the genre of each pair, and its pairID as the id of the example.

    The splits are train, dev_matched, dev_mismatched, and test_matched and test_mismatched, whose
    labels ("hidden" in the files) were never published: their examples have the label None. The
    answers to these are what `MultiNliReader.write_submission` writes.

    Args:
        path: the folder `multinli_1.0`, or one of its files.
        tokens: "parse" (default) or "raw"; see `NliReader`.
        labelled: True (default) drops pairs without a gold label; see `NliReader`.
        bad_rows: "error" (default) or "skip"; see `Reader`.

    Raises:
        DataError: the folder holds none of the official files.

    Example:
        >>> reader = MultiNliReader("multinli_1.0")
        >>> next(reader.read("dev_matched")).genre
        'slate'
    """

    # The test sets were published once, before version 1.0, and keep the old number.
    file_names: ClassVar[Mapping[str, Sequence[str]]] = {
        **{split: _both_formats(f"multinli_1.0_{split}") for split in _LABELLED},
        **{split: _both_formats(f"multinli_0.9_{split}_unlabeled") for split in _TESTS},
    }
    unlabelled: ClassVar[frozenset[str]] = frozenset(_TESTS)
    write_submission: ClassVar[SubmissionWriter | None] = staticmethod(write_submission)
