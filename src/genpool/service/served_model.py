"""What a service serves, and within what limits: the two arguments of `create_app`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.errors import ConfigError
from genpool.inference.explanation import Explanation, LabelExplanation, PairExplanation
from genpool.inference.quick import QuickEncoder
from genpool.inference.sentence_vectors import map_by_length
from genpool.jobs.tables import load_classifier
from genpool.model import Classifier, SentenceEncoder, load_model
from genpool.search import Hit, SearchIndex
from genpool.tensors.modules import torch_threads

#: a vector (dim,), and the number of tokens that it is of, or of hits that are wanted
CountedVector = tuple[NDArray[np.float32], int]

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


class ExplainedExample(NamedTuple):
    """The explanations of one sentence or two, what they have in common, and the prediction."""

    sentences: list[Explanation]
    pair: PairExplanation | None
    prediction: LabelExplanation | None
    classified: list[Explanation]  # by the classifier, which may be of another model


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

    def encode(self, sentences: Sequence[str]) -> list[CountedVector]:
        """Returns the vectors and the numbers of tokens of sentences, in order."""
        words = self.encoder.text.words_batch(sentences)
        encode, longest = self.quick.encode_tokenized, max(map(len, words))
        # vectors (sentences, output_dim), computed with as many threads as help
        if len(words) > TENSOR_SENTENCES or longest > TENSOR_TOKENS:
            threads = self.quick.threads  # each has its own tensor
            vectors = torch.cat(
                list(map_by_length(words, len, encode, TENSOR_SENTENCES, threads=threads))
            )
        else:
            several = sum(map(len, words)) >= SHARED_TOKENS
            with torch_threads(torch.get_num_threads() if several else 1):  # all on one tensor
                vectors = encode(words)
        return list(zip(vectors.float().cpu().numpy(), map(len, words), strict=True))

    def classify(self, examples: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Returns the probabilities (labels,) of each example, a list of its sentences."""
        classifier = cast(Classifier, self.classifier)
        tokenized = [[classifier.text.words(text) for text in example] for example in examples]
        return list(classifier.predict_tokenized(tokenized))

    def explain(self, examples: Sequence[Sequence[str]]) -> list[ExplainedExample]:
        """Returns what decides the vectors, the similarity and the label of each example."""
        return [self._explain(example) for example in examples]

    def _explain(self, example: Sequence[str]) -> ExplainedExample:
        sentences = [self.encoder.explain(text) for text in example]
        pair = PairExplanation(sentences[0], sentences[1]) if len(sentences) == 2 else None
        classifier = self.classifier
        if classifier is None or classifier.sentences_per_example != len(example):
            return ExplainedExample(sentences, pair, None, [])
        same = classifier.encoder is self.encoder
        classified = sentences if same else [classifier.encoder.explain(text) for text in example]
        prediction = classifier.explain_label(*classified)
        return ExplainedExample(sentences, pair, prediction, classified)

    def search(self, queries: Sequence[CountedVector]) -> list[list[Hit]]:
        """Returns the hits of queries, which share one pass over the index."""
        vectors = np.stack([vector for vector, _ in queries])  # (queries, dim)
        most = max(1, *(top for _, top in queries))
        results = cast(SearchIndex, self.index).search(vectors, most)
        return [hits[:top] for (_, top), hits in zip(queries, results, strict=True)]


@dataclass(frozen=True)
class ServiceSettings:
    """What a service accepts, and when it encodes.

    Args:
        api_key: requests must have the header `Authorization: Bearer KEY`. Default: None, no key.
        max_sentences: sentences of one request. Default: 2,048, as OpenAI's.
        max_characters: characters of one sentence. Default: 20,000.
        max_explain_characters: characters of one sentence to explain. Default: 2,000.
        max_cosines: pairs of sentences in one request for similarities. Default: 65,536.
        max_body_bytes: size of a request. Default: 4 MiB.
        max_buffered_bytes: size of all requests that are being read or answered; beyond it
            requests get the status 503. Default: 64 MiB.
        max_queued_sentences: sentences that wait for their turn; beyond it requests get the status
            503. Default: 8,192.
        batch_sentences: sentences that are encoded together. Default: 256.
        window_seconds: how long a request waits for others to be encoded with. Default: 0.002.
        body_timeout_seconds: how long a client may take to send a request. Default: 30.

    Raises:
        ConfigError: one or several values are not possible.

    Example:
        >>> settings = ServiceSettings(api_key="secret", max_sentences=100)
    """

    api_key: str | None = field(default=None, repr=False)
    max_sentences: int = 2048
    max_characters: int = 20_000
    max_explain_characters: int = 2000
    max_cosines: int = 65_536
    max_body_bytes: int = 4 << 20
    max_buffered_bytes: int = 64 << 20
    max_queued_sentences: int = 8192
    batch_sentences: int = 256
    window_seconds: float = 0.002
    body_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        problems = []
        if self.api_key is not None and (not self.api_key or not self.api_key.isascii()):
            problems.append(
                "api_key is empty or not ASCII; expected a key such as `openssl rand -hex 16`."
            )
        for setting in fields(self)[1:]:
            value = getattr(self, setting.name)
            lowest = 0 if setting.name.endswith("_seconds") else 1
            if value < lowest:
                problems.append(f"{setting.name} is {value}; expected {lowest} or more.")
        if self.max_buffered_bytes < self.max_body_bytes:
            problems.append(
                "max_buffered_bytes is smaller than max_body_bytes; one request must fit."
            )
        if problems:
            raise ConfigError(problems)
