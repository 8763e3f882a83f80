"""The paper's penalties, which keep heads apart, beside any loss of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.integrations.sentence_transformers.encoder import SentenceEncoderModule
from genpool.integrations.sentence_transformers.features import HEADS, WEIGHTS, Features
from genpool.integrations.sentence_transformers.pooling import GeneralizedPooling
from genpool.pooling.base import Pooling
from genpool.pooling.penalties import (
    Average,
    Penalty,
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
)

WithHeads = GeneralizedPooling | SentenceEncoderModule

#: what each penalty looks at: a feature, or None for the parameters themselves
READS = {"parameter": None, "attention": WEIGHTS, "embedding": HEADS}


class DiversityLoss(nn.Module):
    """Another loss plus weight * sum over head pairs of max(threshold - distance, 0).

    Args:
        model: the model that is trained, with genpool's GeneralizedPooling in it.
        loss: any loss of sentence-transformers, made with the same model.
        penalty: what is kept apart: "parameter" (Eq. 7), "attention" (Eq. 8) or "embedding"
            (Eq. 9). The last two are added once for each column of the data.
        weight: the paper's mu.
        threshold: the paper's lambda.
        average: "sentence", a hinge for each sentence, or "batch", one of the mean distance.

    `active` is the share of hinges that were awake at the last step: at 0 the penalty does nothing.

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
        average: Average = "sentence",
    ) -> None:
        super().__init__()
        if penalty not in READS:
            raise InputError(unknown_name("penalty", penalty, READS))
        self.model, self.loss = model, loss
        self.penalty, self.average = penalty, average
        self.weight, self.threshold = weight, threshold
        self.active: Tensor | None = None
        self._poolings()

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Any:
        poolings = self._poolings()
        with recorded(poolings, READS[self.penalty]) as seen:
            result = self.loss(sentence_features, labels)
        if self.penalty == "parameter":
            penalties = [self._parameter_penalty(each) for each in poolings]
        else:
            self._check(seen)
            measure = attention_penalty if self.penalty == "attention" else embedding_penalty
            penalties = [measure(each, self.threshold, self.weight, self.average) for each in seen]
        term = torch.stack([each.term for each in penalties]).sum()  # ()
        self.active = torch.stack([each.active for each in penalties]).mean()  # ()
        if isinstance(result, dict):  # some losses name their terms; the trainer adds them up
            return {**result, "diversity": term}
        return result + term

    def _poolings(self) -> list[WithHeads]:
        kinds = (GeneralizedPooling, SentenceEncoderModule)
        found = [each for each in self.model.modules() if isinstance(each, kinds)]
        if not found:
            raise InputError(
                "the model has none of genpool's modules, so there are no heads to keep apart; "
                f"expected GeneralizedPooling in it, got {self.model}"
            )
        poolings = [_pooling_of(each) for each in found]
        if all(each.output_dim == each.input_dim for each in poolings):
            raise InputError(
                "the pooling has one head, which has no other to be kept apart from; expected two "
                "or more: GeneralizedPooling(width, heads=2)."
            )
        return found

    def _parameter_penalty(self, module: WithHeads) -> Penalty:
        pooling = _pooling_of(module)
        w1 = getattr(pooling, "w1", None)
        if not isinstance(w1, Tensor) or w1.dim() != 3:
            raise InputError(
                f"{type(pooling).__name__} has no parameters per head; expected generalized "
                'pooling. The penalty "embedding" is for every pooling.'
            )
        return parameter_penalty(w1, self.threshold, self.weight)

    def _check(self, seen: list[Tensor]) -> None:
        if not seen:
            raise InputError(
                f"no {READS[self.penalty]!r} were written while the loss was computed; expected "
                "the pooling to have write_weights=True (of a genpool folder: "
                "model[0].write_weights = True), and the loss to call the model."
            )
        if torch.is_grad_enabled() and not any(each.requires_grad for each in seen):
            raise InputError(
                f"{type(self.loss).__name__} computes embeddings without gradients first (as "
                f'cached losses do), so the penalty "{self.penalty}" would change nothing; use '
                '"parameter", or a loss that is not cached.'
            )

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says of this loss."""
        names = ("penalty", "weight", "threshold", "average")
        own = {name: getattr(self, name) for name in names}
        return {"loss": type(self.loss).__name__, **own}


def _pooling_of(module: WithHeads) -> Pooling:
    return module.encoder.pooling if isinstance(module, SentenceEncoderModule) else module.pooling


@contextmanager
def recorded(modules: Iterable[nn.Module], feature: str | None) -> Iterator[list[Tensor]]:
    """Every value of a feature that the modules write inside."""
    seen: list[Tensor] = []

    def keep(module: nn.Module, given: Any, features: Features) -> None:
        if feature is not None and feature in features:
            seen.append(features[feature])

    hook: Callable[..., Any] = keep
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
