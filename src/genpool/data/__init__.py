"""Readers of data sets: official files, tables and the hub, as a stream of examples."""

from genpool.data.base import Reader
from genpool.data.example import Example
from genpool.data.hub import HubReader
from genpool.data.lines import LinesReader
from genpool.data.multinli import MultiNliReader, write_submission
from genpool.data.pan import PanReader
from genpool.data.readers import READERS, open_reader
from genpool.data.rules.reader import RulesReader
from genpool.data.snli import SnliReader
from genpool.data.splits import draw_parts, seeded_order, stratified_share
from genpool.data.table import TableReader
from genpool.data.yelp import YelpReader

__all__ = [
    "READERS",
    "Example",
    "HubReader",
    "LinesReader",
    "MultiNliReader",
    "PanReader",
    "Reader",
    "RulesReader",
    "SnliReader",
    "TableReader",
    "YelpReader",
    "draw_parts",
    "open_reader",
    "seeded_order",
    "stratified_share",
    "write_submission",
]
