"""From the ids of words and characters to token vectors."""

from genpool.embedding.characters import CharacterCNN
from genpool.embedding.token import TokenEmbedding

__all__ = ["CharacterCNN", "TokenEmbedding"]
