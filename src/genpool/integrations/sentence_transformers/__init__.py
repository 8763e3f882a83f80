"""genpool inside sentence-transformers (extra: st), and so inside what builds on it.

>>> from genpool.integrations.sentence_transformers import GeneralizedPooling, load
>>> model = SentenceTransformer(modules=[transformer, GeneralizedPooling(width, start="mean")])
>>> model.save("my-model")
>>> model = load("my-model")     # also: load("a-genpool-folder")

The names of the modules stand in the modules.json of saved models, and so never change.
"""

from genpool.integrations.sentence_transformers import _extra  # noqa: F401 (asks first)
from genpool.integrations.sentence_transformers.diversity import DiversityLoss
from genpool.integrations.sentence_transformers.encoder import SentenceEncoderModule
from genpool.integrations.sentence_transformers.heads import HeadVectors
from genpool.integrations.sentence_transformers.loading import load
from genpool.integrations.sentence_transformers.pooling import GeneralizedPooling

__all__ = ["DiversityLoss", "GeneralizedPooling", "HeadVectors", "SentenceEncoderModule", "load"]
