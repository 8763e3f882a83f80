"""The model card: the README.md of a saved folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genpool.disk.markdown import markdown_table

USES = {
    "SentenceEncoder": """vectors = model.encode(["A man sleeps.", "A person rests."])
print(model.similarity(vectors, vectors))""",
    "TextClassifier": 'print(model.predict(["A man sleeps."]))',
    "PairClassifier": 'print(model.predict([("A man sleeps.", "A person rests.")]))',
}

PAGE = """---
library_name: genpool
tags: [sentence-embedding, generalized-pooling]
---
# {title}

{what}

## Use

```python
from genpool import {kind}

model = {kind}.from_pretrained("path/to/this/folder")
{use}
```
{notes}
## Inside

{settings}

{parameters:,} parameters, {table:,} of them in the word table. Vocabulary: {words:,} words.

This folder contains no code and no pickle: `config.json`, `model.safetensors`, `tokenizer.json`.

## Cite

Qian Chen, Zhen-Hua Ling, Xiaodan Zhu. Enhancing Sentence Embedding with Generalized Pooling.
COLING 2018.
"""


def model_card(
    kind: str,
    settings: Mapping[str, Any],
    labels: Sequence[str],
    notes: Mapping[str, Any],
    sizes: Mapping[str, int],
) -> str:
    """Returns the card of a model.

    Args:
        kind: the class of the model.
        settings: its settings, by section.
        labels: the labels of a classifier; empty for an encoder.
        notes: how the model was made; "title" becomes the heading.
        sizes: the counts "parameters", "table" (parameters of the word table) and "words".
    """
    pooling, encoder = settings["pooling"]["name"], settings["encoder"]["name"]
    what = f"Sentence vectors of a {encoder} encoder with {pooling} pooling, made with genpool."
    if labels:
        what += f" Labels: {', '.join(labels)}."
    rows = [(section, _listed(values)) for section, values in settings.items()]
    return PAGE.format(
        title=notes.get("title", f"{kind}: {encoder}, {pooling} pooling"),
        what=what,
        kind=kind,
        use=USES[kind],
        notes=_notes(notes),
        settings=markdown_table(["part", "settings"], rows, text=2),
        **sizes,
    )


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _notes(notes: Mapping[str, Any]) -> str:
    rows = [
        (name, _listed(value) if isinstance(value, Mapping) else value)
        for name, value in notes.items()
        if name != "title"
    ]
    if not rows:
        return ""
    return f"\n## How it was made\n\n{markdown_table(['', ''], rows, text=2)}\n"
