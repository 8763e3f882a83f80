"""spaCy: `nlp.add_pipe("genpool")` sets `doc.vector` to the sentence vector (extra `spacy`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from genpool.errors import require_extra
from genpool.integrations.load_encoder import load_encoder

with require_extra("genpool.integrations.spacy", "spacy"):
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["DocVectors", "make_doc_vectors"]


class DocVectors:
    """A component that encodes the text of each document; `doc.similarity` compares the vectors.

    Args:
        model: a folder. Default: None, the encoder inside the package.
        normalize: vectors of length 1. Default: False.
    """

    def __init__(self, model: str | None = None, normalize: bool = False) -> None:
        self.encoder, self.normalize = load_encoder(model), normalize

    def __call__(self, doc: Doc) -> Doc:
        """Sets the vector of a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = 256) -> Iterator[Doc]:
        """Sets the vectors of a stream of documents, `batch_size` at a time."""
        docs = iter(stream)
        while group := list(islice(docs, batch_size)):
            texts = [doc.text for doc in group]
            vectors = self.encoder.encode(texts, normalize_embeddings=self.normalize)
            for doc, vector in zip(group, vectors, strict=True):
                doc.vector = vector
                # Otherwise spaCy looks for a table of word vectors, and warns that there is none.
                doc.user_hooks |= {"has_vector": lambda doc: True, "similarity": _cosine}
                yield doc


def _cosine(doc: Doc, other: Doc) -> float:
    length = doc.vector_norm * other.vector_norm
    return float(doc.vector @ other.vector / length) if length else 0.0


@Language.factory("genpool", assigns=["doc.vector"])
def make_doc_vectors(
    nlp: Language, name: str, model: str | None = None, normalize: bool = False
) -> DocVectors:
    """Makes the component `genpool` of a pipeline.

    Args:
        nlp: the pipeline.
        name: the name of the component.
        model: a folder. Default: None, the encoder inside the package.
        normalize: vectors of length 1. Default: False.

    Example:
        >>> import genpool.integrations.spacy, spacy
        >>> nlp = spacy.blank("en")
        >>> nlp.add_pipe("genpool", config={"normalize": True})
        >>> nlp("A dog runs.").vector.shape
        (384,)
    """
    return DocVectors(model, normalize)
