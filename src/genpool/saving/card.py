"""The model card: the README.md of a saved folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genpool.disk.files import markdown_table

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

    `settings` are by section, `notes` say how the model was made ("title" becomes the heading), and
    `sizes` are the counts "parameters", "table" (of the word table) and "words".
    """
    pooling, encoder = settings["pooling"]["name"], settings["encoder"]["name"]
    what = f"Sentence vectors of a {encoder} encoder with {pooling} pooling, made with genpool."
    if labels:
        what += f" Labels: {', '.join(labels)}."
    made = _table(["", ""], {name: value for name, value in notes.items() if name != "title"})
    return PAGE.format(
        title=notes.get("title", f"{kind}: {encoder}, {pooling} pooling"),
        what=what,
        kind=kind,
        use=USES[kind],
        notes=f"\n## How it was made\n\n{made}\n" if {*notes} - {"title"} else "",
        settings=_table(["part", "settings"], settings),
        **sizes,
    )


def _table(header: Sequence[str], values: Mapping[str, Any]) -> str:
    rows = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} = {entry}" for key, entry in value.items())
        rows.append((name, value))
    return markdown_table(header, rows, text=2)
