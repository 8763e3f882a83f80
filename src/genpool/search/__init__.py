"""Semantic search: a folder of vectors and sentences, and the rows nearest to a query."""

from genpool.search.index_card import IndexCard, ModelMark
from genpool.search.index_folder import is_folder_name, writing_index
from genpool.search.search import Hit, SearchIndex

__all__ = [
    "Hit",
    "IndexCard",
    "ModelMark",
    "SearchIndex",
    "is_folder_name",
    "writing_index",
]
