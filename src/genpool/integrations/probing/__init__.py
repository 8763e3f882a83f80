"""Attentive probes: poolings compared on the token states of a frozen encoder.

>>> from genpool.integrations.probing import AttentiveProbe, compare_poolings
>>> probe = AttentiveProbe("embedded", pooling="generalized").fit(texts, labels)
>>> report, probes = compare_poolings((texts, labels), (test_texts, test_labels))

Needs the extra `sklearn`: pip install 'genpool[sklearn]'
"""

from genpool.integrations.probing.comparison import (
    HeadWord,
    PoolingComparison,
    PoolingResult,
    compare_poolings,
)
from genpool.integrations.probing.estimator import AttentiveProbe
from genpool.integrations.probing.token_states import TokenEncoder

__all__ = [
    "AttentiveProbe",
    "HeadWord",
    "PoolingComparison",
    "PoolingResult",
    "TokenEncoder",
    "compare_poolings",
]
