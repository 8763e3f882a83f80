"""genpool: the token states of a sentence, as one vector.

>>> from genpool import SentenceEncoder
>>> model = SentenceEncoder.from_pretrained("my-model")
>>> model.encode(["A man sleeps.", "A person rests."])
"""

from genpool import pooling
from genpool.errors import GenpoolError
from genpool.model import PairClassifier, SentenceEncoder, TextClassifier

__version__ = "0.1.0"

__all__ = [
    "GenpoolError",
    "PairClassifier",
    "SentenceEncoder",
    "TextClassifier",
    "__version__",
    "pooling",
]
