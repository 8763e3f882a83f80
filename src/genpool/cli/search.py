"""genpool search"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.errors import InputError

if TYPE_CHECKING:
    from genpool.inference.sentence_vectors import SentenceVectors
    from genpool.search import Hit

#: piped queries that are encoded and searched together
QUERIES_TOGETHER = 64


def search(
    folder: Annotated[
        Path, typer.Argument(metavar="INDEX", help="A folder made by encode -o INDEX/.")
    ],
    query: Annotated[str, typer.Argument(help="A sentence; - reads one per line.")],
    model: Annotated[
        Path | None, typer.Option(help="Folder of the model. Default: the one that made INDEX.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Sentences per query.")] = 10,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Only rows whose columns fit: 'lang == \"en\" and year >= 2000'. "
            "Also in [...], not, or, null.",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare all rows, even if INDEX has lists.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per query.")] = False,
) -> None:
    """Print the sentences closest to a query: cosine, row (from 0), sentence, columns.

    Example: genpool search index "A dog runs."
    """
    from genpool import SentenceEncoder
    from genpool.data.sentences import read_sentences
    from genpool.search import SearchIndex
    from genpool.search.approximate import MIN_ROWS
    from genpool.search.where import parse_condition

    index = SearchIndex.open(folder)
    if where is not None:  # before the model is loaded, which takes longer
        parse_condition(where, index.card.columns)
    if model is not None:
        index = SearchIndex.open(folder, SentenceEncoder.from_pretrained(model))
    encoder = index.encoder
    if len(index) >= MIN_ROWS and not index.card.lists:
        typer.echo(
            f"{folder} has {len(index):,} rows; `genpool index build {folder}` makes searches "
            "faster (extra faiss)",
            err=True,
        )
    if not len(index):
        typer.echo(f"{folder} is empty: the file it was made from had no sentences.", err=True)
    many = query == "-"
    queries = read_sentences("-") if many else iter([query])

    def find(texts: list[str]) -> list[list[Hit]]:
        return index.search(texts, top, where, exact)

    for number, (text, hits) in enumerate(_answers(find, encoder, queries), start=1):
        if hits is None and not many:
            raise InputError(f"the query {text!r} has no words; expected a sentence.")
        if hits is None:
            typer.echo(f"standard input, line {number}: a query without words, no hits", err=True)
        answer = _as_json(text, hits or []) if as_json else _as_text(text, hits or [], many)
        for line in answer:
            # Half a surrogate pair, which an index can contain, has no bytes to print.
            typer.echo(line.encode("utf-8", "replace").decode("utf-8"))


def _answers(
    find: Callable[[list[str]], list[list[Hit]]], encoder: SentenceVectors, queries: Iterator[str]
) -> Iterator[tuple[str, list[Hit] | None]]:
    """Yields every query with its hits; None for a query without words, equally close to all."""
    # At a terminal every line is answered at once; in a file, many share a pass over the rows.
    size = 1 if sys.stdin is not None and sys.stdin.isatty() else QUERIES_TOGETHER
    while texts := list(islice(queries, size)):
        words = encoder.text.words_batch(texts)
        for text, text_words, hits in zip(texts, words, find(texts), strict=True):
            yield text, hits if text_words else None


def _as_json(query: str, hits: Iterable[Hit]) -> Iterator[str]:
    rows = []
    for hit in hits:
        row = {**hit._asdict(), "score": round(hit.score, 6), "values": dict(hit.values)}
        if not hit.values:
            del row["values"]
        rows.append(row)
    yield json.dumps({"query": query, "hits": rows}, ensure_ascii=False)


def _as_text(query: str, hits: Iterable[Hit], many: bool) -> Iterator[str]:
    """Yields one line per hit, without the line breaks of its sentence; of many, the query too."""
    if many:
        yield f"query: {query}"
    for hit in hits:
        columns = [f"{name}={value}" for name, value in hit.values.items()]
        fields = [f"{hit.score:.4f}", str(hit.row), hit.sentence, *columns]
        yield "\t".join(" ".join(field.splitlines()) for field in fields)
