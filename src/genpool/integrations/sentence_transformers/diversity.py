"""The paper's penalties, which keep heads apart, added to any loss of sentence-transformers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.integrations.sentence_transformers.modules import (
    HEADS,
    WEIGHTS,
    Features,
    PoolingModule,
    SentenceEncoderModule,
)
from genpool.pooling import penalties

#: the feature that each penalty compares; None: the parameters themselves
PENALTY_FEATURES = {"parameter": None, "attention": WEIGHTS, "embedding": HEADS}


class DiversityLoss(nn.Module):
    """A loss plus the paper's penalty, which keeps the heads of a pooling apart (Eq. 7-9).

    The penalty is weight * sum over head pairs of max(threshold - distance, 0).

    Args:
        model: the model that is trained, with `PoolingModule` or `SentenceEncoderModule` in it, and
            two or more heads.
        loss: any loss of sentence-transformers, made with the same model.
        penalty: what is kept apart: "parameter" (Eq. 7), "attention" (Eq. 8) or "embedding"
            (Eq. 9). The last two are added once for each column of the data. Default: "embedding".
        weight: the paper's mu. Default: 1.0.
        threshold: the paper's lambda. Default: 1.0.
        average: "sentence", the mean of one hinge per sentence, or "batch", one hinge of the mean
            distance. Default: "sentence".

    Attributes:
        active: the share of hinges that were active at the last step, a scalar tensor; at 0 the
            penalty has no effect. None before the first step.

    Raises:
        InputError: the penalty is unknown, or the model has no pooling of genpool with two or more
            heads.

    Example:
        >>> loss = DiversityLoss(model, MultipleNegativesRankingLoss(model), "embedding", 0.01)
        >>> SentenceTransformerTrainer(model, train_dataset=data, loss=loss).train()
    """

    def __init__(
        self,
        model: SentenceTransformer,
        loss: nn.Module,
        penalty: Literal["parameter", "attention", "embedding"] = "embedding",
        weight: float = 1.0,
        threshold: float = 1.0,
        average: penalties.Average = "sentence",
    ) -> None:
        super().__init__()
        if penalty not in PENALTY_FEATURES:
            raise InputError(unknown_name("penalty", penalty, PENALTY_FEATURES))
        self.model, self.loss = model, loss
        self.penalty, self.average = penalty, average
        self.weight, self.threshold = weight, threshold
        self.active: Tensor | None = None
        self._pooling_modules()

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Any:
        """Returns the loss with the penalty added.

        Args:
            sentence_features: one dictionary of features for each column of the data.
            labels: passed on to the loss. Default: None.

        Returns:
            A scalar tensor; where the loss returns a dictionary of terms, that dictionary with the
            penalty as "diversity".

        Raises:
            InputError: the pooling does not write what the penalty compares, or the loss computes
                embeddings without gradients.
        """
        modules, feature = self._pooling_modules(), PENALTY_FEATURES[self.penalty]
        values: list[Tensor] = []

        def record(module: nn.Module, inputs: Any, features: Features) -> None:
            if feature in features:
                values.append(features[feature])

        with ExitStack() as hooks:
            for module in modules:
                hooks.callback(module.register_forward_hook(record).remove)
            result = self.loss(sentence_features, labels)
        if feature is None:
            added = []
            for pooling in (module.pooling for module in modules):
                if (w1 := pooling.head_parameters()) is None:
                    raise InputError(
                        f"{type(pooling).__name__} has no parameters per head; expected "
                        'generalized pooling. The penalty "embedding" is for every pooling.'
                    )
                added.append(penalties.parameter_penalty(w1, self.threshold, self.weight))
        else:
            self._check(values)
            measure = getattr(penalties, f"{self.penalty}_penalty")
            added = [measure(value, self.threshold, self.weight, self.average) for value in values]
        term = torch.stack([penalty.term for penalty in added]).sum()  # ()
        self.active = torch.stack([penalty.active for penalty in added]).mean()  # ()
        if isinstance(result, dict):  # some losses name their terms; the trainer adds them up
            return {**result, "diversity": term}
        return result + term

    def _pooling_modules(self) -> list[PoolingModule | SentenceEncoderModule]:
        classes = (PoolingModule, SentenceEncoderModule)
        modules = [module for module in self.model.modules() if isinstance(module, classes)]
        if not modules:
            raise InputError(
                "the model has none of genpool's modules, so there are no heads to keep apart; "
                f"expected PoolingModule in it, got {self.model}"
            )
        if not any(module.pooling.heads > 1 for module in modules):
            raise InputError(
                "the pooling has one head, and so no pair of heads to keep apart; expected two or "
                "more: GeneralizedPooling(width, heads=2)."
            )
        return modules

    def _check(self, values: list[Tensor]) -> None:
        if not values:
            raise InputError(
                f"no {PENALTY_FEATURES[self.penalty]!r} were written while the loss was computed; "
                "expected the pooling to have write_weights=True (of a genpool folder: "
                "model[0].write_weights = True), and the loss to call the model."
            )
        if torch.is_grad_enabled() and not any(value.requires_grad for value in values):
            raise InputError(
                f"{type(self.loss).__name__} computes embeddings without gradients first (as "
                f'cached losses do), so the penalty "{self.penalty}" would change nothing; use '
                '"parameter", or a loss that is not cached.'
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Returns the settings of this loss that a model card shows."""
        names = ("penalty", "weight", "threshold", "average")
        settings = {name: getattr(self, name) for name in names}
        return {"loss": type(self.loss).__name__, **settings}
