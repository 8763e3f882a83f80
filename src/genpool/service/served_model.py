"""What a service serves: an encoder, and perhaps a classifier and an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import map_by_length
from genpool.jobs.tables import load_classifier
from genpool.model import Classifier, SentenceEncoder, load_model
from genpool.search import SearchIndex
from genpool.tensors.threads import torch_threads

#: the name of the models inside the package
EMBEDDED_NAME = "genpool-embedded"
#: sentences of similar length that are one tensor
TENSOR_SENTENCES = 64
#: tokens of a sentence up to which any others can be in one tensor with it
TENSOR_TOKENS = 128
#: tokens of a tensor from which several threads are quicker than one
SHARED_TOKENS = 64
#: words whose products are kept: a service must not grow with every word that clients invent
TABLE_WORDS = 10_000


class EncodedSentence(NamedTuple):
    """The vector of a sentence (output_dim,), and the number of its tokens that were read."""

    vector: NDArray[np.float32]
    tokens: int


class ExplainedExample(NamedTuple):
    """The explanations of one sentence or two, what they have in common, and the prediction.

    The classifier may be another model than the encoder; `classified` has its tokens.
    """

    sentences: list[Explanation]
    pair: PairExplanation | None
    prediction: LabelExplanation | None
    classified: list[Explanation]


@dataclass
class ServedModel:
    """The models of one service. Its methods are called by one thread at a time.

    Args:
        encoder: makes the vectors.
        classifier: predicts labels. Default: None.
        index: sentences to search, encoded by `encoder`. Default: None.
        name: what clients call the model. Default: "genpool-embedded".

    Example:
        >>> model = ServedModel.load("runs/rules/best")
        >>> app = create_app(model)
    """

    encoder: SentenceEncoder
    classifier: Classifier | None = None
    index: SearchIndex | None = None
    name: str = EMBEDDED_NAME
    quick: QuickEncoder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.index is not None:
            self.index.require_model(self.encoder)
        self.quick = QuickEncoder(self.encoder, TABLE_WORDS)

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        classifier: str | Path | None = None,
        index: str | Path | None = None,
    ) -> Self:
        """Loads the models of a service.

        Args:
            model: a folder of an encoder or of a classifier, whose encoder makes the vectors.
                Default: None, the encoder inside the package, with its NLI classifier.
            classifier: a folder of another classifier. Default: None, that of `model`.
            index: a folder made by `genpool encode -o FOLDER/`. Default: None, no search.

        Raises:
            FolderError: a folder is missing, damaged, or not what it should be.
            InputError: the index was made with another model.

        Example:
            >>> ServedModel.load().name
            'genpool-embedded'
        """
        opened = None if index is None else SearchIndex.open(index)
        if model is None:
            return cls(SentenceEncoder.from_pretrained(), load_classifier(classifier), opened)
        loaded = load_model(model)
        labels = loaded if isinstance(loaded, Classifier) else None
        encoder = loaded if isinstance(loaded, SentenceEncoder) else loaded.encoder
        if classifier is not None:
            labels = load_classifier(classifier)
        return cls(encoder, labels, opened, Path(model).resolve().name)

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Returns the vectors and the numbers of tokens of sentences, in order."""
        words = self.encoder.text.words_batch(sentences)
        vectors = self._encode_words(words).float().cpu().numpy()  # (sentences, output_dim)
        return [EncodedSentence(*pair) for pair in zip(vectors, map(len, words), strict=True)]

    def _encode_words(self, words: Sequence[Sequence[str]]) -> Tensor:
        """Returns the vectors (sentences, output_dim), computed with as many threads as help."""
        encode, longest = self.quick.encode_tokenized, max(map(len, words))
        if len(words) > TENSOR_SENTENCES or longest > TENSOR_TOKENS:
            threads = self.quick.threads  # each has its own tensor
            return torch.cat(
                list(map_by_length(words, len, encode, TENSOR_SENTENCES, threads=threads))
            )
        several = sum(map(len, words)) >= SHARED_TOKENS
        with torch_threads(torch.get_num_threads() if several else 1):  # all on one tensor
            return encode(words)

    def classify(self, examples: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Returns the probabilities (labels,) of each example, a list of its sentences."""
        classifier = self.required_classifier
        tokenized = [[classifier.text.words(text) for text in example] for example in examples]
        return list(classifier.predict_tokenized(tokenized))

    def explain(self, example: Sequence[str]) -> ExplainedExample:
        """Returns what decides the vectors of one sentence or two, their similarity and label."""
        sentences = [self.encoder.explain(text) for text in example]
        pair = PairExplanation(sentences[0], sentences[1]) if len(sentences) == 2 else None
        classifier = self.classifier
        if classifier is None or classifier.sentences_per_example != len(example):
            return ExplainedExample(sentences, pair, None, [])
        same = classifier.encoder is self.encoder
        classified = sentences if same else [classifier.encoder.explain(text) for text in example]
        prediction = classifier.explain_label(*classified)
        return ExplainedExample(sentences, pair, prediction, classified)

    @property
    def required_classifier(self) -> Classifier:
        """The classifier of a service that has one."""
        if self.classifier is None:
            raise RuntimeError("this service has no classifier")
        return self.classifier

    @property
    def required_index(self) -> SearchIndex:
        """The index of a service that has one."""
        if self.index is None:
            raise RuntimeError("this service has no index")
        return self.index
