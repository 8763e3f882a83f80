"""Readers of data sets: official files, tables and the hub, as a stream of examples.

A reader of one's own is registered under a name, which recipes then select:
`genpool.data.register("mine", MyReader)`.
"""

from genpool.data.nli import MultiNliReader, SnliReader, write_submission
from genpool.data.reader import READERS, BadRow, Example, Reader, Record, open_reader, register
from genpool.data.sentences import LinesReader
from genpool.data.table import HubReader, TableReader

__all__ = [
    "READERS",
    "BadRow",
    "Example",
    "HubReader",
    "LinesReader",
    "MultiNliReader",
    "Reader",
    "Record",
    "SnliReader",
    "TableReader",
    "open_reader",
    "register",
    "write_submission",
]

READERS.update(snli=SnliReader, multinli=MultiNliReader, table=TableReader, hub=HubReader)
