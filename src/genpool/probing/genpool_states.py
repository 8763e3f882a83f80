"""Token states of genpool's own encoders: what their pooling receives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from genpool.inference.sentence_vectors import evaluation_mode
from genpool.model import SentenceEncoder
from genpool.probing.token_encoder import StateArray, TokenEncoder, as_stored
from genpool.search.index_card import fingerprint
from genpool.tensors.packing import Packing
from genpool.text import Token
from genpool.text.vocabulary import BEGIN, END


class GenpoolTokenEncoder(TokenEncoder):
    """The states of a `SentenceEncoder`, before its pooling.

    Args:
        encoder: the model; it is not changed.
        reference: where it was loaded from. Default: None, not known.
    """

    layers = 1

    def __init__(self, encoder: SentenceEncoder, reference: str | None = None) -> None:
        self.encoder, self.reference = encoder, reference
        self.dim = encoder.encoder.output_dim
        self.bidirectional = encoder.encoder.bidirectional

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of all that the states depend on."""
        return fingerprint(self.encoder)

    def states(self, texts: Sequence[str]) -> list[StateArray]:
        """Returns the states (tokens, 1, dim) of every text, in half precision."""
        model = self.encoder
        batch = model.text.batch(model.text.words_batch(texts)).to(model.device)
        packing = Packing.from_mask(batch.mask)
        with evaluation_mode():
            rows = model.embedding.rows(batch, packing)  # (rows, embedding)
            states, _ = model.encoder.encode_rows(rows, packing, False)  # (rows, dim)
            aligned = packing.align(states).float().cpu().numpy()  # (batch, longest, dim)
        lengths = batch.mask.sum(dim=1).tolist()
        return [
            as_stored(text[:length, None]) for text, length in zip(aligned, lengths, strict=True)
        ]

    def tokens(self, text: str) -> list[Token]:
        """Returns the words of a text, with the begin and end tokens where the model has them."""
        tokens = self.encoder.text.tokens(text)
        if not self.encoder.text.sentence_ends:
            return tokens
        names = self.encoder.text.vocabulary.words
        return [Token(names[BEGIN], -1, -1), *tokens, Token(names[END], -1, -1)]
