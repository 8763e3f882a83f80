"""genpool as estimators of scikit-learn: sentence vectors, fine-tuning, and probes.

>>> from genpool.integrations.sklearn import GenpoolClassifier, SentenceVectorizer
>>> make_pipeline(SentenceVectorizer(), LogisticRegression()).fit(texts, labels)
>>> cross_val_score(GenpoolClassifier(), texts, labels)

Needs the extra `sklearn`: pip install 'genpool[sklearn]'
"""

from genpool.errors import require_extra as _require_extra

with _require_extra("genpool.integrations.sklearn", "sklearn"):
    import sklearn as _sklearn  # noqa: F401

from genpool.integrations.sklearn.classifier import GenpoolClassifier
from genpool.integrations.sklearn.vectorizer import SentenceVectorizer
from genpool.probing import AttentiveProbe

__all__ = ["AttentiveProbe", "GenpoolClassifier", "SentenceVectorizer"]
