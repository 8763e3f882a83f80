"""Attentive probes: poolings compared on the token states of a frozen encoder.

>>> from genpool.probing import AttentiveProbe, compare_poolings
>>> probe = AttentiveProbe("embedded", pooling="generalized").fit(texts, labels)
>>> report, probes = compare_poolings((texts, labels), (test_texts, test_labels))

Needs the extra `sklearn`: pip install 'genpool[sklearn]'
"""

from genpool.probing.comparison import HeadWord, PoolingComparison, PoolingResult, compare_poolings
from genpool.probing.estimator import AttentiveProbe
from genpool.probing.token_states import TokenEncoder

__all__ = [
    "AttentiveProbe",
    "HeadWord",
    "PoolingComparison",
    "PoolingResult",
    "TokenEncoder",
    "compare_poolings",
]
