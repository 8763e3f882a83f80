"""What each head of a model looked at in a sentence."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.pooling import Pooled
from genpool.text import Token

SHADES = " ░▒▓█"

WORD = (
    '<span style="background:rgba(24,90,189,{alpha:.2f});color:{ink}" title="{weight:.3f}">'
    "{word}</span> "
)

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>What each head looks at</title>
<style>
body {{ font: 17px/1.5 system-ui, sans-serif; margin: 2.5rem; color: #1c2430; max-width: 60rem }}
h1 {{ font-size: 1.3rem }} th {{ text-align: left; font-weight: 500; color: #67707c }}
th, td {{ padding: .45rem 1.2rem .45rem 0; vertical-align: top }} th {{ white-space: nowrap }}
span {{ padding: .1rem .3rem; border-radius: .25rem; display: inline-block }}
p {{ color: #67707c }}
</style>
<h1>What each head looks at</h1>
<p>{sentence}</p>
<table>
{rows}
</table>
<p>The darker a word, the more of the head's vector it gave (mean over the dimensions; point at a
word for its weight).</p>
</html>
"""


@dataclass(frozen=True)
class Explanation:
    """The weights that a sentence's vector was made with.

    tokens      the words with their places; begin and end tokens, if any, have the place (-1, -1)
    weights     (heads, tokens, dim or 1): what each token gave to each dimension of each head
    token_weights  (heads, tokens): the mean over the dimensions; every row sums to 1
    """

    sentence: str
    tokens: list[Token]
    weights: NDArray[np.float32]

    @property
    def token_weights(self) -> NDArray[np.float32]:
        means: NDArray[np.float32] = self.weights.mean(axis=2)
        return means

    def __str__(self) -> str:
        """A table: a line per token, a column per head; the darkest cell is a head's top token."""
        if not self.tokens:
            return "(no tokens)"
        shares = self.token_weights
        width = max(len(token.text) for token in self.tokens)
        titles = "".join(f"{f'head {head + 1}':>10}" for head in range(len(shares)))
        lines = [f"{'':{width}}{titles}"]
        for number, token in enumerate(self.tokens):
            cells = [_cell(row[number], row.max()) for row in shares]
            lines.append(f"{token.text:{width}}{''.join(cells)}".rstrip())
        return "\n".join(lines)

    def to_html(self) -> str:
        """A page: the sentence once per head, each word the darker the more weight it has."""
        shares = self.token_weights
        rows = []
        for head, row in enumerate(shares, start=1):
            largest = float(row.max(initial=0.0)) or 1.0
            words = "".join(
                WORD.format(
                    word=html.escape(token.text),
                    alpha=0.85 * float(weight) / largest,
                    ink="#fff" if weight > 0.8 * largest else "#1c2430",
                    weight=float(weight),
                )
                for token, weight in zip(self.tokens, row, strict=True)
            )
            rows.append(f"<tr><th>head {head}</th><td>{words or '(no tokens)'}</td></tr>")
        return PAGE.format(sentence=html.escape(self.sentence), rows="\n".join(rows))


def _cell(weight: float, largest: float) -> str:
    shade = SHADES[round(float(weight / largest) * (len(SHADES) - 1))] if largest > 0 else SHADES[0]
    return f"{weight:8.3f} {shade}"


def pooling_weights(states: Tensor, pool: Callable[[Tensor], Pooled]) -> Tensor:
    """(batch, heads, time, dim or 1): the pooling's weights, also of poolings that return none.

    A dimension of a max, mean or last vector depends on the same dimension of the states alone,
    and linearly: its derivative by each token's state is that token's weight.
    """
    with torch.enable_grad():
        free = states.detach().requires_grad_()
        pooled = pool(free)
        if pooled.weights is not None:
            return pooled.weights.detach()
        if not free.numel():
            return free.detach().unsqueeze(1).expand(-1, pooled.heads.shape[1], -1, -1)
        weights = [
            torch.autograd.grad(head.sum(), free, retain_graph=True)[0]  # (batch, time, dim)
            for head in pooled.heads.unbind(dim=1)
        ]
    return torch.stack(weights, dim=1)
