"""The weights that each head of a model gave to the tokens of a sentence."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.pooling import Pooled
from genpool.tensors.packing import Packing
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
<p>The darker a word, the larger its weight in the head's vector (mean over the dimensions; point at
a word for its weight).</p>
</html>
"""


@dataclass(frozen=True)
class Explanation:
    """The weights that a sentence's vector was pooled with, from `SentenceEncoder.explain`.

    `print(explanation)` shows a table, `to_html()` returns a page.

    Attributes:
        sentence: the sentence, unchanged.
        tokens: its words with their offsets; begin and end tokens, if any, have offsets (-1, -1).
        weights: (heads, tokens, dim), the weight of each token in each dimension of each head; the
            last dimension is 1 for scalar attention. Over the tokens they sum to 1.
        token_weights: (heads, tokens), the mean of the weights over the dimensions.

    Example:
        >>> explanation = model.explain("A man sleeps.")
        >>> top = explanation.token_weights[0].argmax()   # of the first head
        >>> explanation.tokens[top].text
    """

    sentence: str
    tokens: list[Token]
    weights: NDArray[np.float32]

    @property
    def token_weights(self) -> NDArray[np.float32]:
        """(heads, tokens): the mean of the weights over the dimensions; every row sums to 1."""
        means: NDArray[np.float32] = self.weights.mean(axis=2)
        return means

    def __str__(self) -> str:
        """Returns a table: a line per token, a column per head; the top token's cell is darkest."""
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
        """Returns an HTML page: the sentence once per head, words with more weight are darker.

        Example:
            >>> Path("heads.html").write_text(explanation.to_html(), encoding="utf-8")
        """
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


def pooling_weights(states: Tensor, packing: Packing, pool: Callable[[Tensor], Pooled]) -> Tensor:
    """Returns the weights (batch, heads, time, dim or 1) of any pooling, also of max and mean.

    A dimension of a max, mean or last vector depends on the same dimension of the states alone,
    and linearly: its derivative by each token's state is that token's weight.

    Args:
        states: packed states (rows, dim).
        packing: where the rows belong.
        pool: pools packed states, with weights if the pooling has them.
    """
    with torch.enable_grad():
        rows = states.detach().requires_grad_()
        pooled = pool(rows)
        if pooled.weights is not None:
            return pooled.weights.detach()
        if not rows.numel():
            batch, heads, dim = pooled.heads.shape
            return rows.new_zeros(batch, heads, packing.shape[1], dim)
        gradients = [
            torch.autograd.grad(head.sum(), rows, retain_graph=True)[0]  # (rows, dim)
            for head in pooled.heads.unbind(dim=1)
        ]
    return torch.stack([packing.unpack(gradient) for gradient in gradients], dim=1)
