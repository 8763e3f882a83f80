"""What the two classifiers share: an MLP on top of a sentence encoder, and labels by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor

from genpool.classifier import MLP, fit_temperature
from genpool.config import ClassifierSettings, ModelSettings
from genpool.errors import InputError, unknown_name
from genpool.inference.explanation import Explanation, LabelExplanation
from genpool.inference.sentence_vectors import Vectors, evaluation_mode, map_by_length
from genpool.model.sentence_encoder import SentenceEncoder
from genpool.pooling import Pooled
from genpool.progress import progress
from genpool.saving.saved_model import SavedModel
from genpool.text import Batch, TextPipeline
from genpool.text.validation import label_names, read_labels, read_pairs, read_texts

#: the note of a saved model that says what it was trained to predict, and its value for scores
TASK_NOTE, SCORE_TASK = "task", "score"
TEMPERATURE_NOTE = "temperature"


class Classified(NamedTuple):
    """Logits (batch, classes), and the pooled sentences that they were computed from."""

    logits: Tensor
    pooled: Pooled


class Classifier(SavedModel):
    """Base class of the two classifiers: a sentence encoder, an MLP, and labels by name.

    Prediction can run in several threads at once and in any mode: dropout is off inside.

    Args:
        encoder: the sentence encoder, which encodes every sentence of an example.
        labels: two or more different names.
        mlp: from the features of an example to one logit for each label; or the settings of a new
            one. Default: None, one with the sizes of the paper.

    Attributes:
        encoder: the `SentenceEncoder`; its own `encoder.encoder` gives each token its state.
        labels: the names of the classes, in the order of the probabilities.
        mlp: the MLP.
        report: after `fit`, how the training went and the scores on dev; None for a model that was
            loaded.

    Raises:
        InputError: fewer than two labels, one twice, one that is not a string, or an MLP of other
            sizes.
    """

    #: 1 or 2
    sentences_per_example: ClassVar[int]
    #: the width of the MLP's input, in sentence vectors
    vectors_per_example: ClassVar[int]

    def __init__(
        self,
        encoder: SentenceEncoder,
        labels: Sequence[str],
        mlp: MLP | ClassifierSettings | None = None,
    ) -> None:
        super().__init__()
        wrong = isinstance(labels, str) or not all(isinstance(label, str) for label in labels)
        if wrong or not 2 <= len(labels) == len(set(labels)):
            raise InputError(f"labels are {labels!r}; expected two or more different texts.")
        input_dim = self.vectors_per_example * encoder.output_dim
        if not isinstance(mlp, MLP):
            mlp = MLP(input_dim, classes=len(labels), **vars(mlp or ClassifierSettings()))
        sizes = mlp.first.in_features, mlp.output.out_features
        if sizes != (input_dim, len(labels)):
            raise InputError(
                f"the MLP maps {sizes[0]} features to {sizes[1]} classes; expected {input_dim} "
                f"features ({self.vectors_per_example} x {encoder.output_dim}) and {len(labels)}."
            )
        self.labels = tuple(labels)
        self.encoder, self.text, self.mlp = encoder, encoder.text, mlp
        self.report: Any = None

    @classmethod
    def from_settings(cls, text: TextPipeline, settings: ModelSettings, labels: Any = ()) -> Self:
        """Returns the classifier that settings describe, with initial weights."""
        return cls(SentenceEncoder.from_settings(text, settings), labels, settings.classifier)

    @property
    def settings(self) -> ModelSettings:
        """The settings of all parts, read from them."""
        options = {key: value for key, value in self.mlp.options.items() if key != "classes"}
        return replace(self.encoder.settings, classifier=ClassifierSettings(**options))

    def features(self, vectors: Tensor) -> Tensor:
        """Returns the MLP's input for the sentence vectors of a batch."""
        raise NotImplementedError

    def forward(self, batch: Batch, weights: bool = False) -> Classified:
        """Returns logits and pooled sentences of a batch, with gradients, for training.

        Args:
            batch: sentences; of pairs, first all first sentences, then all second ones.
            weights: also return the pooling's weights. Default: False.

        Returns:
            `Classified`: logits (examples, labels), and the `Pooled` sentences.
        """
        pooled = self.encoder(batch, weights)
        return Classified(self.mlp(self.features(pooled.vector)), pooled)

    @classmethod
    def fit(
        cls,
        examples: Iterable[Any],
        labels: Iterable[Any],
        *,
        start: Any = "embedded",
        dev: tuple[Iterable[Any], Iterable[Any]] | None = None,
        task: Literal["label", "score"] = "label",
        freeze: Literal["nothing", "words", "encoder"] = "nothing",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        out: str | Path | None = None,
        settings: Sequence[str] = (),
        show_progress_bar: bool = True,
    ) -> Self:
        """Trains a classifier on examples and their labels, and returns it.

        This is what `genpool train texts` and `genpool train pairs` do with a table: it starts from
        the sentence encoder inside the package, adds the words that it does not know, trains
        encoder and classifier together, and keeps the weights that are best on the dev rows. Ctrl-C
        ends the training early; the best model so far is returned.

        Args:
            examples: texts, as a list, a NumPy array, or a column of pandas or polars; for a
                `PairClassifier` a list of pairs: two columns are joined by
                `list(zip(first, second))`.
            labels: as many labels: strings, whole numbers or booleans. The labels of the model are
                strings: 1 is "1" and True is "true". With task="score", numbers.
            start: the model to start from: "embedded" (the encoder inside the package), the folder
                of a model, a model, or "scratch" for new weights. Default: "embedded".
            dev: examples and labels to choose the best weights on. Default: None, which holds out a
                tenth of the rows.
            task: "label", or "score" to learn numbers; see `predict_score`. Default: "label".
            freeze: the part of the encoder that is not trained: "nothing", the "words", or the
                complete "encoder". Default: "nothing".
            epochs: passes over the rows. Default: None, as many as the number of rows needs.
            batch_size: rows of a step. Default: None, that of the recipe.
            learning_rate: of the classifier; that of the encoder is lower. Default: None, that of
                the recipe.
            seed: decides the rows that are held out, their order, and dropout. Default: 0.
            out: a folder for the run, with its report, as `genpool train` writes it. Default: None,
                which writes nothing.
            settings: further settings of the recipe `texts` or `pairs`, as "section.key=value".
                Default: none.
            show_progress_bar: show progress on standard error. Default: True.

        Returns:
            The model, in evaluation mode; its `report` says how the training went.

        Raises:
            InputError: examples or labels that cannot be used: missing values, other lengths, mixed
                types, or no rows at all.
            DataError: all labels are the same, or there are too few rows to hold some out.
            ConfigError: an unknown setting.
            MissingExtraError: the extra `train` is not installed.

        Example:
            >>> model = TextClassifier.fit(["I love it.", "A waste."] * 20, ["good", "bad"] * 20)
            >>> model.predict(["I love this film."])
            ['good']
            >>> print(model.report)
        """
        from genpool.training.fitting import fit

        values = {
            "start.freeze": freeze,
            "data.task": task,
            "training.epochs": epochs,
            "training.batch_size": batch_size,
            "training.learning_rate": learning_rate,
            "training.seed": seed,
        }
        bar = show_progress_bar
        return cast(Self, fit(cls, examples, labels, start, dev, values, out, settings, bar))

    def predict_proba(
        self, examples: Iterable[Any], batch_size: int = 64, show_progress_bar: bool = False
    ) -> Vectors:
        """Returns the probability of every label for each example.

        Args:
            examples: a list of sentences; for a `PairClassifier` a list of pairs of them.
            batch_size: examples per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            Probabilities (examples, labels), float32, in the order of `labels`; every row sums
            to 1.

        Raises:
            InputError: not a list of strings or pairs of them, or batch_size is below 1.

        Example:
            >>> PairClassifier.from_pretrained().predict_proba([("A man.", "A person.")]).shape
            (1, 3)
        """
        rows = self._rows(examples)
        tokenized = [[self.text.words(text) for text in example] for example in rows]
        return self.predict_tokenized(tokenized, batch_size, show_progress_bar)

    def _rows(self, examples: Any) -> Iterable[Sequence[str]]:
        """Yields the sentences of each example; raises InputError for what is none."""
        raise NotImplementedError

    def predict(
        self, examples: Iterable[Any], batch_size: int = 64, show_progress_bar: bool = False
    ) -> list[str]:
        """Returns the most probable label of each example; see `predict_proba`."""
        probabilities = self.predict_proba(examples, batch_size, show_progress_bar)
        return [self.labels[place] for place in probabilities.argmax(axis=1)]

    def predict_tokenized(
        self,
        examples: list[list[list[str]]],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> Vectors:
        """Returns the probabilities (examples, labels) of examples of tokenized sentences."""

        def run(group: list[list[list[str]]]) -> Tensor:
            # One pass for both sides: first all first sentences, then all second ones.
            sentences = [words for side in zip(*group, strict=True) for words in side]
            with evaluation_mode():
                classified: Classified = self(self.text.batch(sentences).to(self.device))
                return classified.logits.float().softmax(dim=1).cpu()  # (examples, labels)

        def longest(example: list[list[str]]) -> int:
            return max(map(len, example))

        none = torch.zeros(0, len(self.labels))
        with progress("predicting", len(examples), shown=show_progress_bar) as done:
            return torch.cat(
                [none, *map_by_length(examples, longest, run, batch_size, done)]
            ).numpy()

    @property
    def predicts_scores(self) -> bool:
        """Whether the model was trained with task="score"."""
        return self.notes.get(TASK_NOTE) == SCORE_TASK

    def predict_score(
        self, examples: Iterable[Any], batch_size: int = 64, show_progress_bar: bool = False
    ) -> Vectors:
        """Returns the scores (examples,) of a model that was trained with task="score".

        Its labels are evenly spaced numbers; the score is their mean, weighted with the
        probabilities, and so within the range of the training scores. The arguments are those of
        `predict_proba`.

        Raises:
            InputError: a label of the model is not a number, or as in `predict_proba`.

        Example:
            >>> model = PairClassifier.fit(pairs, scores, task="score")
            >>> model.predict_score([("A man sleeps.", "A person rests.")])
        """
        return self.scores_of(self.predict_proba(examples, batch_size, show_progress_bar))

    def scores_of(self, probabilities: Vectors) -> Vectors:
        """Returns the scores (examples,) of probabilities (examples, labels) of the model."""
        try:
            points = np.array([float(label) for label in self.labels], dtype=np.float32)
        except ValueError:
            raise InputError(
                f"the labels of this model are {', '.join(self.labels)}; expected numbers. Only a "
                'model that was trained with task="score" predicts scores.'
            ) from None
        scores: Vectors = probabilities @ points
        return scores

    def calibrate(
        self,
        examples: Iterable[Any],
        labels: Iterable[Any],
        batch_size: int = 64,
        show_progress_bar: bool = False,
    ) -> float:
        """Makes the probabilities fit labelled examples; no predicted label changes.

        The logits are divided by one number, the temperature, which is chosen so that the labels of
        these examples are most probable. The last layer of the MLP is divided by it, so the model
        stays as fast, and is saved and exported as before. `notes["temperature"]` is the
        temperature since training: the product, if a model is calibrated several times.

        Args:
            examples: sentences or pairs that the model was not trained on, a few hundred or more.
            labels: their labels, as `fit` accepts them.
            batch_size: examples per batch; fewer where they are long. Default: 64.
            show_progress_bar: show a bar on standard error. Default: False.

        Returns:
            The temperature: above 1 if the model was too sure, below 1 if it was not sure enough.

        Raises:
            InputError: examples or labels that cannot be used (unknown or missing labels, other
                lengths, none at all); there is no best temperature, because no example is predicted
                wrongly or the labels are no better than chance; or the model predicts scores.

        Example:
            >>> model.calibrate(dev_texts, dev_labels)
            1.62
        """
        if self.predicts_scores:
            raise InputError(
                "the model predicts scores; expected one that was trained to predict labels."
            )
        name = "the calibration labels"
        texts: list[Any] = (read_texts if self.sentences_per_example == 1 else read_pairs)(
            examples, "the calibration examples"
        )
        names = label_names(read_labels(labels, len(texts), name), name)
        for row, label in enumerate(names):
            if label not in self.labels:
                raise InputError(f"{name}: row {row}: {unknown_name('label', label, self.labels)}")
        gold = [self.labels.index(label) for label in names]
        probabilities = self.predict_proba(texts, batch_size, show_progress_bar)
        smallest = np.finfo(np.float32).tiny  # a probability that was rounded to 0 has no logarithm
        temperature = fit_temperature(np.log(np.maximum(probabilities, smallest)), gold)
        with torch.no_grad():
            for weights in (self.mlp.output.weight, self.mlp.output.bias):
                weights.div_(temperature)
        self.notes[TEMPERATURE_NOTE] = self.notes.get(TEMPERATURE_NOTE, 1.0) * temperature
        return temperature

    def explain_label(self, *sides: Explanation) -> LabelExplanation:
        """Returns the label of an explained sentence or pair, and each token's influence on it."""
        vectors = [[side.vectors.vector for side in sides]]  # examples x sides x (output_dim,)
        for place, side in enumerate(sides):
            for without in side.vectors.vector_without:
                vectors.append([*vectors[0][:place], without, *vectors[0][place + 1 :]])
        rows = torch.from_numpy(np.array(vectors)).transpose(0, 1).flatten(0, 1)
        with evaluation_mode():  # rows (sides * examples, output_dim)
            logits: Tensor = self.mlp(self.features(rows.to(self.device, self.dtype)))
        probabilities = logits.double().softmax(dim=1).cpu().numpy()  # (examples, labels)
        label = int(probabilities[0].argmax())
        changes = probabilities[0, label] - probabilities[1:, label]  # (tokens of all sides,)
        ends = np.cumsum([len(side.tokens) for side in sides])[:-1]
        return LabelExplanation(self.labels, probabilities[0], tuple(np.split(changes, ends)))
