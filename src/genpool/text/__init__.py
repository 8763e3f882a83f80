"""A sentence in; tokens with offsets, and numbers, out."""

from genpool.text.batch import Batch, WordTable
from genpool.text.pipeline import CutReport, TextPipeline
from genpool.text.tokenizer import Token, WordTokenizer, canonical
from genpool.text.vectors import Coverage, WordVectors, read_vectors, vector_table, wanted_words
from genpool.text.vocabulary import Characters, Vocabulary, count_words

__all__ = [
    "Batch",
    "Characters",
    "Coverage",
    "CutReport",
    "TextPipeline",
    "Token",
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
