"""Yelp's reviews: yelp_academic_dataset_review.json, one JSON object per line, 1 to 5 stars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.data.folders import find_split_files, require_existing
from genpool.data.formats import json_values
from genpool.data.reader import Example, Reader
from genpool.data.rows import Record, parse_label, parse_text, to_text
from genpool.data.splits import PARTS, check_sizes, draw_parts
from genpool.disk.files import raw_lines
from genpool.errors import DataError

STARS = ("1", "2", "3", "4", "5")
# The name has changed between the yearly editions of the data set.
_FILES = ("yelp_academic_dataset_review.json", "review.json")


class YelpReader(Reader):
    """Reads Yelp's reviews in a seeded split of the paper's sizes.

    Yelp publishes no split, so one is drawn: the lines are counted once, the seed decides which
    of them each split gets, and the file is streamed for each. No text is kept in memory.

    Args:
        path: the folder of the data set, which holds `yelp_academic_dataset_review.json` or
            `review.json`, or that file.
        sizes: reviews of train, dev and test; the default, (500000, 2000, 2000), is the paper's.
            Train may be "rest", for all other reviews.
        seed: decides the split. Default 0.
        bad_rows: "error" (default) or "skip"; see `Reader`.

    Raises:
        ConfigError: `sizes` are not three such numbers.
        DataError: there is no such file, or it holds too few reviews.

    Example:
        >>> reader = YelpReader("yelp", sizes=("rest", 2000, 2000), seed=1)
        >>> next(reader.read("dev")).label
        '4'
    """

    labels = STARS
    is_pair = False

    def __init__(
        self,
        path: str | Path,
        *,
        sizes: Sequence[int | str] = (500_000, 2_000, 2_000),
        seed: int = 0,
        bad_rows: str = "error",
    ) -> None:
        super().__init__(path, bad_rows=bad_rows)
        self._sizes, self._seed = check_sizes(sizes), seed
        path = require_existing(path)
        self._path = find_split_files(path, {"all": _FILES})["all"] if path.is_dir() else path
        self.place = self._path

    def splits(self) -> list[str]:
        """Returns the splits that were asked for: those whose size is not 0."""
        return [part for part, size in zip(PARTS, self._sizes, strict=True) if size]

    @cached_property
    def _parts(self) -> NDArray[np.uint8]:
        count = sum(1 for line in raw_lines(self._path) if line.data.strip())
        try:
            return draw_parts(count, self._sizes, self._seed)
        except DataError as error:
            raise DataError(error.problem, self._path) from None

    def records(self, split: str) -> Iterator[Record]:
        wanted = PARTS.index(split)
        lines = (line for line in raw_lines(self._path) if line.data.strip())
        for line, part in zip(lines, self._parts, strict=True):
            if part == wanted:
                yield Record(self._path, line.number, json_values(line))

    def example(self, values: Mapping[str, object], split: str) -> Example:
        label = parse_label(values, "stars", STARS)
        review = to_text(values.get("review_id"))
        return Example(label=label, first=parse_text(values, "text"), id=review)
