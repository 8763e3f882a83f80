"""genpool search"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genpool.errors import FolderError, InputError

if TYPE_CHECKING:
    from genpool import SentenceEncoder
    from genpool.search import Hit, SearchIndex

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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per query.")] = False,
) -> None:
    """Print the sentences closest to a query: cosine, row (from 0), sentence.

    Example: genpool search index "A dog runs."
    """
    from genpool.data.sentences import read_sentences
    from genpool.search import SearchIndex

    index = SearchIndex.open(folder)
    encoder = _load(index, model)
    index.require_model(encoder)
    if not len(index):
        typer.echo(f"{folder} is empty: the file it was made from had no sentences.", err=True)
    many = query == "-"
    queries = read_sentences("-") if many else iter([query])
    for number, (text, hits) in enumerate(_answers(index, encoder, queries, top), start=1):
        if hits is None and not many:
            raise InputError(f"the query {text!r} has no words; expected a sentence.")
        if hits is None:
            typer.echo(f"standard input, line {number}: a query without words, no hits", err=True)
        answer = _as_json(text, hits or []) if as_json else _as_text(text, hits or [], many)
        for line in answer:
            # Half a surrogate pair, which an index can contain, has no bytes to print.
            typer.echo(line.encode("utf-8", "replace").decode("utf-8"))


def _load(index: SearchIndex, model: Path | None) -> SentenceEncoder:
    from genpool import SentenceEncoder

    path = index.card.model.path
    if model is not None or path is None:
        return SentenceEncoder.from_pretrained(model)
    try:
        return SentenceEncoder.from_pretrained(path)
    except FolderError as error:
        raise FolderError(
            f"{index.path} was made with the model {path}, which cannot be loaded: {error} "
            "Name its folder: --model FOLDER."
        ) from error


def _answers(
    index: SearchIndex, encoder: SentenceEncoder, queries: Iterator[str], top: int
) -> Iterator[tuple[str, list[Hit] | None]]:
    """Yields every query with its hits; None for a query without words, equally close to all."""
    # At a terminal every line is answered at once; in a file, many share a pass over the rows.
    size = 1 if sys.stdin is not None and sys.stdin.isatty() else QUERIES_TOGETHER
    while texts := list(islice(queries, size)):
        words = encoder.text.tokenizer.words_batch(texts)
        results = index.search(encoder.encode(texts, truncate_dim=index.card.dim), top)
        for text, text_words, hits in zip(texts, words, results, strict=True):
            yield text, hits if text_words else None


def _as_json(query: str, hits: Iterable[Hit]) -> Iterator[str]:
    rows = [{**hit._asdict(), "score": round(hit.score, 6)} for hit in hits]
    yield json.dumps({"query": query, "hits": rows}, ensure_ascii=False)


def _as_text(query: str, hits: Iterable[Hit], many: bool) -> Iterator[str]:
    """Yields one line per hit, without the line breaks of its sentence; of many, the query too."""
    if many:
        yield f"query: {query}"
    for hit in hits:
        yield f"{hit.score:.4f}\t{hit.row}\t{' '.join(hit.sentence.splitlines())}"
