"""genpool in sentence-transformers, and so in the libraries that build on it.

>>> from genpool.integrations.sentence_transformers import PoolingModule, load
>>> pooling = PoolingModule(GeneralizedPooling(width, start="mean"))
>>> model = SentenceTransformer(modules=[transformer, pooling])
>>> model.save("my-model")
>>> model = load("my-model")     # also: load("a-genpool-folder")

The names of the modules are written into the modules.json of saved models, and never change.

Needs the extra `st`: pip install 'genpool[st]'
"""

from genpool.errors import require_extra as _require_extra

with _require_extra("genpool.integrations.sentence_transformers", "st"):
    import sentence_transformers as _library  # noqa: F401

from genpool.integrations.sentence_transformers.diversity import DiversityLoss
from genpool.integrations.sentence_transformers.loading import load
from genpool.integrations.sentence_transformers.modules import (
    HeadVectors,
    PoolingModule,
    SentenceEncoderModule,
)

__all__ = ["DiversityLoss", "HeadVectors", "PoolingModule", "SentenceEncoderModule", "load"]
