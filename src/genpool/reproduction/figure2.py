"""Figure 2: dev accuracy over the epochs, scalar and vector attention, 1 to 9 heads, no penalty."""

from __future__ import annotations

from genpool.errors import counted
from genpool.reproduction.definition import Column, Experiment, Row

#: numbers of heads in the paper
HEADS = (1, 3, 5, 7, 9)
FAMILIES = {"vector": "generalized", "scalar": "scalar"}


def _rows() -> tuple[Row, ...]:
    return tuple(
        Row(f"{family}, {counted(heads, 'head')}", system, overrides=(f"pooling.heads={heads}",))
        for family, system in FAMILIES.items()
        for heads in HEADS
    )


FIGURE2 = Experiment(
    name="figure2",
    title="Figure 2: vector and scalar attention with several heads",
    columns=(Column("SNLI", "snli"),),
    rows=_rows(),
    kind="figure",
)
