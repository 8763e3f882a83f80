"""From a sentence to tokens with offsets, and to the ids of its words and characters."""

from genpool.text.batch import Batch, WordTable
from genpool.text.pipeline import TextPipeline, TruncationReport
from genpool.text.tokenizer import Token, WordTokenizer, canonical
from genpool.text.vectors import Coverage, WordVectors, read_vectors, vector_table, wanted_words
from genpool.text.vocabulary import Characters, Vocabulary, count_words

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
    "count_words",
    "read_vectors",
    "vector_table",
    "wanted_words",
]
