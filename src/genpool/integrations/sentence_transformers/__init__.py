"""genpool in sentence-transformers, and so in the libraries that build on it.

>>> from genpool.integrations.sentence_transformers import GeneralizedPooling, load
>>> model = SentenceTransformer(modules=[transformer, GeneralizedPooling(width, start="mean")])
>>> model.save("my-model")
>>> model = load("my-model")     # also: load("a-genpool-folder")

The names of the modules are written into the modules.json of saved models, and never change.

Needs the extra `st`: pip install 'genpool[st]'
"""

from genpool.errors import require_extra as _require_extra

with _require_extra("genpool.integrations.sentence_transformers", "st"):
    import sentence_transformers as _library  # noqa: F401

from genpool.integrations.sentence_transformers.diversity import DiversityLoss
from genpool.integrations.sentence_transformers.encoder import SentenceEncoderModule
from genpool.integrations.sentence_transformers.heads import HeadVectors
from genpool.integrations.sentence_transformers.loading import load
from genpool.integrations.sentence_transformers.pooling import GeneralizedPooling

__all__ = ["DiversityLoss", "GeneralizedPooling", "HeadVectors", "SentenceEncoderModule", "load"]
