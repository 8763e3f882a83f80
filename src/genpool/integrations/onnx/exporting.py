"""Sentence encoders and transformers as ONNX folders."""

from __future__ import annotations

import copy
import inspect
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.disk.folder_format import write_text
from genpool.errors import InputError
from genpool.integrations.onnx import graph, onnx_encoder
from genpool.integrations.onnx.graph import OUTPUT, Export, Trial
from genpool.integrations.onnx.onnx_encoder import CHARACTER_IDS, EXPORT, padded_inputs
from genpool.integrations.onnx.traced import TracedSentenceEncoder, traced_pooling
from genpool.integrations.transformers import core_pooling
from genpool.model import SentenceEncoder
from genpool.pooling import Pooling
from genpool.saving.storage import CARD, TOKENIZER
from genpool.text.vocabulary import SPECIAL_WORDS

if TYPE_CHECKING:
    from genpool.integrations.load_encoder import SentenceTransformerEncoder

#: characters of scripts that few vocabularies contain together
UNKNOWN_WORD = "Zzyzx\u0436\u3042\u05d0-unheard"
#: the input of a transformer that some do not have
TOKEN_TYPES = "token_type_ids"
#: tokens of the longest sentence of the check, where the model allows as many
LONGEST_TRIAL_TOKENS = 40

#: the README.md of an exported folder
PAGE = tomllib.loads((Path(__file__).parent / "page.toml").read_text(encoding="utf-8"))


def export(
    model: SentenceEncoder | SentenceTransformerEncoder, folder: str | Path, int8: bool = False
) -> Export:
    """Writes a sentence encoder as one ONNX graph: word and character ids in, vectors out.

    The graph is run and compared with PyTorch before the folder is replaced: single words and long
    sentences, unknown words, sentences without tokens, padding on both sides.

    Args:
        model: the sentence encoder; of a classifier, its `encoder`; or a folder of
            sentence-transformers, loaded with `genpool.integrations.load_encoder.load_encoder`. It
            is not changed.
        folder: a new or empty folder, or an earlier export, which stays complete until the new one
            is.
        int8: store matrices in 8 bits; the vectors then have a cosine of at least 0.99 to the
            model's, on every CPU. Default: False.

    Returns:
        The folder, and the largest difference from PyTorch.

    Raises:
        ExportError: the model cannot be exported, or the graph returns other vectors.
        FolderError: the folder contains something other than an ONNX export.
        InputError: the encoder is of a class that has no form for a graph.
        MissingExtraError: onnx or onnxruntime is not installed.

    Example:
        >>> export(SentenceEncoder.from_pretrained("my-model"), "my-model-onnx")
        >>> vectors = OnnxEncoder.from_pretrained("my-model-onnx").encode(["A man sleeps."])
    """
    if not isinstance(model, SentenceEncoder):
        return model.export_onnx(folder, int8)
    text, settings, vocabulary = model.text, model.settings, model.text.vocabulary
    plain = copy.deepcopy(model).cpu().float().eval().requires_grad_(False)
    traced = TracedSentenceEncoder(plain, int8)
    trials = list(_sentence_trials(plain, traced.reads_characters))
    title = f"{settings.encoder.name}, {settings.pooling.name} pooling"
    form = "lower_case" if vocabulary.lower_case_fallback else "as_written"
    page = {
        "title": model.notes.get("title") or title,
        "use": "\n" + PAGE["use"],
        "form": PAGE["form"]["folded" if vocabulary.folding else form],
        "letters": PAGE["letters"]["characters" if text.characters.spells_known else "ngrams"],
    }
    config = {
        "kind": onnx_encoder.KIND,
        "int8": int8,
        "output_dim": model.output_dim,
        "characters": text.characters.characters,
        "sentence_ends": text.sentence_ends,
        "max_length": text.max_length,
        "lower_case_fallback": vocabulary.lower_case_fallback,
        "folding": vocabulary.folding,
        "ngram_buckets": settings.embedding.ngram_buckets,
        "ngram_sizes": list(settings.embedding.ngram_sizes),
    }
    rules = text.to_tokenizers().to_str(pretty=True)
    return _write(
        folder, traced, trials, page, config, lambda fresh: write_text(fresh / TOKENIZER, rules)
    )


def _write(
    folder: str | Path,
    module: nn.Module,
    trials: Sequence[Trial],
    page: dict[str, str],
    config: dict[str, Any],
    save_tokenizer: Callable[[Path], object] | None,
) -> Export:
    """Writes an export; the first trial, whose inputs are traced, is 2 or more in every size."""
    inputs, int8 = trials[0].inputs, config["int8"]
    rows = "\n".join(PAGE["inputs"][name] for name in inputs).format(**page)
    with EXPORT.replace(folder, "the export") as fresh:
        path = fresh / graph.ONNX_FILE
        graph.write_graph(module, inputs, path)
        if int8:
            graph.quantize_graph(path)
        difference = graph.check_graph(graph.OnnxSession(path), trials, int8)
        if save_tokenizer is not None:
            save_tokenizer(fresh)
        checked = f"the largest difference was {difference:.1e}"
        if int8:
            checked = f"8-bit weights, the smallest cosine was {1 - difference:.5f}"
        described = page | {"inputs": rows, "checked": checked, "output_dim": config["output_dim"]}
        write_text(fresh / CARD, PAGE["page"].format(**described))
        # Other libraries show the model type of a kind unknown to them.
        model_type = f"ONNX graph of a {config['kind']}, exported by genpool"
        EXPORT.write(fresh, {"model_type": model_type, **config}, onnx_encoder.checksums(fresh))
    return Export(Path(folder), difference)


def _sentence_trials(model: SentenceEncoder, reads_characters: bool) -> Iterator[Trial]:
    """Yields batches, always the same for one model, with padding on all sides and without."""
    known = model.text.vocabulary.words[len(SPECIAL_WORDS) :] or (UNKNOWN_WORD,)
    random = np.random.default_rng(0)

    def sentence(length: int) -> list[str]:
        return [known[word_id] for word_id in random.integers(len(known), size=length)]

    batches: dict[str, list[list[str]]] = {
        "sentences of several lengths": [sentence(length) for length in (5, 1, 12, 3)],
        "one word": [sentence(1)],
        "one sentence": [sentence(7)],
        "an unknown word": [[*sentence(2), UNKNOWN_WORD, *sentence(1)], [UNKNOWN_WORD]],
        "a sentence without tokens among others": [sentence(4), [], sentence(2)],
        "sentences without tokens": [[], []],
        "long sentences": [sentence(length) for length in (60, 41, 2, 59, 60, 17, 8)],
        "a very long word": [[UNKNOWN_WORD * 5], sentence(3)],
    }
    for name, words in batches.items():
        batch = model.text.batch(words)
        expected, inputs = model(batch).vector, padded_inputs(batch, reads_characters)
        # Two columns of padding before the sentences and one behind; two more characters per word.
        padded = {
            input_name: functional.pad(ids, (0, 2, 2, 1) if input_name == CHARACTER_IDS else (2, 1))
            for input_name, ids in inputs.items()
        }
        yield Trial(f"{name}, with padding", padded, expected)
        yield Trial(name, inputs, expected)


class TracedTransformer(nn.Module):
    """Token ids in, pooled sentences out; `later` are modules behind the pooling."""

    def __init__(
        self, transformer: nn.Module, pooling: Pooling, later: Sequence[nn.Module]
    ) -> None:
        super().__init__()
        self.transformer, self.pooling = transformer, traced_pooling(pooling)
        self.later = nn.ModuleList(later)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Each (batch, time) -> (batch, output_dim)"""
        extra = {} if token_type_ids is None else {TOKEN_TYPES: token_type_ids}
        output = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **extra
        )
        pooled = self.pooling(output.last_hidden_state, attention_mask > 0)
        features = {OUTPUT: pooled.vector}
        for module in self.later:
            features = module(features)
        return cast(Tensor, features[OUTPUT])


def export_transformer(
    transformer: nn.Module,
    pooling: nn.Module,
    folder: str | Path,
    int8: bool = False,
    tokenizer: Any = None,
    later: Sequence[nn.Module] = (),
) -> Export:
    """Writes a model of the `transformers` library and a pooling as one graph, and checks it.

    The inputs of the graph are input_ids, attention_mask and, where the model has them,
    token_type_ids, each (batch, time); its output is sentence_embedding (batch, output_dim).

    Args:
        transformer: an AutoModel, whose output has `last_hidden_state`. It is not changed.
        pooling: any pooling of `genpool.pooling` except gated pooling, with the input_dim of the
            model's states, or the `PoolingModule` of
            `genpool.integrations.sentence_transformers`.
        folder: a new or empty folder, or an earlier export, which stays complete until the new one
            is.
        int8: store matrices in 8 bits; the vectors then have a cosine of at least 0.99 to the
            model's, on every CPU. Default: False.
        tokenizer: a tokenizer of `transformers`, saved into the folder too. Default: None.
        later: modules of sentence-transformers that follow the pooling, such as Normalize.
            Default: none.

    Returns:
        The folder, and the largest difference from PyTorch.

    Raises:
        ExportError: the model cannot be exported, or the graph returns other vectors.
        FolderError: the folder contains something other than an ONNX export.
        InputError: model and pooling do not fit together.
        MissingExtraError: onnx or onnxruntime is not installed.

    Example:
        >>> transformer = AutoModel.from_pretrained("path/to/model")
        >>> export_transformer(transformer, GeneralizedPooling(384, heads=5), "out")
    """
    pooling, model_name = core_pooling(pooling), type(transformer).__name__
    settings = getattr(transformer, "config", None)
    if not isinstance(getattr(settings, "vocab_size", None), int):
        raise InputError(
            f"{model_name} has no config.vocab_size; expected a text model of the transformers "
            "library (AutoModel.from_pretrained)."
        )
    width = getattr(settings, "hidden_size", pooling.input_dim)
    if width != pooling.input_dim:
        raise InputError(
            f"the states of {model_name} have width {width}, the pooling was made with "
            f"input_dim={pooling.input_dim}."
        )
    module = copy.deepcopy(TracedTransformer(transformer, pooling, later))
    module.cpu().float().eval().requires_grad_(False)
    trials = list(_transformer_trials(module))
    config = {
        "kind": "transformer",
        "int8": int8,
        "inputs": list(trials[0].inputs),
        "output_dim": trials[0].expected.shape[1],
    }
    page = {"title": f"{model_name} with {type(pooling).__name__}", "use": ""}
    save_tokenizer = None if tokenizer is None else tokenizer.save_pretrained
    return _write(folder, module, trials, page, config, save_tokenizer)


def _transformer_trials(module: TracedTransformer) -> Iterator[Trial]:
    """Yields batches of random tokens."""
    config: Any = module.transformer.config
    allowed = getattr(config, "max_position_embeddings", None)
    longest = min(LONGEST_TRIAL_TOKENS, allowed or LONGEST_TRIAL_TOKENS)
    accepted = inspect.signature(module.transformer.forward).parameters
    has_types = bool(getattr(config, "type_vocab_size", 0)) and TOKEN_TYPES in accepted
    random = torch.Generator().manual_seed(0)
    for lengths in ((5, 2, 9), (7,), (1,), (longest, 3, longest, 20, 1), (4, 0)):
        width = max(lengths)
        ids = torch.randint(config.vocab_size, (len(lengths), width), generator=random)
        counts = torch.tensor(lengths).clamp(max=width).unsqueeze(1)  # (batch, 1)
        mask = (torch.arange(width) < counts).long()  # (batch, time)
        inputs = {"input_ids": ids, "attention_mask": mask}
        if has_types:
            inputs[TOKEN_TYPES] = torch.zeros_like(ids)
        yield Trial(f"sentences of {lengths} tokens", inputs, module(*inputs.values()))
