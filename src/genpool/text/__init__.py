"""From a sentence to tokens with offsets, and to the ids of its words and characters."""

from genpool.text.pipeline import Batch, TextPipeline, TruncationReport, WordTable
from genpool.text.tokenizer import Token, WordTokenizer, canonical
from genpool.text.vectors import Coverage, WordVectors, read_vectors, vector_table, wanted_words
from genpool.text.vocabulary import Characters, Vocabulary

__all__ = [
    "Batch",
    "Characters",
    "Coverage",
    "TextPipeline",
    "Token",
    "TruncationReport",
    "Vocabulary",
    "WordTable",
    "WordTokenizer",
    "WordVectors",
    "canonical",
    "read_vectors",
    "vector_table",
    "wanted_words",
]
