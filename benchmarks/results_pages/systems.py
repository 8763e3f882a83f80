"""Tokens per second of a training step: the systems of table 1 beside the stacked BiLSTM.

    python -m benchmarks.results_pages.systems

Every system has its published size and the paper's settings for SNLI. All of them, and a plain loop
over sentences for each, run in one process and take turns. Writes results/systems.md.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.pages import markdown_table, one_line, versions_line, write_page
from benchmarks.speed.harness import interleaved, ratios
from benchmarks.speed.sizes import SNLI, make_sentences, make_text
from genpool.model import Classified, PairClassifier
from genpool.pooling import Pooled
from genpool.recipes import recipe_text
from genpool.reproduction.definitions import EXPERIMENTS, SCALES
from genpool.reproduction.ledger import Ledger
from genpool.reproduction.plan import Plan
from genpool.reproduction.trees import Tree, TreeAnnotator
from genpool.tensors.arrays import pad_annotations
from genpool.text import Batch, TextPipeline
from genpool.training.loop import BatchShare, step_loss
from genpool.training.objective import EncoderLoss, ExtraLoss
from genpool.training.settings import read_settings

#: titles of the systems, as in table 1
TITLES = {row.system: row.title for row in EXPERIMENTS["table1"].rows}
#: the system that the others are compared with
BASELINE = "generalized"
#: the rows of table 1 that are not built from blocks of the paper's own model
NAMES = ("tree-cnn", "spinn", "nti", "nse", "gumbel-300", "gumbel-600", "cafe", "resan")
#: how much faster than a plain loop over sentences every system has to be
GOAL = 5.0
#: the loop is so slow that it gets a part of the batch
LOOP_EXAMPLES = 16
ROUNDS = 3


@dataclass(frozen=True)
class Sentences:
    """Pairs of sentences with random syntax trees: first all first ones, then all second ones."""

    words: list[list[str]]
    dependencies: list[Tree]

    @property
    def examples(self) -> int:
        return len(self.words) // 2

    @property
    def tokens(self) -> int:
        return sum(map(len, self.words))

    def part(self, examples: int) -> Sentences:
        """Returns the first examples."""
        places = [*range(examples), *range(self.examples, self.examples + examples)]
        return Sentences(
            [self.words[place] for place in places], [self.dependencies[place] for place in places]
        )

    def batches(self, model: PairClassifier, size: int) -> list[Batch]:
        """Returns batches of so many sentences, with trees if the model reads them."""
        kind = model.encoder.encoder.annotator_class
        batches = []
        for start in range(0, len(self.words), size):
            batch = model.text.batch(self.words[start : start + size])
            if kind is not None and issubclass(kind, TreeAnnotator):
                dependencies = self.dependencies[start : start + size]
                trees = [kind.from_dependencies(tree) for tree in dependencies]
                padded = pad_annotations(trees, batch.mask.shape[1])
                batch = replace(batch, annotations=torch.from_numpy(padded))
            batches.append(batch)
        return batches


def random_dependencies(tokens: int, random: np.random.Generator) -> Tree:
    """Returns a random projective dependency tree (tokens, 2): roots of spans drawn at random."""
    tree = np.zeros((tokens, 2), dtype=np.int32)
    spans = [(0, tokens, -1)]
    while spans:
        start, end, head = spans.pop()
        if start < end:
            root = int(random.integers(start, end))
            tree[root] = head, random.integers(0, 30)
            spans += [(start, root, root), (root + 1, end, root)]
    return tree


def draw_sentences(model: PairClassifier, examples: int | None = None) -> Sentences:
    """Returns pairs as long as those of SNLI."""
    words = make_sentences(model, SNLI, examples=examples)
    random = np.random.default_rng(0)
    return Sentences(words, [random_dependencies(len(sentence), random) for sentence in words])


def make_system(name: str, text: TextPipeline, overrides: Sequence[str] = ()) -> PairClassifier:
    """Returns a system as `genpool reproduce table1 --scale paper` trains it."""
    plan = Plan(SCALES["paper"], Ledger(Path("cells.jsonl")))
    cell = plan.cell("snli", name, overrides, 0)
    settings = read_settings(recipe_text(cell.recipe), cell.overrides)
    torch.manual_seed(0)
    model = PairClassifier.from_settings(text, settings.model, ("yes", "maybe", "no")).train()
    encoder = model.encoder.encoder
    encoder.set_epoch(settings.training.epochs)  # the phase in which an encoder samples
    return model


def backward(
    model: PairClassifier,
    pooled: Pooled,
    labels: torch.Tensor,
    extra_losses: Sequence[ExtraLoss] = (),
) -> None:
    """Computes the gradients of the training loop's loss."""
    output = Classified(model.mlp(model.features(pooled.vector)), pooled)
    share = BatchShare(np.arange(len(labels)), len(labels), len(labels), 1)
    step_loss(model, output, labels, share, extra_losses)[0].backward()


def train_step(model: PairClassifier, sentences: Sentences) -> Callable[[], None]:
    """Returns a training step: forward, backward, clipping and Adam on one batch."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-4, fused=True)
    (batch,) = sentences.batches(model, len(sentences.words))
    labels = torch.arange(sentences.examples) % 3  # (examples,)
    extra_losses = [EncoderLoss()] if model.encoder.encoder.has_extra_loss else []

    def step() -> None:
        optimizer.zero_grad()
        backward(model, model.encoder(batch), labels, extra_losses)
        torch.nn.utils.clip_grad_norm_(trained, 10.0)
        optimizer.step()

    return step


def plain_loop(model: PairClassifier, sentences: Sentences) -> Callable[[], None]:
    """Returns the same gradients' computation, one sentence after the other.

    Adam and the term of an encoder that samples are left out, in favour of the loop.
    """
    batches = sentences.batches(model, 1)
    labels = torch.arange(sentences.examples) % 3  # (examples,)

    def loop() -> None:
        model.zero_grad()
        pooled = [model.encoder(batch) for batch in batches]
        vectors, heads, _ = zip(*pooled, strict=True)
        backward(model, Pooled(torch.cat(vectors), torch.cat(heads), None), labels)

    return loop


@dataclass(frozen=True)
class Speed:
    """Seconds of one system in every round: of a step, and of the loop over a part of the batch."""

    name: str
    parameters: int
    step: list[float]
    loop: list[float]


def page_row(speed: Speed, baseline: Speed, tokens: int, loop_tokens: int) -> list[str]:
    """Returns the row of a system in the table."""
    rate = tokens / statistics.median(speed.step)
    share, _ = ratios(baseline.step, speed.step)
    loop_rate = loop_tokens / statistics.median(speed.loop)
    times, (low, high) = ratios(
        [seconds / loop_tokens for seconds in speed.loop],
        [seconds / tokens for seconds in speed.step],
    )
    met = "" if times >= GOAL else f", below the goal of {GOAL:g}"
    return [
        TITLES[speed.name],
        f"{speed.parameters:,}",
        f"{rate:,.0f}",
        f"{share:.2f}",
        f"{loop_rate:,.0f}",
        f"**{times:.1f}** ({low:.1f} to {high:.1f}){met}",
    ]


def measure(names: Sequence[str], rounds: int) -> tuple[list[Speed], int, int]:
    """Returns the speed of every system, and the tokens of the batch and of the loop's part."""
    text = make_text()
    models = {name: make_system(name, text) for name in names}
    sentences = draw_sentences(next(iter(models.values())))
    part = sentences.part(LOOP_EXAMPLES)
    sides: dict[str, Callable[[], object]] = {}
    for name, model in models.items():
        sides[f"{name} step"] = train_step(model, sentences)
        sides[f"{name} loop"] = plain_loop(model, part)
    seconds = interleaved(sides, rounds, clock=time.process_time)
    speeds = [
        Speed(
            name,
            sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
            seconds[f"{name} step"],
            seconds[f"{name} loop"],
        )
        for name, model in models.items()
    ]
    return speeds, sentences.tokens, part.tokens


def main() -> None:
    speeds, tokens, loop_tokens = measure((BASELINE, *NAMES), ROUNDS)
    baseline = speeds[0]
    heads = [
        "system",
        "trained parameters",
        "tokens/s of a step",
        "of the stacked BiLSTM's",
        "tokens/s of a plain loop",
        "times the loop",
    ]
    rows = [page_row(speed, baseline, tokens, loop_tokens) for speed in speeds]
    write_page(
        "systems",
        [
            "# Speed of the systems of table 1",
            f"`python -m benchmarks.results_pages.systems`; threads: {torch.get_num_threads()}; "
            f"seed 0; {versions_line()}.",
            one_line(
                f"""A training step (forward, backward, clipping, Adam) on {SNLI.examples} pairs as
                long as those of SNLI, {tokens:,} tokens, at the published sizes, with random syntax
                trees for the systems that read trees, and with sampled choices for those that
                sample. A plain loop computes the same gradients one sentence after the other, with
                the same layers, on {loop_tokens:,} tokens and without Adam. All sides take turns in
                one process, {ROUNDS} rounds; figures are medians, in brackets the range. Seconds
                are those of the process alone (CPU time), because other programs ran on the machine
                at the same time."""
            ),
            markdown_table(heads, rows),
        ],
    )


if __name__ == "__main__":
    main()
