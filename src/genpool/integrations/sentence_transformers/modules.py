"""Poolings and sentence encoders of genpool as modules of sentence-transformers, which pass on one
dictionary of features. Only JSON and safetensors are written and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.base.modules import InputModule, Module
from tokenizers import Tokenizer
from torch import Tensor, nn

from genpool.errors import FolderError, GenpoolError, InputError
from genpool.integrations.transformers import core_pooling
from genpool.model import SentenceEncoder
from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.saving.storage import WEIGHTS as WEIGHTS_FILE
from genpool.saving.weights_file import WeightsFile
from genpool.tensors.modules import on_meta_device
from genpool.tensors.packing import Packing
from genpool.text import Batch
from genpool.text.validation import require_texts

Features = dict[str, Any]

#: features that genpool's modules add
HEADS, WEIGHTS = "head_vectors", "head_weights"
#: prefix of a batch's fields among the features; input_ids and attention_mask are for other modules
BATCH_PREFIX = "words_"
#: features that describe tokens; after `HeadVectors` the rows are heads
TOKEN_FEATURES = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")
#: the arguments of sentence-transformers' `load` that locate a file
LOCATION = {"subfolder", "token", "cache_folder", "revision", "local_files_only"}

MODEL_CONFIG = "config_sentence_transformers.json"
#: sentence-transformers compares this with the installed version before it loads any module
REQUIREMENT = {
    "specifier": ">=0.1.0",
    "reason": "modules of this model are part of genpool: "
    "load it with genpool.integrations.sentence_transformers.load",
}


class PoolingModule(Module):
    """Any pooling of genpool after a Transformer of sentence-transformers.

    It reads the features "token_embeddings", "attention_mask" and "prompt_length", or concatenated
    sentences with "cu_seq_lens_q". It writes "sentence_embedding" (batch, output_dim),
    "head_vectors" (batch, heads, dim) and, where the pooling has weights, "head_weights" (batch,
    heads, time, dim); `encode(output_value=None)` returns all of them.

    Args:
        pooling: a pooling of `genpool.pooling` with the input_dim of the Transformer; any but
            `GatedPooling`, which needs the gates of an LSTM. With
            `GeneralizedPooling(width, start="mean")` a pretrained model has the same cosines as
            with mean pooling until it is trained further.
        include_prompt: whether the tokens of a prompt are pooled too. Default: True.
        write_weights: whether "head_weights" are written; without them it takes less time and
            memory. Default: True.

    Raises:
        InputError: the pooling is something else, or needs gates.

    Example:
        >>> transformer = Transformer("sentence-transformers/all-MiniLM-L6-v2")
        >>> pooling = GeneralizedPooling(transformer.get_embedding_dimension(), heads=5)
        >>> model = SentenceTransformer(modules=[transformer, PoolingModule(pooling)])
    """

    # The name in the modules.json of saved models, wherever this file is.
    __module__ = "genpool.integrations.sentence_transformers"

    config_keys = ["include_prompt", "write_weights"]  # noqa: RUF012 (as in the base class)

    def __init__(
        self, pooling: Pooling, include_prompt: bool = True, write_weights: bool = True
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pooling = core_pooling(pooling)
        self.include_prompt, self.write_weights = include_prompt, write_weights

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Adds the sentence embeddings to the features of a Transformer, and returns them."""
        states, mask = states_and_mask(features, self.include_prompt)
        if self.write_weights:
            pooled = self.pooling(states, mask)
        else:
            self.pooling.check(states, mask)
            packing = Packing.from_mask(mask)
            pooled = self.pooling.pool_rows(packing.pack(states), packing)._replace(weights=None)
        return _with_pooled(features, pooled)

    def get_embedding_dimension(self) -> int:
        """Returns the dimension of a sentence embedding."""
        return self.pooling.output_dim

    def get_config_dict(self) -> dict[str, Any]:
        """Returns the name and the options of the pooling, and the settings of this module."""
        pooling, name = self.pooling, POOLINGS.name_of(self.pooling)
        options = {"name": name, "input_dim": pooling.input_dim, **pooling.options}
        return {"pooling": options, **super().get_config_dict()}

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Writes config.json and safetensors, and adds genpool to the model's requirements."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=True)
        require_genpool(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Self:  # type: ignore[override]
        """Loads the folder that `save` wrote, with its weights."""
        location = _location(kwargs)
        source = f"{model_name_or_path}/{location.get('subfolder', '')}"
        config = cls.load_config(model_name_or_path, **location)
        weights = cls.load_file_path(model_name_or_path, filename=WEIGHTS_FILE, **location)
        if weights is None:
            raise FolderError(
                f"{source} has no {WEIGHTS_FILE}; expected the weights there. A pickle "
                "(pytorch_model.bin) is never opened."
            )
        try:
            options = dict(config.pop("pooling"))
            pooling_class = POOLINGS.require(options.pop("name"))
            with on_meta_device():  # sizes are compared before memory is allocated
                module = cls(pooling_class(**options), **config)
        except (KeyError, TypeError, ValueError, GenpoolError) as error:
            raise FolderError(f"{source}/config.json cannot be used: {error}") from error
        file = WeightsFile.open(Path(weights))
        expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        if file.shapes != expected:
            raise FolderError(
                f"{weights} does not agree with config.json: it contains {file.shapes}, expected "
                f"{expected}."
            )
        module.load_state_dict(file.read()[0], assign=True)
        return module


class HeadVectors(Module):
    """Passes the heads on in place of the tokens, for a MultiVectorEncoder.

    A MultiVectorEncoder stores one vector per token; with this module after a pooling it stores one
    per head, so that an index grows with the number of sentences and not with their lengths.

    It reads the feature "head_vectors" (batch, heads, dim), replaces "token_embeddings" by it, and
    "attention_mask" by ones (batch, heads).

    Args:
        input_dim: dimensions of a head.
        normalize: scale every head to length 1, so that MaxSim is a sum of cosines. Default: True.

    Example:
        >>> pooling = PoolingModule(GeneralizedPooling(384, heads=4))
        >>> model = MultiVectorEncoder(modules=[transformer, pooling, HeadVectors(384)])
        >>> model.encode_document(["A man sleeps."])[0].shape     # (4, 384)
    """

    __module__ = "genpool.integrations.sentence_transformers"

    config_keys = ["input_dim", "normalize"]  # noqa: RUF012 (as in the base class)

    def __init__(self, input_dim: int, normalize: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.input_dim, self.normalize = input_dim, normalize

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Returns new features whose token embeddings are the heads."""
        heads = features.get(HEADS)
        if not isinstance(heads, Tensor) or heads.shape[-1] != self.input_dim:
            shape = tuple(heads.shape) if isinstance(heads, Tensor) else "missing"
            raise InputError(
                f"{HEADS!r} is {shape}; expected (batch, heads, {self.input_dim}): put this module "
                "after genpool's PoolingModule or SentenceEncoderModule."
            )
        if self.normalize:
            heads = nn.functional.normalize(heads, dim=-1)  # (batch, heads, dim)
        # A new dictionary: losses that embed the same features twice need the tokens' mask.
        rest = {name: value for name, value in features.items() if name not in TOKEN_FEATURES}
        mask = torch.ones(heads.shape[:2], dtype=torch.long, device=heads.device)  # (batch, heads)
        return {**rest, "token_embeddings": heads, "attention_mask": mask}

    def get_embedding_dimension(self) -> int:
        """Returns the dimension of a head."""
        return self.input_dim

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Writes config.json, and adds genpool to the model's requirements."""
        self.save_config(output_path)
        require_genpool(output_path)


class SentenceEncoderModule(InputModule):
    """A `genpool.SentenceEncoder` as the first module of a SentenceTransformer.

    It writes the features "sentence_embedding" (batch, output_dim), "head_vectors" (batch, heads,
    dim) and, if asked to, "head_weights" (batch, heads, time, dim).

    Args:
        encoder: the model; it is trained and saved as part of the sentence-transformers model.
        write_weights: also write "head_weights", for the attention penalty and for inspection. It
            takes more time and memory. Default: False.

    Example:
        >>> encoder = genpool.SentenceEncoder.from_pretrained("my-model")
        >>> model = SentenceTransformer(modules=[SentenceEncoderModule(encoder), Normalize()])
    """

    __module__ = "genpool.integrations.sentence_transformers"

    # A genpool folder is replaced as one, so it cannot be the folder of the other modules too.
    save_in_root = False
    config_keys = ["write_weights"]  # noqa: RUF012 (as in the base class)
    config_file_name = "genpool_module.json"  # config.json is the encoder's

    def __init__(self, encoder: SentenceEncoder, write_weights: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.encoder, self.write_weights = encoder, write_weights

    @property
    def pooling(self) -> Pooling:
        """The pooling of the encoder."""
        return self.encoder.pooling

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        """Rules and vocabulary, as a tokenizer of the `tokenizers` library."""
        return self.encoder.text.to_tokenizers()

    @property
    def max_seq_length(self) -> int | None:
        """Tokens that are kept of a sentence; None keeps all."""
        return self.encoder.text.max_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.encoder.text.max_length = value

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> Features:
        """Returns sentences as one batch of tensors; a prompt is put before every sentence."""
        text = self.encoder.text
        sentences = [(prompt or "") + sentence for sentence in require_texts(inputs)]
        batch = text.batch(text.words_batch(sentences))
        tensors = {field.name: getattr(batch, field.name) for field in fields(Batch)}
        return {
            "input_ids": batch.ids,
            "attention_mask": batch.mask.long(),
            **{BATCH_PREFIX + name: value for name, value in tensors.items() if value is not None},
        }

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Adds the sentence embeddings to the features that `preprocess` made."""
        names = [field.name for field in fields(Batch) if BATCH_PREFIX + field.name in features]
        batch = Batch(**{name: features[BATCH_PREFIX + name] for name in names})
        pooled: Pooled = self.encoder(batch, weights=self.write_weights)
        weights = pooled.weights if self.write_weights else None
        return _with_pooled(features, pooled._replace(weights=weights))

    def get_embedding_dimension(self) -> int:
        """Returns the dimension of a sentence embedding."""
        return self.encoder.output_dim

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Writes a genpool folder, which `genpool.SentenceEncoder.from_pretrained` loads too."""
        self.encoder.save_pretrained(output_path)
        self.save_config(output_path)
        require_genpool(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Self:  # type: ignore[override]
        """Loads the folder that `save` wrote."""
        location = _location(kwargs)
        folder = cls.load_dir_path(model_name_or_path, **location)
        if folder is None:
            subfolder = location.get("subfolder", "")
            raise FolderError(f"{model_name_or_path} has no folder {subfolder!r}.")
        options = cls.load_config(model_name_or_path, **location)
        return cls(SentenceEncoder.from_pretrained(folder), **options)


def states_and_mask(features: Features, include_prompt: bool) -> tuple[Tensor, Tensor]:
    """Returns states (batch, time, dim) and a new mask (batch, time), True at tokens to pool."""
    states, attention_mask = features.get("token_embeddings"), features.get("attention_mask")
    if not isinstance(states, Tensor):
        raise InputError(
            f"the features have {', '.join(sorted(features)) or 'nothing'}; expected "
            "token_embeddings: put this module after a Transformer."
        )
    if "cu_seq_lens_q" in features:  # where sentences start that are concatenated: (batch + 1,)
        lengths = features["cu_seq_lens_q"].diff().to(states.device)  # (batch,)
        longest = int(lengths.max()) if len(lengths) else 0
        mask = torch.arange(longest, device=states.device) < lengths.unsqueeze(1)  # (batch, time)
        padded = states.new_zeros(*mask.shape, states.shape[-1])  # (batch, time, dim)
        states = padded.masked_scatter(mask.unsqueeze(-1), states[0, : int(lengths.sum())])
    elif attention_mask is None or attention_mask.shape[-1] != states.shape[1]:
        # There is no mask, or it is of other tokens than the states.
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    else:
        mask = attention_mask.bool()  # (batch, time)
    if not include_prompt and "prompt_length" in features:
        # An integer when encoding; in training a tensor that contains it once or several times.
        length = int(torch.as_tensor(features["prompt_length"]).flatten()[0])
        # The prompt is the first real tokens, whichever side the padding is on.
        mask = mask & (mask.cumsum(dim=1) > length)
    return states, mask


def _with_pooled(features: Features, pooled: Pooled) -> Features:
    if pooled.weights is not None:
        features[WEIGHTS] = pooled.weights  # (batch, heads, time, dim)
    features[HEADS] = pooled.heads  # (batch, heads, dim)
    features["sentence_embedding"] = pooled.vector  # (batch, output_dim)
    return features


def require_genpool(folder: str) -> None:
    """Adds genpool to the requirements of the model that a module's folder is part of."""
    # The model's file is written before its modules are saved, beside the first or above the rest.
    for path in (Path(folder) / MODEL_CONFIG, Path(folder).parent / MODEL_CONFIG):
        if path.is_file():
            config = json.loads(path.read_text(encoding="utf-8"))
            config["requirements"] = {**config.get("requirements", {}), "genpool": REQUIREMENT}
            text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
            path.write_text(text, encoding="utf-8", newline="\n")
            return


def _location(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name in LOCATION}
