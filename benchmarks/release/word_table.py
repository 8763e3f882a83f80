"""An encoder of folded words with other words: more of them, or fewer."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from genpool import SentenceEncoder
from genpool.text import TextPipeline, Vocabulary


def with_word_table(
    encoder: SentenceEncoder, words: Iterable[str], table: Tensor
) -> SentenceEncoder:
    """Returns the encoder with these words, whose vectors are the rows of a table (words, dim)."""
    text = encoder.text
    changed = SentenceEncoder.from_settings(
        TextPipeline(
            text.tokenizer,
            Vocabulary(list(words), folding=text.vocabulary.folding),
            text.characters,
            text.sentence_ends,
            text.max_length,
        ),
        encoder.settings,
    )
    changed.load_state_dict({**encoder.state_dict(), "embedding.words": table})
    changed.notes = dict(encoder.notes)
    return changed.eval()
