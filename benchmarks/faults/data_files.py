"""Data files that were damaged or mixed up: an error with the file, or a right read.

Run with `python -m benchmarks.faults.data_files [COUNT] [KIND ...]` (10,000 files of every kind).
An error must name the file, and its line where the fault is in one. A read must give examples with
texts and allowed labels; with bad_rows="skip" only a fault of the file as a whole may be an error.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.faults.cases import Problem, Tally, count_argument, main, run_cases
from benchmarks.faults.mutations import NASTY, change_bytes, change_json, to_json
from genpool.data import open_reader
from genpool.data.reader import Reader
from genpool.data.sentences import read_sentences
from genpool.errors import DataError, GenpoolError
from genpool.registry import load_plugins
from genpool.text import read_vectors

COUNT, SEED = 10_000, 0
PAIRS = [
    ("A dog runs .", "An animal runs ."),
    ("It 's red .", "A « man » sleeps 🐕 ."),
    ("Two men , \t one hat .", "Nobody ."),
    ("One .", "Two ."),
]
LABELS = ("entailment", "neutral", "contradiction", "entailment")


class Source(NamedTuple):
    """A kind of file: its name, its content, and how it is read."""

    name: str
    content: bytes
    read: Callable[[Path, str], None]


def read_all(reader: Reader) -> None:
    """Reads every split twice, and checks what comes out; both passes must agree."""
    for split in reader.splits():
        examples = list(reader.read(split))
        labels = reader.labels
        for example in examples:
            texts = [example.first, *([example.second] if reader.is_pair else [])]
            if not all(isinstance(text, str) and text.strip() for text in texts):
                raise Problem(f"a text is {texts!r}")
            if labels is not None and example.label is not None and example.label not in labels:
                raise Problem(f"the label is {example.label!r}")
        if list(reader.read(split)) != examples:
            raise Problem("the second pass read something else")


def by_name(name: str, **options: object) -> Callable[[Path, str], None]:
    """Returns a function that reads a file or its folder with a reader."""

    def read(path: Path, bad_rows: str) -> None:
        place = path.parent if name == "age" else path
        read_all(open_reader(name, place, bad_rows=bad_rows, **options))

    return read


def nli_lines() -> bytes:
    rows = [
        {
            "gold_label": label,
            "pairID": f"p{number}",
            "genre": "fiction",
            "annotator_labels": [label],
            "sentence1": first,
            "sentence2": second,
            "sentence1_binary_parse": f"( {first} )",
            "sentence2_binary_parse": f"( {second} )",
        }
        for number, (label, (first, second)) in enumerate(zip(LABELS, PAIRS, strict=True))
    ]
    return b"".join(to_json(row) + b"\n" for row in rows)


def table(separator: str) -> bytes:
    rows: list[tuple[str, ...]] = [("label", "premise", "hypothesis")]
    rows += [
        (label, *(side.replace("\t", " ").replace(",", ";") for side in pair))
        for label, pair in zip(LABELS, PAIRS, strict=True)
    ]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def yelp_lines() -> bytes:
    rows = [{"review_id": f"r{at}", "stars": 1 + at % 5, "text": f"It is {at}."} for at in range(9)]
    return b"".join(to_json(row) + b"\n" for row in rows)


def author(texts: list[str]) -> bytes:
    documents = "".join(f"<document><![CDATA[{text}]]></document>" for text in texts)
    return f"<author lang='en'><documents>{documents}</documents></author>".encode()


def parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet as writer

    file = io.BytesIO()
    writer.write_table(pyarrow.table({"label": list(LABELS), "text": list("abcd")}), file)
    return file.getvalue()


def excel() -> bytes:
    import openpyxl

    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in [("label", "text"), *zip(LABELS, "abcd", strict=True)]:
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def read_lines(path: Path, _: str) -> None:
    if not all(isinstance(text, str) for text in read_sentences(path)):
        raise Problem("a sentence is no text")


def read_word_vectors(path: Path, _: str) -> None:
    vectors = read_vectors(path).matrix
    if not np.isfinite(vectors).all():
        raise Problem("a vector is not finite")


def sources() -> dict[str, Source]:
    """Returns the kinds of files, by the name of the reader and the format."""
    tsv, vectors = table("\t"), "the 0.1 0.2 0.3\nman 1 2 3\ndog -1 -2e-3 4\né 0 0 1\n".encode()
    texts = ["hello <b>you</b>", "a &amp; b", "http://x.y"]
    any_table = by_name("table")
    load_plugins(["genpool.reproduction"])  # yelp, age
    return {
        "snli": Source("snli_1.0_dev.jsonl", nli_lines(), by_name("snli")),
        "multinli": Source("multinli_1.0_train.jsonl", nli_lines(), by_name("multinli")),
        "yelp": Source("reviews.json", yelp_lines(), by_name("yelp", sizes=(5, 2, 2))),
        "age": Source("a0.xml", author(texts), by_name("age", sizes=("rest", 0, 0))),
        "table.tsv": Source("t.tsv", tsv, any_table),
        "table.csv": Source("t.csv", table(","), any_table),
        "table.jsonl": Source("t.jsonl", nli_lines(), by_name("table", label="gold_label")),
        "table.parquet": Source("t.parquet", parquet(), any_table),
        "table.xlsx": Source("t.xlsx", excel(), any_table),
        "table.tsv.gz": Source("t.tsv.gz", gzip.compress(tsv), any_table),
        "table.tsv.xz": Source("t.tsv.xz", lzma.compress(tsv), any_table),
        "table.tsv.bz2": Source("t.tsv.bz2", bz2.compress(tsv), any_table),
        "table.tsv.zip": Source("t.tsv.zip", zipped("t.tsv", tsv), any_table),
        "sentences": Source("t.txt", b"".join(b"%s\n" % a.encode() for a, _ in PAIRS), read_lines),
        "vectors": Source("v.txt", vectors, read_word_vectors),
    }


def changed(source: Source, chance: random.Random) -> bytes:
    """Returns a changed file; of a file of JSON lines sometimes one that is still JSON."""
    lines = source.content.split(b"\n")
    kind = chance.randrange(5)
    if source.name.endswith((".json", ".jsonl")) and kind == 0:
        at = chance.randrange(len(lines) - 1)
        lines[at] = to_json(change_json(json.loads(lines[at]), chance))
        return b"\n".join(lines)
    if kind == 1:
        cell = str(chance.choice(NASTY)).encode("utf-8", "surrogatepass")
        words = source.content.split(b"\t" if b"\t" in source.content else b" ")
        words[chance.randrange(len(words))] = cell
        return (b"\t" if b"\t" in source.content else b" ").join(words)
    return change_bytes(source.content, chance)


def file_case(name: str, source: Source, place: Path) -> Callable[[int], str]:
    """Returns the cases of one kind of file."""
    folder = place / name
    folder.mkdir(exist_ok=True)
    path = folder / source.name
    if name == "age":
        (folder / "truth.txt").write_text("a0:::MALE:::18-24\n", encoding="utf-8")
    path.write_bytes(source.content)
    source.read(path, "error")  # the unchanged file is a right one

    def case(number: int) -> str:
        chance = random.Random(f"{SEED} {name} {number}")
        if name == "age" and chance.random() < 0.2:
            path.write_bytes(source.content)
            truth = change_bytes(b"a0:::MALE:::18-24\na1:::x:::65-xx\n", chance)
            (folder / "truth.txt").write_bytes(truth)
        else:
            path.write_bytes(changed(source, chance))
        try:
            source.read(path, chance.choice(("error", "skip")))
        except DataError as error:
            if str(folder) not in str(error):
                raise Problem(f"the error does not name the file: {error}") from error
            return "refused" if error.line is None else "refused with its line"
        except GenpoolError as error:
            if str(folder) not in str(error):
                raise Problem(f"the error does not name the file: {error}") from error
            return "refused"
        return "read"

    return case


def run(count: int, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Tally]]:
    """Yields what happened, by kind of file."""
    with TemporaryDirectory() as folder:
        for name, source in sources().items():
            if not names or name in names:
                yield name, run_cases(file_case(name, source, Path(folder)), count)


if __name__ == "__main__":
    main("mutated data files", run(count_argument(COUNT), tuple(sys.argv[2:])))
