"""Figure 3: what every head looks at in one sentence, with and without a penalty."""

from __future__ import annotations

from genpool.reproduction.definition import Column, Experiment, Row

#: the sentence of the paper's figure
SENTENCE = (
    'Martin Luther King "I was not afraid of the words of the violent, but of the silence of the '
    'honest"'
)

FIGURE3 = Experiment(
    name="figure3",
    title="Figure 3: what every head looks at",
    columns=(Column("Age", "age"),),
    rows=(
        Row("penalty on attention matrices", "generalized", penalty="attention"),
        Row("no penalty", "generalized"),
    ),
    kind="figure",
)
