"""The model card: the page that a person sees who opens a saved folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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

| part | settings |
|---|---|
{settings}

{parameters:,} numbers, of which the word table has {table:,}. Vocabulary: {words:,} words.

This folder holds no code and no pickle: `config.json`, `model.safetensors`, `tokenizer.json`.

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
    """sizes: parameters, table and words, as numbers."""
    pooling, encoder = settings["pooling"]["name"], settings["encoder"]["name"]
    what = f"Sentence vectors of a {encoder} encoder with {pooling} pooling, made with genpool."
    if labels:
        what += f" Labels: {', '.join(labels)}."
    rows = [f"| {part} | {_listed(values)} |" for part, values in settings.items()]
    return PAGE.format(
        title=notes.get("title", f"{kind}: {encoder}, {pooling} pooling"),
        what=what,
        kind=kind,
        use=USES[kind],
        notes=_notes(notes),
        settings="\n".join(rows),
        **sizes,
    )


def _in_cell(value: object) -> str:
    """Text that stays within its cell of a table."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def _notes(notes: Mapping[str, Any]) -> str:
    rows = [
        f"| {_in_cell(key)} | {_in_cell(value)} |" for key, value in notes.items() if key != "title"
    ]
    if not rows:
        return ""
    return "\n## How it was made\n\n| | |\n|---|---|\n" + "\n".join(rows) + "\n"
