"""The method `fit` of the classifiers. The training itself is `genpool.training`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, cast

#: named and not imported: the training is built on the classifiers
TRAINING = "genpool.training.fitting"

Task = Literal["label", "score"]
Freeze = Literal["nothing", "words", "encoder"]


class FitMethods:
    """What the `fit` of both classifiers share."""

    @classmethod
    def _fit(cls, rows: Any, labels: Any, **options: Any) -> Self:
        train: Callable[..., Any] = import_module(TRAINING).fit
        return cast(Self, train(cls, rows, labels, **options))


class FitTexts(FitMethods):
    """`fit` of a classifier of texts."""

    @classmethod
    def fit(
        cls,
        texts: Iterable[str],
        labels: Iterable[Any],
        *,
        start: Any = "embedded",
        dev: tuple[Iterable[str], Iterable[Any]] | None = None,
        task: Task = "label",
        freeze: Freeze = "nothing",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        out: str | Path | None = None,
        settings: Sequence[str] = (),
        show_progress_bar: bool = True,
    ) -> Self:
        """Trains a classifier on texts and their labels, and returns it.

        This is what `genpool train texts` does with a table: it starts from the sentence encoder
        inside the package, adds the words that it does not know, trains encoder and classifier
        together, and keeps the weights that are best on the dev rows. Ctrl-C ends the training
        early; the best model so far is returned.

        Args:
            texts: a list, a NumPy array, or a column of pandas or polars.
            labels: as many labels: strings, whole numbers or booleans. The labels of the model are
                strings: 1 is "1" and True is "true". With task="score", numbers.
            start: the model to start from: "embedded" (the encoder inside the package), the folder
                of a model, a model, or "scratch" for new weights. Default: "embedded".
            dev: texts and labels to choose the best weights on. Default: None, which holds out a
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
            settings: further settings of the recipe `texts`, as "section.key=value". Default: none.
            show_progress_bar: show progress on standard error. Default: True.

        Returns:
            The model, in evaluation mode; its `report` says how the training went.

        Raises:
            InputError: texts or labels that cannot be used: missing values, other lengths, mixed
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
        return cls._fit(
            texts,
            labels,
            start=start,
            dev=dev,
            task=task,
            freeze=freeze,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            out=out,
            settings=settings,
            show_progress_bar=show_progress_bar,
        )


class FitPairs(FitMethods):
    """`fit` of a classifier of pairs."""

    @classmethod
    def fit(
        cls,
        pairs: Iterable[tuple[str, str]],
        labels: Iterable[Any],
        *,
        start: Any = "embedded",
        dev: tuple[Iterable[tuple[str, str]], Iterable[Any]] | None = None,
        task: Task = "label",
        freeze: Freeze = "nothing",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        out: str | Path | None = None,
        settings: Sequence[str] = (),
        show_progress_bar: bool = True,
    ) -> Self:
        """Trains a classifier on pairs of sentences and their labels, and returns it.

        This is what `genpool train pairs` does with a table, from pairs in memory: paraphrases,
        duplicate questions, inference, or with task="score" similarity.

        Args:
            pairs: a list of pairs; two columns are joined by `list(zip(first, second))`.
            labels: as many labels, or scores with task="score"; as in `TextClassifier.fit`.
            start: as in `TextClassifier.fit`. Default: "embedded".
            dev: pairs and labels to choose the best weights on. Default: None, which holds out a
                tenth of the rows.
            task: "label", or "score" to learn numbers; see `predict_score`. Default: "label".
            freeze: as in `TextClassifier.fit`. Default: "nothing".
            epochs: passes over the rows. Default: None, as many as the number of rows needs.
            batch_size: rows of a step. Default: None, that of the recipe.
            learning_rate: of the classifier. Default: None, that of the recipe.
            seed: decides the rows that are held out, their order, and dropout. Default: 0.
            out: a folder for the run. Default: None, which writes nothing.
            settings: further settings of the recipe `pairs`, as "section.key=value". Default: none.
            show_progress_bar: show progress on standard error. Default: True.

        Returns:
            The model, in evaluation mode; its `report` says how the training went.

        Raises:
            InputError, DataError, ConfigError, MissingExtraError: as in `TextClassifier.fit`.

        Example:
            >>> model = PairClassifier.fit([("A man sleeps.", "A man rests.")] * 9 + ..., labels)
            >>> model.predict([("A dog runs.", "An animal moves.")])
        """
        return cls._fit(
            pairs,
            labels,
            start=start,
            dev=dev,
            task=task,
            freeze=freeze,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            out=out,
            settings=settings,
            show_progress_bar=show_progress_bar,
        )
