"""LanceDB (extra `lancedb`): tables that encode texts, and tables that `genpool encode` writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from genpool.disk.atomic import temporary_path
from genpool.errors import DataError, require_extra
from genpool.integrations.load_encoder import load_encoder
from genpool.jobs.encode_file import SENTENCE, VECTOR, file_writer
from genpool.search.index_folder import Write

with require_extra("genpool.integrations.lancedb", "lancedb"):
    import lancedb
    import pyarrow as arrow
    from lancedb.embeddings import EmbeddingFunctionConfig, TextEmbeddingFunction, register
    from pyarrow import parquet

__all__ = ["GenpoolFunction", "table_writer"]


@register("genpool")
class GenpoolFunction(TextEmbeddingFunction):
    """The embedding function `genpool` of LanceDB, found by this name once it is imported.

    Attributes:
        model: a folder. Default: None, the encoder inside the package.

    Example:
        >>> import genpool.integrations.lancedb
        >>> from lancedb.embeddings import get_registry
        >>> function = get_registry().get("genpool").create()
    """

    model: str | None = None

    @cached_property
    def _encoder(self) -> Any:
        return load_encoder(self.model)

    def ndims(self) -> int:
        """Returns the dimension of the vectors."""
        return int(self._encoder.output_dim)

    def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """Returns the vectors of texts."""
        return list(self._encoder.encode(list(texts)))


@contextmanager
def table_writer(
    output: str | Path,
    dim: int,
    columns: Sequence[str] = (),
    table: Path | None = None,
    model: str | Path | None = None,
    append: bool = False,
) -> Iterator[Write]:
    """Yields a function that writes rows; at the end they are one new version of a table.

    Args:
        output: FOLDER/NAME.lance, the table NAME of the database FOLDER.
        dim: the dimension of the vectors.
        columns: the columns that are kept. Default: none.
        table: the table that they are of. Default: None.
        model: the folder of the model, for queries as text. Default: None, the embedded one.
        append: add to the table, instead of replacing its rows. Default: False.

    Raises:
        DataError: LanceDB cannot write the table.
    """
    target = Path(output)
    target.parent.mkdir(parents=True, exist_ok=True)
    # In Parquet until all rows are there: each call of LanceDB makes a version of its own.
    with temporary_path(target, "parquet") as spool:
        with file_writer(spool, dim, columns, table) as write:
            yield write
        file = parquet.ParquetFile(spool)
        rows = arrow.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
        try:
            database = lancedb.connect(target.parent)
            if append and target.is_dir():
                database.open_table(target.stem).add(rows)
                return
            function = GenpoolFunction.create(model=None if model is None else str(model))
            config = EmbeddingFunctionConfig(
                vector_column=VECTOR, source_column=SENTENCE, function=function
            )
            database.create_table(target.stem, rows, mode="overwrite", embedding_functions=[config])
        except (OSError, RuntimeError, ValueError) as error:
            raise DataError(f"LanceDB cannot write it: {error}", target) from error
