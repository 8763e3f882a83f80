"""The method `calibrate` of the classifiers: probabilities that are as sure as they are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from genpool.classifier.mlp import MLP
from genpool.classifier.score_methods import ScoreMethods
from genpool.classifier.temperature import fit_temperature
from genpool.errors import InputError, unknown_name
from genpool.text.validation import label_names, read_labels, read_pairs, read_texts

#: the note of a saved model that contains its temperature
TEMPERATURE_NOTE = "temperature"


class CalibrationMethods(ScoreMethods):
    """What makes the probabilities of a classifier reliable."""

    mlp: MLP
    sentences_per_example: int

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
        read: Callable[[Any, str], list[Any]]
        read = read_texts if self.sentences_per_example == 1 else read_pairs
        texts, name = read(examples, "the calibration examples"), "the calibration labels"
        names = label_names(read_labels(labels, len(texts), name), name)
        gold = [self._index(label, number) for number, label in enumerate(names)]
        probabilities = self.predict_proba(texts, batch_size, show_progress_bar)
        smallest = np.finfo(np.float32).tiny  # a probability that was rounded to 0 has no logarithm
        temperature = fit_temperature(np.log(np.maximum(probabilities, smallest)), gold)
        with torch.no_grad():
            for weights in (self.mlp.output.weight, self.mlp.output.bias):
                weights.div_(temperature)
        self.notes[TEMPERATURE_NOTE] = self.notes.get(TEMPERATURE_NOTE, 1.0) * temperature
        return temperature

    def _index(self, label: str, row: int) -> int:
        if label not in self.labels:
            problem = unknown_name("label", label, self.labels)
            raise InputError(f"the calibration labels: row {row}: {problem}")
        return self.labels.index(label)
