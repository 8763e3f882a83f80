"""The page that a person sees who opens an exported folder."""

from __future__ import annotations

from collections.abc import Sequence

from genpool.model import SentenceEncoder

INPUTS = {
    "word_ids": "| `word_ids` | int64 (batch, time) | number of each token in `tokenizer.json`: as "
    "it stands, else in lower case, else 1; with `sentence_ends` in `config.json`, 2 before and 3 "
    "after each sentence |",
    "letters": "| `letters` | int64 (batch, time, longest word) | number of each letter: its place "
    "in `characters` of `config.json` plus 4, 1 for any other, 0 for none; the ends are the "
    "letters 2 and 3 |",
    "mask": "| `mask` | bool (batch, time) | true at real tokens; padding may stand anywhere |",
    "input_ids": "| `input_ids` | int64 (batch, time) | numbers of the tokens |",
    "attention_mask": "| `attention_mask` | int64 (batch, time) | 1 at real tokens, 0 at padding |",
    "token_type_ids": "| `token_type_ids` | int64 (batch, time) | 0 for single sentences |",
}
USE = """
## Use

```python
from genpool.integrations.onnx import OnnxEncoder

model = OnnxEncoder.from_pretrained("path/to/this/folder")
vectors = model.encode(["A man sleeps.", "A person rests."])
```
"""
PAGE = """---
library_name: genpool
tags: [sentence-embedding, onnx]
---
# {title}

The whole model as one ONNX graph, made with genpool: numbers of tokens in, sentence vectors out.
{use}
## The graph

`model.onnx`, for onnxruntime or another program that runs ONNX.

| input | type and shape | what |
|---|---|---|
{inputs}

Output: `sentence_embedding`, float32 (batch, {output_dim}). A sentence without tokens gives zeros.
Batch and length are free, from 1 on.

Compared with PyTorch when it was made: {checked}.
"""


def page(
    title: str,
    inputs: Sequence[str],
    output_dim: int,
    int8: bool,
    difference: float,
    use: str = "",
) -> str:
    """difference: the largest that the check found, as `check_graph` measures it."""
    checked = (
        f"8-bit weights, the smallest cosine was {1 - difference:.5f}"
        if int8
        else f"the largest difference was {difference:.1e}"
    )
    return PAGE.format(
        title=title,
        use=use,
        inputs="\n".join(INPUTS[each] for each in inputs),
        output_dim=output_dim,
        checked=checked,
    )


def sentence_card(
    model: SentenceEncoder, inputs: Sequence[str], int8: bool, difference: float
) -> str:
    settings = model.settings
    title = f"{settings.encoder.name}, {settings.pooling.name} pooling, as ONNX"
    given = model.notes.get("title")
    title = f"{given}, as ONNX" if given else title
    return page(title, inputs, model.output_dim, int8, difference, USE)
