"""Gives an encoder more words before it is distilled further: no training, only regression.

    python -m benchmarks.release.widen_student --encoder FOLDER --words WORDS --cache CACHE \\
        --teacher TEACHER --glove GLOVE --out runs/widened

1. What the recurrent layers read of a known word (its vector and its characters, times their
   weights) is factored into smaller word vectors: the leading singular directions.
2. Words without a vector get the one that ridge regression predicts from the teacher's vector of
   the single word and from a second file of word vectors, where it has one.
3. The n-grams of all words are fitted to their vectors, also by ridge regression: this is what a
   word without an entry starts from.

The result is a `training.start` for `genpool distil`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from genpool import SentenceEncoder
from genpool.config import ModelSettings, ngrams_of
from genpool.disk.row_cache import RowCache
from genpool.encoder.lstm import BiLSTMStack
from genpool.text import TextPipeline, Vocabulary, WordTokenizer, WordVectors, read_vectors
from genpool.text.vocabulary import SPECIAL_WORDS, UNKNOWN, CharacterNgrams

WORD_DIM, NGRAM_BUCKETS, NGRAM_SIZES = 160, 20_000, (3, 4)
#: known words are hidden so often in the distillation, so that n-grams are trained
HIDDEN_WORDS = 0.08
RIDGE_WORDS, RIDGE_NGRAMS, STEPS = 30.0, 1.0, 15

Floats = NDArray[np.float32]


def word_inputs(encoder: SentenceEncoder, words: list[str]) -> Floats:
    """Returns what the recurrent layers read of each word (words, embedding)."""
    table = encoder.text.table()
    batch = table.batch([table.row(words, sentence_ends=False)])
    with torch.no_grad():
        distinct = encoder.embedding.distinct_at_inference(batch)  # (distinct, embedding)
    return distinct[batch.index[0]].numpy()


def factor(inputs: Floats, weights: Floats, importance: Floats, dim: int) -> tuple[Floats, Floats]:
    """Returns word vectors (words, dim) and weights (gates, dim) whose product is closest to
    inputs @ weights.T, errors weighted by the importance (words,) of each word."""
    _, triangle = np.linalg.qr(np.sqrt(importance)[:, None] * inputs)  # (embedding, embedding)
    left, _, _ = np.linalg.svd(weights @ triangle.T, full_matrices=False)  # (gates, embedding)
    directions = left[:, :dim]  # (gates, dim), orthogonal
    return inputs @ (weights.T @ directions), directions


def ridge(features: Floats, values: Floats, penalty: float) -> Floats:
    """Returns (features, dim) of the least squares with a penalty, by the normal equations."""
    moments = features.T @ features + penalty * np.eye(features.shape[1], dtype=np.float32)
    solution: Floats = np.linalg.solve(moments, features.T @ values)
    return solution


def sparse_ridge(features: Any, values: Floats, penalty: float, steps: int = STEPS) -> Floats:
    """The same for a sparse matrix of many features, by a few steps of conjugate gradients."""
    solution = np.zeros((features.shape[1], values.shape[1]), np.float32)
    residual = features.T @ values
    direction, energy = residual.copy(), (residual**2).sum(axis=0)
    for _ in range(steps):
        image = features.T @ (features @ direction) + penalty * direction
        step = energy / np.maximum((direction * image).sum(axis=0), 1e-20)
        solution += step * direction
        residual -= step * image
        new_energy = (residual**2).sum(axis=0)
        direction = residual + new_energy / np.maximum(energy, 1e-20) * direction
        energy = new_energy
    return solution


def ngram_matrix(ngrams: CharacterNgrams, words: list[str]) -> scipy.sparse.csr_matrix:
    """Returns (words, n-gram ids) with which the n-grams' vectors are multiplied."""
    ids = [ngrams.ids_of(word) for word in words]
    counts = np.array([len(word) for word in ids])
    values = np.repeat(1 / np.sqrt(counts), counts).astype(np.float32)
    ends = np.concatenate([[0], counts.cumsum()])
    shape = (len(words), len(ngrams))
    return scipy.sparse.csr_matrix((values, np.concatenate(ids), ends), shape=shape)


def word_features(words: list[str], cache: RowCache, glove: WordVectors) -> Floats:
    """Returns (words, features): the teacher's vectors of single words and those of the file.

    What a word lacks is zeros, and a feature of its own says so.
    """
    missing = set(cache.missing(words))
    has_teacher = np.array([word not in missing for word in words])
    taught = np.zeros((len(words), *cache.row_shape), np.float32)
    known = [word for word in words if word not in missing]
    taught[has_teacher] = cache.rows()[cache.places(known)[:, 0]]
    taught[has_teacher] -= taught[has_teacher].mean(axis=0)
    taught *= 10 / np.maximum(np.linalg.norm(taught, axis=1, keepdims=True), 1e-6)
    rows = [glove.find(word) for word in words]
    has_glove = np.array([row is not None for row in rows])
    given = np.zeros((len(words), glove.dim), np.float32)
    given[has_glove] = glove.matrix[[row for row in rows if row is not None]]
    flags = np.stack([np.ones(len(words)), has_teacher, has_glove], axis=1)
    print(f"{has_teacher.mean():.1%} with the teacher's vector, {has_glove.mean():.1%} in the file")
    return np.concatenate([taught, given, flags.astype(np.float32)], axis=1)


def widened_text(encoder: SentenceEncoder, words: list[str], settings: ModelSettings) -> Any:
    ngrams = ngrams_of(settings.embedding)
    assert ngrams is not None
    return TextPipeline(
        WordTokenizer(settings.text.rules, settings.text.folding),
        Vocabulary([*SPECIAL_WORDS, *words], folding=True),
        ngrams,
        max_length=encoder.text.max_length,
    )


def widen(
    encoder: SentenceEncoder, words: list[str], cache: RowCache, glove: WordVectors
) -> SentenceEncoder:
    """Returns an encoder with these words that gives known words nearly the states of before."""
    old = encoder.text.vocabulary
    assert isinstance(encoder.encoder, BiLSTMStack) and len(encoder.encoder.layers) == 1
    layer: Any = encoder.encoder.layers[0]
    gates = torch.cat([layer.forwards.w, layer.backwards.w]).detach().numpy()  # (gates, embedding)
    known = np.array([old.id(word) != UNKNOWN for word in words])
    known_words = [word for word, is_known in zip(words, known, strict=True) if is_known]
    print(f"{len(words):,} words, {len(known_words):,} of them known")
    inputs = word_inputs(encoder, known_words)
    mean = inputs[:20_000].mean(axis=0)
    importance = (1 / (np.flatnonzero(known) + 200.0)).astype(np.float32)  # as frequencies fall
    vectors, directions = factor(inputs - mean, gates, importance, WORD_DIM)
    scale = vectors.std()  # vectors of the size that training expects
    features = word_features(words, cache, glove)
    weights = np.sqrt(np.minimum(1.0, importance / importance[min(5000, len(importance) - 1)]))
    fitted = ridge(features[known] * weights[:, None], vectors * weights[:, None], RIDGE_WORDS)
    table = features @ fitted  # (words, dim)
    gone = np.linalg.norm(table[known] - vectors) ** 2 / np.linalg.norm(vectors) ** 2
    print(f"regression leaves {gone:.1%} of the known words' variance unexplained")
    # A prediction is shorter than what it predicts.
    table *= np.linalg.norm(vectors) / np.linalg.norm(table[known])
    table[known] = vectors
    settings = replace(
        encoder.settings,
        text=replace(encoder.settings.text, rules="parts", folding=True),
        embedding=replace(
            encoder.settings.embedding,
            word_dim=WORD_DIM,
            characters=False,
            ngram_buckets=NGRAM_BUCKETS,
            ngram_sizes=NGRAM_SIZES,
            hidden_words=HIDDEN_WORDS,
        ),
    )
    text = widened_text(encoder, words, settings)
    wider = SentenceEncoder.from_settings(text, settings)
    state = {
        name: tensor
        for name, tensor in encoder.state_dict().items()
        if not name.startswith("embedding.")
    }
    matrix = ngram_matrix(text.characters, words)
    ngrams = sparse_ridge(matrix, (table / scale).astype(np.float32), RIDGE_NGRAMS)
    predicted = matrix @ ngrams
    ngrams *= np.linalg.norm(table / scale) / np.linalg.norm(predicted)
    special = np.zeros((len(SPECIAL_WORDS), WORD_DIM), np.float32)
    state["embedding.words"] = torch.from_numpy(np.concatenate([special, table / scale])).float()
    state["embedding.backing.table"] = torch.from_numpy(ngrams).float()
    split = torch.from_numpy(directions * scale).float().chunk(2)
    shift = torch.from_numpy(gates @ mean).float().chunk(2)
    for side, name in enumerate(("forwards", "backwards")):
        prefix = f"encoder.layers.0.{name}."
        state[prefix + "w"] = split[side]
        state[prefix + "b"] = state[prefix + "b"] + shift[side]
    wider.load_state_dict({name: tensor.contiguous() for name, tensor in state.items()})
    wider.notes = {"title": "an encoder with more words", "words": f"{len(words):,}"}
    return wider.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, help="default: the encoder in the package")
    parser.add_argument("--words", type=Path, required=True, help="one folded word per line")
    parser.add_argument("--count", type=int, default=106_000)
    parser.add_argument("--cache", type=Path, required=True, help="teacher's vectors of the words")
    parser.add_argument("--teacher", required=True, help="the name in the cache")
    parser.add_argument("--glove", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    words = options.words.read_text(encoding="utf-8").split("\n")[: options.count]
    cache = RowCache.open(options.cache, options.teacher)
    assert cache is not None, f"{options.cache} has no vectors"
    encoder = SentenceEncoder.from_pretrained(options.encoder)
    wider = widen(encoder, [word for word in words if word], cache, read_vectors(options.glove))
    wider.save_pretrained(options.out)


if __name__ == "__main__":
    main()
