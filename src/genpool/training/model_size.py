"""The size of the model that some settings describe, without making it."""

from __future__ import annotations

from genpool.config import ModelSettings
from genpool.errors import ConfigError, InputError
from genpool.model import PairClassifier
from genpool.tensors.meta import on_meta_device
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer

#: more are taken for a mistake of typing: 400 GB of weights, four times as much in training
MAX_PARAMETERS = 10**11


def size_problems(settings: ModelSettings) -> list[str]:
    """Returns why no model can have these settings, if so; takes no memory.

    The number of words is not known yet, so that only the width of the word table counts.
    """
    text = TextPipeline(WordTokenizer(), Vocabulary.build({}), Characters(""))
    try:
        with on_meta_device():
            model = PairClassifier.from_settings(text, settings, ("a", "b"))
    except ConfigError as error:
        return error.problems
    except InputError as error:
        return [str(error)]
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        return [f"a tensor of the model would be too large ({reason})."]
    counts = {
        name: sum(parameter.numel() for parameter in room.parameters())
        for name, room in (*model.encoder.named_children(), ("classifier", model.mlp))
    }
    if sum(counts.values()) <= MAX_PARAMETERS:
        return []
    largest = max(counts, key=lambda name: counts[name])
    return [
        f"the model would have {sum(counts.values()):,} parameters, most of them in {largest} "
        f"({counts[largest]:,}); expected at most {MAX_PARAMETERS:,}."
    ]
