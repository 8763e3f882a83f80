"""Rows about a training step: against the textbook model, and against the limit of sgemm."""

from __future__ import annotations

import statistics

import torch
from torch.nn import functional

from benchmarks.speed.harness import Row, interleaved, ratios, sgemm_work
from benchmarks.speed.limit import training_operations
from benchmarks.speed.sizes import (
    MULTINLI,
    REVIEWS,
    SNLI,
    SNLI_SORTED,
    Size,
    make_batch,
    make_model,
)
from benchmarks.speed.textbook import TextbookModel, sides_of

GOALS = {
    "snli": (1.7, 0.75),
    "snli-sorted": (1.7, 0.75),
    "multinli": (1.6, 0.70),
    "reviews": (1.8, 0.65),
}
BATCHES = 3


def training_rows(size: Size, rounds: int = 5) -> list[Row]:
    """Forward, backward, clip and Adam over a few batches, ours and the textbook's in turns."""
    ours = make_model(size).train()
    theirs = TextbookModel(ours).train()
    batches = [make_batch(ours, size, seed) for seed in range(BATCHES)]
    padded = [sides_of(batch, size.sides) for batch in batches]
    labels = torch.randint(0, size.classes, (size.examples,))

    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, inputs: list) -> None:
        for batch in inputs:
            output = model(batch)
            logits = output if isinstance(output, torch.Tensor) else output.logits
            optimizer.zero_grad()
            functional.cross_entropy(logits, labels).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()

    def adam(model: torch.nn.Module) -> torch.optim.Optimizer:
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return torch.optim.Adam(trained, lr=1e-4, fused=True)

    optimizers = adam(ours), adam(theirs)
    multiply, operations = sgemm_work()
    seconds = interleaved(
        {
            "ours": lambda: step(ours, optimizers[0], batches),
            "theirs": lambda: step(theirs, optimizers[1], padded),
            "sgemm": lambda: [multiply() for _ in range(20)],
        },
        rounds,
    )
    ratio, spread = ratios(seconds["theirs"], seconds["ours"])
    needed = sum(training_operations(ours, batch) for batch in batches)
    rates = [20 * operations / time for time in seconds["sgemm"]]
    shares = [needed / rate / time for rate, time in zip(rates, seconds["ours"], strict=True)]
    rate = statistics.median(rates) / 1e9
    note = f"{statistics.median(seconds['ours']) / BATCHES:.3f} s a step, sgemm {rate:.0f} GFLOP/s"
    goal, share_goal = GOALS[size.name]
    return [
        Row(f"training-{size.name}", ratio, spread, goal, note=note),
        Row(
            f"limit-{size.name}",
            statistics.median(shares),
            (min(shares), max(shares)),
            share_goal,
            note=f"{needed / 1e9 / BATCHES:.0f} GFLOP a step, sgemm {rate:.0f} GFLOP/s",
        ),
    ]


SIZES = {size.name: size for size in (SNLI, SNLI_SORTED, MULTINLI, REVIEWS)}
