"""The readers `yelp` and `age` of the paper's two tasks of single texts: Yelp's reviews, PAN's
authors. Neither data set has a split, so a seed draws one of the paper's sizes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from genpool.data.reader import (
    SPLITS,
    BadRow,
    DroppedRow,
    Example,
    Reader,
    Record,
    parse_label,
    parse_text,
    register,
    to_text,
)
from genpool.data.splits import seeded_order
from genpool.data.text_files import find_split_files, json_values, list_names, require_existing
from genpool.disk.files import RawLine, open_bytes, raw_lines
from genpool.errors import ConfigError, DataError

REST = "rest"
Sizes = tuple[int | str, int, int]
_UNUSED = len(SPLITS)
_SET_SIZES = (
    f"sizes=[train, dev, test], where train may be {REST!r} for all other rows (command line: "
    f"--set 'reader.sizes=[\"{REST}\", 2000, 2000]')"
)
STARS = ("1", "2", "3", "4", "5")
# The name has changed between the yearly editions of the data set.
_YELP_FILES = ("yelp_academic_dataset_review.json", "review.json")
AGES = ("18-24", "25-34", "35-49", "50-64", "65+")
# Ranges as some years spell them. PAN 2015 has a single range from 50 on; most of its authors
# belong to the paper's 50-64.
_OTHER_SPELLINGS = {"65-xx": "65+", "50-xx": "50-64"}
_TRUTH = "truth.txt"
_UNKNOWN_AGE = "xx-xx"
_NO_TEXT = "no text"


def draw_parts(count: int, sizes: Sizes, seed: int) -> NDArray[np.uint8]:
    """Returns the part of each row, an index into SPLITS or 3 for an unused row, shape (count,)."""
    # Test is drawn first and train last: a smaller training set leaves dev and test unchanged.
    train, dev, test = sizes
    held_out = dev + test
    train = max(count - held_out, 0) if isinstance(train, str) else train
    if train == 0 or train + held_out > count:
        raise DataError(
            f"holds {count} rows that can be used; asked for {train + held_out} "
            f"({train} train, {dev} dev, {test} test); ask for fewer with {_SET_SIZES}"
        )
    parts = np.full(count, _UNUSED, dtype=np.uint8)  # (count,)
    order = seeded_order(count, seed)  # (count,)
    parts[order[:test]] = SPLITS.index("test")
    parts[order[test:held_out]] = SPLITS.index("dev")
    parts[order[held_out : held_out + train]] = SPLITS.index("train")
    return parts


def check_sizes(sizes: Sequence[int | str]) -> Sizes:
    """Returns the sizes of train, dev and test; train may be "rest": all rows that are left."""
    if len(sizes) == len(SPLITS):
        train, dev, test = sizes
        if isinstance(dev, int) and isinstance(test, int):
            counts = (dev, test) if train == REST else (train, dev, test)
            if all(isinstance(count, int) and count >= 0 for count in counts):
                return train, dev, test
    raise ConfigError(f"sizes is {list(sizes)}; expected three numbers: {_SET_SIZES}")


class DrawnSplitReader(Reader):
    """A reader of single texts whose splits are drawn by a seed; see `draw_parts`."""

    is_pair = False

    def __init__(
        self, path: str | Path, *, sizes: Sequence[int | str], seed: int = 0, **options: Any
    ) -> None:
        super().__init__(path, **options)
        self._sizes, self._seed = check_sizes(sizes), seed

    def splits(self) -> list[str]:
        """Returns the splits that were asked for: those whose size is not 0."""
        return [part for part, size in zip(SPLITS, self._sizes, strict=True) if size]

    @cached_property
    def _parts(self) -> NDArray[np.uint8]:
        """The part that each row belongs to, shape (rows,)."""
        count = sum(1 for _ in self._rows())
        try:
            return draw_parts(count, self._sizes, self._seed)
        except DataError as error:
            raise DataError(error.problem + self._hint(), self.place) from None

    def _drawn(self, split: str) -> Iterator[Any]:
        wanted = SPLITS.index(split)
        for row, part in zip(self._rows(), self._parts, strict=True):
            if part == wanted:
                yield row

    def _rows(self) -> Iterator[Any]:
        """Yields what the splits are drawn from."""
        raise NotImplementedError

    def _hint(self) -> str:
        """Returns what may be the cause if there are too few rows."""
        return ""


@register("yelp")
class YelpReader(DrawnSplitReader):
    """Reads Yelp's reviews in a seeded split of the paper's sizes.

    Yelp publishes no split, so one is drawn: the lines are counted once, the seed decides which
    of them each split gets, and the file is streamed for each. No text is kept in memory.

    Args:
        path: the folder of the data set, which holds `yelp_academic_dataset_review.json` or
            `review.json`, or that file.
        sizes: reviews of train, dev and test; the default, (500000, 2000, 2000), is the paper's.
            Train may be "rest", for all other reviews.
        seed: decides the split. Default 0.
        **options: the options of `Reader`.
    """

    labels = STARS

    def __init__(
        self,
        path: str | Path,
        *,
        sizes: Sequence[int | str] = (500_000, 2_000, 2_000),
        **options: Any,
    ) -> None:
        super().__init__(path, sizes=sizes, **options)
        path = require_existing(path)
        self._file = find_split_files(path, {"all": _YELP_FILES})["all"] if path.is_dir() else path
        self.place = self._file

    def _rows(self) -> Iterator[RawLine]:
        return (line for line in raw_lines(self._file) if line.data.strip())

    def records(self, split: str) -> Iterator[Record]:
        for line in self._drawn(split):
            yield Record(self._file, line.number, json_values(line))

    def example(self, values: Mapping[str, object], split: str) -> Example:
        label = parse_label(values, "stars", STARS)
        review = to_text(values.get("review_id"))
        return Example(label=label, first=parse_text(values, "text"), id=review)


@register("age")
class PanReader(DrawnSplitReader):
    """Reads the Age task: each document is an example, labelled with the age of its author.

    PAN publishes no split, so one is drawn by the seed over all documents; those of one author may
    be in any of the three. Documents without text and authors of unknown age are dropped and
    counted in `skipped`. The range from 50 on of PAN 2015, 50-XX, is read as 50-64.

    Args:
        path: the folder with `truth.txt` and an .xml file for each author.
        sizes: documents of train, dev and test; the default, (68485, 4000, 4000), is the paper's.
            Train may be "rest", for all other documents.
        seed: decides the split. Default 0.
        **options: the options of `Reader`.
    """

    labels = AGES

    def __init__(
        self,
        path: str | Path,
        *,
        sizes: Sequence[int | str] = (68_485, 4_000, 4_000),
        **options: Any,
    ) -> None:
        super().__init__(path, sizes=sizes, **options)
        folder = require_existing(path)
        # Sorted, because the order of a folder differs from one file system to the next.
        self._authors = sorted(folder.glob("*.xml"), key=lambda file: file.name)
        self._truth = folder / _TRUTH
        if not self._truth.is_file() or not self._authors:
            names = list_names(folder) if folder.is_dir() else "a single file"
            problem = f"looked for {_TRUTH} and an .xml file for each author, but found: {names}"
            raise DataError(problem, path)

    def _stream(self, split: str) -> Iterator[Example]:
        return self._drawn(split)

    def _rows(self) -> Iterator[Example]:
        # The split is drawn over the documents that can be used, so all of them are made into
        # examples each time, under one name: a bad file is then counted once, not once a split.
        return super()._stream("all")

    def _hint(self) -> str:
        empty = self.skipped[_NO_TEXT]
        if not empty:
            return ""
        return (
            f". {empty:,} documents have no text: PAN 2016 distributes the ids of the tweets only; "
            "run the downloader of its organisers first, which adds the texts to the .xml files"
        )

    def records(self, split: str) -> Iterator[Record]:
        ages: dict[str, str] = {}
        for line in raw_lines(self._truth):
            try:
                if not line.data.strip():
                    continue
                fields = [field.strip() for field in line.data.decode().split(":::")]
                if len(fields) < 3:
                    problem = f"has {len(fields)} fields; expected author:::GENDER:::AGE"
                    raise BadRow("wrong number of fields", problem)
                age = _OTHER_SPELLINGS.get(fields[2].lower(), fields[2].lower())
                if age not in (*AGES, _UNKNOWN_AGE):
                    parse_label({"age": fields[2]}, "age", AGES)
                ages[fields[0]] = age
            except UnicodeDecodeError as error:
                bad = BadRow("bad UTF-8", f"is not UTF-8: {error.reason}")
                yield Record(self._truth, line.number, bad)
            except BadRow as bad:
                yield Record(self._truth, line.number, bad)
        for path in self._authors:
            # Some years add language, age and gender to the name: id_en_xx_xx.xml.
            author = path.stem if path.stem in ages else path.stem.split("_")[0]
            if author not in ages:
                problem = f"author {author!r} is not in {_TRUTH}"
                yield Record(path, 1, BadRow("author without age", problem))
                continue
            try:
                texts = documents(path)
            # The last three are for an entity, an encoding that is unknown, and too many levels.
            except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
                number = error.position[0] if isinstance(error, ElementTree.ParseError) else 1
                problem = f"is not XML that can be read: {error}"
                yield Record(path, number, BadRow("invalid XML", problem))
                continue
            for number, text in enumerate(texts, start=1):
                yield Record(
                    path, 1, {"text": text, "age": ages[author], "id": f"{author}/{number}"}
                )

    def example(self, values: Mapping[str, object], split: str) -> Example:
        if values["age"] == _UNKNOWN_AGE:
            raise DroppedRow("unknown age", "the author's age is not known")
        if not values["text"]:
            raise DroppedRow(_NO_TEXT, "the document has no text")
        return Example(str(values["age"]), parse_text(values, "text"), id=str(values["id"]))


# XML and HTML are not trusted. Patterns and not html.parser, which takes a tweet's "</3" for a
# comment and drops what follows.
_HIDDEN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?:[\s/][^<>]*)?>")
_BREAKING = re.compile("br|hr|p|div|li|ul|ol|table|tr|td|th|h[1-6]|blockquote", re.IGNORECASE)
_DOCUMENTS = ("document", "conversation")


def strip_markup(text: str) -> str:
    """Returns the text without tags, on one line, with its entities replaced by characters."""

    def space_or_nothing(tag: re.Match[str]) -> str:
        # "<s>@</s><b>name</b>" is one word, "one<br>two" is two.
        return " " if _BREAKING.fullmatch(tag[1]) else ""

    return " ".join(html.unescape(_TAG.sub(space_or_nothing, _HIDDEN.sub(" ", text))).split())


def documents(path: Path) -> list[str]:
    """Returns the texts of one author's file."""
    # A few declarations of entities can expand without end, or name other files.
    with open_bytes(path) as stream:
        content = stream.read()
    if b"<!ENTITY" in content:
        raise ValueError("declaring an entity is refused as unsafe")
    return [
        strip_markup(_text(element))
        for element in ElementTree.fromstring(content).iter()
        # A conversation may hold documents, which are read in its place.
        if element.tag in _DOCUMENTS and not any(element.iterfind(".//document"))
    ]


def _text(element: ElementTree.Element) -> str:
    children = (" " + _text(child) + (child.tail or "") for child in element)
    return "".join([element.text or "", *children])
