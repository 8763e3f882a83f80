"""The speed page of the systems: the plain loop computes what the batch does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.results_pages.systems import (
    BASELINE,
    NAMES,
    Speed,
    draw_sentences,
    make_system,
    page_row,
    plain_loop,
    random_dependencies,
    train_step,
)
from benchmarks.speed.sizes import make_text
from genpool.model import PairClassifier
from genpool.reproduction.definitions import EXPERIMENTS, SYSTEMS
from genpool.reproduction.trees import BinaryTrees, DependencyTrees, TreeAnnotator
from genpool.tensors.modules import dropout_disabled
from genpool.text import TextPipeline

WIDTH = 6
SMALL = (
    "embedding.word_dim=5",
    "embedding.character_maps=1",
    "classifier.hidden_dim=4",
    "vectors.path=none.txt",
)


@pytest.fixture(scope="module")
def text() -> TextPipeline:
    return make_text()


def small_system(name: str, text: TextPipeline) -> PairClassifier:
    """The system with layers of a few dimensions."""
    width = "maps" if "encoder.maps={width}" in SYSTEMS[name].overrides else "hidden_dim"
    return make_system(name, text, (*SMALL, f"encoder.{width}={WIDTH}"))


def test_every_system_of_table_1_that_has_blocks_of_its_own_is_measured() -> None:
    assert set(NAMES) < {row.system for row in EXPERIMENTS["table1"].rows if row.paper}
    assert len(NAMES) == 8


@pytest.mark.parametrize("name", (BASELINE, *NAMES))
def test_the_plain_loop_has_the_gradients_of_the_batch(name: str, text: TextPipeline) -> None:
    """One sentence at a time or all at once, for trees of every shape."""
    model = small_system(name, text).double()
    sentences = draw_sentences(model, examples=7)
    part = sentences.part(2)
    assert part.words == [*sentences.words[:2], *sentences.words[7:9]]
    assert part.tokens == sum(len(words) for words in part.words)
    assert sentences.part(7).words == sentences.words
    gradients = []
    for make in (plain_loop, train_step):
        work = make(model, sentences)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        with dropout_disabled():  # choices that are sampled differ between the two
            work()
        grads = (parameter.grad for parameter in model.parameters())
        gradients.append([grad.clone() for grad in grads if grad is not None])
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), before, strict=True):
                parameter.copy_(value)
    assert any(gradient.abs().max() > 1e-6 for gradient in gradients[0])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [BinaryTrees, DependencyTrees])
def test_random_trees_are_trees(kind: type[TreeAnnotator]) -> None:
    random = np.random.default_rng(0)
    for tokens in (1, 2, 3, 20):
        trees = [random_dependencies(tokens, random) for _ in range(20)]
        for tree in trees:
            made = kind.from_dependencies(tree)
            assert len(made) == tokens
            kind.check(made)
    assert len({tree.tobytes() for tree in trees}) > 10


def test_a_row_of_the_page_worked_by_hand() -> None:
    baseline = Speed("generalized", 10, [2.0, 2.0, 4.0], [1.0, 1.0, 1.0])
    speed = Speed("nse", 1234, [1.0, 1.0, 2.0], [1.0, 2.0, 1.0])
    # 1,000 tokens a second; 100 tokens of the loop in 1 s: 10, 20 and 5 times as long.
    row = page_row(speed, baseline, tokens=1000, loop_tokens=100)
    assert row == ["300D NSE", "1,234", "1,000", "2.00", "100", "**10.0** (5.0 to 20.0)"]
    slow = Speed("nse", 1234, [1.0, 1.0, 1.0], [0.3, 0.3, 0.3])
    assert page_row(slow, baseline, 1000, 100)[-1].endswith("below the goal of 5")
