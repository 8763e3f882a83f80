"""genpool demo"""

from __future__ import annotations


def demo() -> None:
    """Train a small model on generated sentences, then encode, compare, explain and classify.

    Example: genpool demo
    """
    from genpool.demo import run

    run()
