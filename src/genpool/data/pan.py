"""PAN author profiling: a folder with one XML file an author, and their ages in truth.txt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genpool.data.folders import list_names, require_existing
from genpool.data.markup import documents
from genpool.data.reader import Example, Reader
from genpool.data.rows import BadRow, DroppedRow, Record, decode_line, parse_label, parse_text
from genpool.data.splits import PARTS, check_sizes, draw_parts
from genpool.disk.files import raw_lines
from genpool.errors import DataError

AGES = ("18-24", "25-34", "35-49", "50-64", "65+")
# Ranges as some years spell them. PAN 2015 has a single range from 50 on; most of its authors
# belong to the paper's 50-64.
_OTHER_SPELLINGS = {"65-xx": "65+", "50-xx": "50-64"}
_TRUTH = "truth.txt"
_UNKNOWN_AGE = "xx-xx"
_NO_TEXT = "no text"


class PanReader(Reader):
    """Reads the Age task: each document is an example, labelled with the age of its author.

    PAN publishes no split, so one is drawn by the seed over all documents; those of one author may
    be in any of the three. Documents without text and authors of unknown age are dropped and
    counted in `skipped`. The range from 50 on of PAN 2015, 50-XX, is read as 50-64.

    Args:
        path: the folder with `truth.txt` and an .xml file for each author.
        sizes: documents of train, dev and test; the default, (68485, 4000, 4000), is the paper's.
            Train may be "rest", for all other documents.
        seed: decides the split. Default 0.
        bad_rows: "error" (default) or "skip"; see `Reader`.

    Raises:
        ConfigError: `sizes` are not three such numbers.
        DataError: the folder holds no such files, or too few documents.

    Example:
        >>> reader = PanReader("pan16", sizes=("rest", 4000, 4000))
        >>> next(reader.read("train")).label
        '25-34'
    """

    labels = AGES
    is_pair = False

    def __init__(
        self,
        path: str | Path,
        *,
        sizes: Sequence[int | str] = (68_485, 4_000, 4_000),
        seed: int = 0,
        bad_rows: str = "error",
    ) -> None:
        super().__init__(path, bad_rows=bad_rows)
        self._sizes, self._seed = check_sizes(sizes), seed
        self._folder = require_existing(path)
        if not (self._folder / _TRUTH).is_file() or not self._authors():
            names = list_names(self._folder) if self._folder.is_dir() else "a single file"
            problem = f"looked for {_TRUTH} and an .xml file for each author, but found: {names}"
            raise DataError(problem, path)

    def splits(self) -> list[str]:
        """Returns the splits that were asked for: those whose size is not 0."""
        return [part for part, size in zip(PARTS, self._sizes, strict=True) if size]

    def _stream(self, split: str) -> Iterator[Example]:
        # The split is drawn over the documents that can be used, so all of them are made into
        # examples each time, under one name: a bad file is then counted once, not once a split.
        wanted = PARTS.index(split)
        for example, part in zip(super()._stream("all"), self._parts, strict=True):
            if part == wanted:
                yield example

    @cached_property
    def _parts(self) -> NDArray[np.uint8]:
        count = sum(1 for _ in super()._stream("all"))
        try:
            return draw_parts(count, self._sizes, self._seed)
        except DataError as error:
            raise DataError(error.problem + self._downloader_hint(), self._folder) from None

    def _downloader_hint(self) -> str:
        empty = self.skipped[_NO_TEXT]
        if not empty:
            return ""
        return (
            f". {empty:,} documents have no text: PAN 2016 distributes the ids of the tweets only; "
            "run the downloader of its organisers first, which adds the texts to the .xml files"
        )

    def _authors(self) -> list[Path]:
        # Sorted, because the order of a folder differs from one file system to the next.
        return sorted(self._folder.glob("*.xml"), key=lambda path: path.name)

    def records(self, split: str) -> Iterator[Record]:
        ages: dict[str, str] = {}
        for record in self._truth():
            if isinstance(record.values, BadRow):
                yield record
            else:
                ages[str(record.values["author"])] = str(record.values["age"])
        for path in self._authors():
            # Some years add language, age and gender to the name: id_en_xx_xx.xml.
            author = path.stem if path.stem in ages else path.stem.split("_")[0]
            if author not in ages:
                problem = f"author {author!r} is not in {_TRUTH}"
                yield Record(path, 1, BadRow("author without age", problem))
                continue
            for number, record in enumerate(documents(path), start=1):
                if isinstance(record.values, BadRow):
                    yield record
                else:
                    known = {"age": ages[author], "id": f"{author}/{number}"}
                    yield record._replace(values={**record.values, **known})

    def _truth(self) -> Iterator[Record]:
        path = self._folder / _TRUTH
        for line in raw_lines(path):
            if not line.data.strip():
                continue
            try:
                values: Mapping[str, object] | BadRow = _author_and_age(decode_line(line))
            except BadRow as bad:
                values = bad
            yield Record(path, line.number, values)

    def example(self, values: Mapping[str, object], split: str) -> Example:
        if values["age"] == _UNKNOWN_AGE:
            raise DroppedRow("unknown age", "the author's age is not known")
        if not values["text"]:
            raise DroppedRow(_NO_TEXT, "the document has no text")
        label = parse_label(values, "age", AGES)
        return Example(label=label, first=parse_text(values, "text"), id=str(values["id"]))


def _author_and_age(line: str) -> Mapping[str, object]:
    fields = [field.strip() for field in line.split(":::")]
    if len(fields) < 3:
        problem = f"has {len(fields)} fields; expected author:::GENDER:::AGE"
        raise BadRow("wrong number of fields", problem)
    age = fields[2].lower()
    age = _OTHER_SPELLINGS.get(age, age)
    if age not in (*AGES, _UNKNOWN_AGE):
        parse_label({"age": fields[2]}, "age", AGES)
    return {"author": fields[0], "age": age}
