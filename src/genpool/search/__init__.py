"""Semantic search: a folder of vectors and sentences, and the rows nearest to a query."""

from genpool.model.reference import ModelReference
from genpool.search.index_card import IndexCard
from genpool.search.index_folder import build_lists, delete_rows, index_writer, is_folder_name
from genpool.search.search import Hit, SearchIndex

__all__ = [
    "Hit",
    "IndexCard",
    "ModelReference",
    "SearchIndex",
    "build_lists",
    "delete_rows",
    "index_writer",
    "is_folder_name",
]
