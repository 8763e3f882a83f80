"""The README.md of an exported folder."""

from __future__ import annotations

from collections.abc import Sequence

from genpool.model import SentenceEncoder

INPUTS = {
    "word_ids": "| `word_ids` | int64 (batch, time) | id of each token in `tokenizer.json`: of the "
    "token {form}, else 1; with `sentence_ends` in `config.json`, 2 before and 3 after each "
    "sentence |",
    "letters": "| `letters` | int64 (batch, time, longest word) | {letters} |",
    "mask": "| `mask` | bool (batch, time) | true at real tokens; padding may be anywhere |",
    "input_ids": "| `input_ids` | int64 (batch, time) | ids of the tokens |",
    "attention_mask": "| `attention_mask` | int64 (batch, time) | 1 at real tokens, 0 at padding |",
    "token_type_ids": "| `token_type_ids` | int64 (batch, time) | 0 for single sentences |",
}
CHARACTERS = (
    "ids of the characters of each token: the position in `characters` of `config.json` plus 4, 1 "
    "for any other character, 0 for none; the begin and end tokens have the characters 2 and 3"
)
NGRAMS = (
    "for a token without an entry, ids of its n-grams: 4 + CRC-32 (of UTF-8) modulo "
    "`ngram_buckets`, of `<word>` (the first 40 characters of the folded form) and of all its "
    "parts of `ngram_sizes` characters, each once; 0 for none, and for tokens with an entry. Both "
    "settings are in `config.json`"
)
#: how a token is looked up
FOLDED = (
    "in its folded form: without characters of no width, curly quotes and dashes as in ASCII, "
    "NFKC, then NFKD without combining marks, lower case (`folded` of `genpool.text.tokenizer`)"
)
AS_WRITTEN = "as written"
LOWER_CASE = "as written, else of its lower-case form"
USE = """
## Use

```python
from genpool.integrations.onnx import OnnxEncoder

model = OnnxEncoder.from_pretrained("path/to/this/folder")
vectors = model.encode(["A man sleeps.", "A person rests."])
```

`OnnxEncoder` makes the inputs of the graph from sentences. The tokenizer of `tokenizer.json` only
splits them: the ids are looked up as the table below says.
"""
PAGE = """---
library_name: genpool
tags: [sentence-embedding, onnx]
---
# {title}

The model as one ONNX graph, exported by genpool: token ids in, sentence vectors out.
{use}
## The graph

`model.onnx`, for onnxruntime or another runtime for ONNX.

| input | type and shape | content |
|---|---|---|
{inputs}

Output: `sentence_embedding`, float32 (batch, {output_dim}). A sentence without tokens has a vector
of zeros. Batch size and length are dynamic, from 1 upwards.

Compared with PyTorch at the export: {checked}.
"""


def export_card(
    title: str,
    inputs: Sequence[str],
    output_dim: int,
    int8: bool,
    difference: float,
    use: str = "",
    form: str = AS_WRITTEN,
    letters: str = CHARACTERS,
) -> str:
    """Returns the page of an exported folder.

    Args:
        title: its heading.
        inputs: names of the inputs of the graph.
        output_dim: dimensions of a vector.
        int8: whether the weights have 8 bits.
        difference: the largest that the check found (`check_graph`).
        use: how it is used from Python. Default: nothing.
        form: in which form tokens are looked up. Default: as they are written.
        letters: the content of the input `letters`. Default: characters.
    """
    checked = (
        f"8-bit weights, the smallest cosine was {1 - difference:.5f}"
        if int8
        else f"the largest difference was {difference:.1e}"
    )
    return PAGE.format(
        title=title,
        use=use,
        inputs="\n".join(INPUTS[name] for name in inputs).format(form=form, letters=letters),
        output_dim=output_dim,
        checked=checked,
    )


def sentence_card(
    model: SentenceEncoder, inputs: Sequence[str], int8: bool, difference: float
) -> str:
    """Returns the page of an exported sentence encoder."""
    settings = model.settings
    title = model.notes.get("title") or (
        f"{settings.encoder.name}, {settings.pooling.name} pooling"
    )
    return export_card(
        f"{title}, as ONNX",
        inputs,
        model.output_dim,
        int8,
        difference,
        USE,
        _form(model),
        CHARACTERS if model.text.characters.spells_known else NGRAMS,
    )


def _form(model: SentenceEncoder) -> str:
    vocabulary = model.text.vocabulary
    if vocabulary.folding:
        return FOLDED
    return LOWER_CASE if vocabulary.lower_case_fallback else AS_WRITTEN
