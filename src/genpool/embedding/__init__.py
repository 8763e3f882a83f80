"""From the ids of words and characters to token vectors."""

from genpool.embedding.characters import CharacterCNN
from genpool.embedding.token import NgramTable, TokenEmbedding

__all__ = ["CharacterCNN", "NgramTable", "TokenEmbedding"]
