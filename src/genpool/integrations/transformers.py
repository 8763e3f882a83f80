"""Poolings of genpool on models of the `transformers` library.

>>> from transformers import AutoModel, AutoTokenizer
>>> from genpool.integrations.transformers import parameter_groups, pool
>>> from genpool.pooling import GeneralizedPooling
>>> class Classifier(torch.nn.Module):
...     def __init__(self, folder, labels):
...         super().__init__()
...         self.transformer = AutoModel.from_pretrained(folder)
...         dim = self.transformer.config.hidden_size
...         self.pooling = GeneralizedPooling(dim, heads=2, start="mean")
...         self.output = torch.nn.Linear(self.pooling.output_dim, labels)
...
...     def forward(self, inputs):
...         states = self.transformer(**inputs)
...         return self.output(pool(states, inputs["attention_mask"], self.pooling).vector)
>>> model = Classifier("path/to/model", labels=2)
>>> optimizer = torch.optim.AdamW(parameter_groups(model, also=["output"]))
>>> logits = model(tokenizer(["A man sleeps."], padding=True, return_tensors="pt"))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from genpool.errors import InputError
from genpool.pooling import Pooled, Pooling

__all__ = ["parameter_groups", "pool"]


def pool(model_output: Any, attention_mask: Tensor, pooling: nn.Module) -> Pooled:
    """Pools the token states of a model of `transformers`, with gradients.

    Args:
        model_output: what the model returned: an output with `last_hidden_state`, a tuple that
            starts with it (return_dict=False), or the states (batch, time, dim) themselves.
        attention_mask: (batch, time), 1 at real tokens, as the tokenizer returned it.
        pooling: a pooling of `genpool.pooling`, or the `PoolingModule` of
            `genpool.integrations.sentence_transformers`.

    Returns:
        `Pooled`: vector (batch, output_dim), heads (batch, heads, dim), and weights or None.

    Raises:
        InputError: the output has no token states, or states, mask and pooling do not fit.

    Example:
        >>> output = transformer(**inputs)
        >>> vectors = pool(output, inputs["attention_mask"], pooling).vector
    """
    first = model_output[0] if isinstance(model_output, tuple) and model_output else model_output
    states = getattr(model_output, "last_hidden_state", first)
    if not isinstance(states, Tensor):
        names = ", ".join(model_output) if hasattr(model_output, "keys") else ""
        raise InputError(
            f"{type(model_output).__name__} has no last_hidden_state"
            f"{f' (it has {names})' if names else ''}; expected the output of an AutoModel. A "
            "model with a head, such as AutoModelForSequenceClassification, has its AutoModel in "
            "model.base_model."
        )
    pooled: Pooled = core_pooling(pooling)(states, attention_mask)
    return pooled


def core_pooling(pooling: nn.Module) -> Pooling:
    """Returns the pooling of `genpool.pooling` that a module is or contains."""
    inner = pooling if isinstance(pooling, Pooling) else getattr(pooling, "pooling", None)
    if not isinstance(inner, Pooling) or inner.needs_gates:
        raise InputError(
            f"the pooling is {type(pooling).__name__}; expected one of genpool.pooling that needs "
            "no gates of an LSTM."
        )
    return inner


def parameter_groups(
    model: nn.Module,
    learning_rate: float = 2e-5,
    pooling_learning_rate: float = 1e-3,
    weight_decay: float = 0.01,
    also: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Returns groups for an optimizer in which poolings have a learning rate of their own.

    A pooling is new, the transformer is not: at a rate that suits the transformer, a pooling with
    start="mean" stays the mean. Biases and scales, which have one dimension, are not decayed; of a
    pooling, whose biases have two, they are.

    Args:
        model: a module that contains the transformer and one or several poolings, such as your
            classifier or a SentenceTransformer. Frozen parameters are left out.
        learning_rate: of all parameters that are not of a pooling. Default: 2e-5.
        pooling_learning_rate: of the poolings. Default: 1e-3.
        weight_decay: of matrices. Default: 0.01.
        also: names of other new modules, such as a classifier, that get the rate of the poolings.
            Default: none.

    Returns:
        Groups with "params", "lr" and "weight_decay", none of them empty.

    Raises:
        InputError: the model contains no pooling, or no module of a name in `also`.

    Example:
        >>> optimizer = torch.optim.AdamW(parameter_groups(model, also=["classifier"]))
        >>> trainer = SentenceTransformerTrainer(model, ..., optimizers=(optimizer, None))
    """
    modules = dict(model.named_modules())
    new = [module for module in modules.values() if isinstance(module, Pooling)]
    if not new:
        raise InputError(f"{type(model).__name__} contains no pooling of genpool.pooling.")
    for name in also:
        if name not in modules:
            top = ", ".join(name for name, _ in model.named_children())
            raise InputError(f"{type(model).__name__} has no module {name!r}; it has: {top}.")
        new.append(modules[name])
    new_ids = {id(parameter) for module in new for parameter in module.parameters()}
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            key = id(parameter) in new_ids, parameter.dim() > 1  # is new, is decayed
            groups.setdefault(key, []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": pooling_learning_rate if is_new else learning_rate,
            "weight_decay": weight_decay if decayed else 0.0,
        }
        for (is_new, decayed), parameters in groups.items()
    ]
