"""Readers of data sets: official files, tables and the hub, as a stream of examples.

A reader of one's own is registered under a name, which recipes then select:
`genpool.data.register("mine", MyReader)`.
"""

from genpool.data.nli import MultiNliReader, SnliReader, write_submission
from genpool.data.reader import READERS, Example, Reader, open_reader, register
from genpool.data.rows import BadRow, Record
from genpool.data.rules.generate import RulesReader
from genpool.data.sentences import LinesReader
from genpool.data.table import HubReader, TableReader
from genpool.data.yelp_pan import PanReader, YelpReader

__all__ = [
    "READERS",
    "BadRow",
    "Example",
    "HubReader",
    "LinesReader",
    "MultiNliReader",
    "PanReader",
    "Reader",
    "Record",
    "RulesReader",
    "SnliReader",
    "TableReader",
    "YelpReader",
    "open_reader",
    "register",
    "write_submission",
]

READERS.update(
    snli=SnliReader,
    multinli=MultiNliReader,
    yelp=YelpReader,
    age=PanReader,
    table=TableReader,
    hub=HubReader,
    rules=RulesReader,
)
