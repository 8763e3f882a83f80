"""Numbers of words and letters in, token vectors out."""

from genpool.embedding.characters import CharacterCNN
from genpool.embedding.token import TokenEmbedding

__all__ = ["CharacterCNN", "TokenEmbedding"]
