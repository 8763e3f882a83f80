"""Yelp's reviews: yelp_academic_dataset_review.json, one JSON object a line, 1 to 5 stars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.data.base import Reader
from genpool.data.example import Example
from genpool.data.folders import existing, split_files
from genpool.data.formats import json_values
from genpool.data.rows import Record, label_of, plain, text_of
from genpool.data.splits import PARTS, check_sizes, draw_parts
from genpool.disk.files import raw_lines
from genpool.errors import DataError

STARS = ("1", "2", "3", "4", "5")
_FILE = "yelp_academic_dataset_review.json"


class YelpReader(Reader):
    """Reads Yelp's reviews in a seeded split of the paper's sizes.

    Yelp gives no split, so one is drawn: the lines are counted once, the seed decides which of
    them each split gets, and the file is streamed for each. No text is kept.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        sizes: Sequence[int | str] = (500_000, 2_000, 2_000),
        seed: int = 0,
        bad_rows: str = "error",
    ) -> None:
        super().__init__(bad_rows=bad_rows)
        self._sizes, self._seed = check_sizes(sizes), seed
        path = existing(path)
        self._path = split_files(path, {"all": (_FILE,)})["all"] if path.is_dir() else path

    @property
    def labels(self) -> tuple[str, ...]:
        """The stars, "1" to "5"."""
        return STARS

    @property
    def is_pair(self) -> bool:
        """Never: one review."""
        return False

    @property
    def place(self) -> Path:
        """The file."""
        return self._path

    def splits(self) -> list[str]:
        """The splits that were asked for."""
        return [part for part, size in zip(PARTS, self._sizes, strict=True) if size]

    @cached_property
    def _parts(self) -> NDArray[np.uint8]:
        count = sum(1 for line in raw_lines(self._path) if line.data.strip())
        try:
            return draw_parts(count, self._sizes, self._seed)
        except DataError as error:
            raise DataError(error.problem, self._path) from None

    def _records(self, split: str) -> Iterator[Record]:
        wanted = PARTS.index(split)
        lines = (line for line in raw_lines(self._path) if line.data.strip())
        for line, part in zip(lines, self._parts, strict=True):
            if part == wanted:
                yield Record(self._path, line.number, json_values(line))

    def _example(self, values: Mapping[str, object], split: str) -> Example:
        label = label_of(values, "stars", STARS)
        review = plain(values.get("review_id"))
        return Example(label=label, first=text_of(values, "text"), id=review)
