"""genpool demo"""

from __future__ import annotations


def demo() -> None:
    """Encode, compare, explain and classify a few sentences with the embedded models.

    Example: genpool demo
    """
    from genpool.jobs.demo import run

    run()
