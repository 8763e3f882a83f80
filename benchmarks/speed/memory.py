"""Peak memory of a training step, each side in a process of its own.

Counted is what a step needs beyond the weights, their gradients and Adam's moments, which both
sides have alike: a small step comes first, then the peak is set back, then the step is measured.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import torch
from torch.nn import functional

from benchmarks.speed.harness import Row, ratios
from benchmarks.speed.sizes import MULTINLI, REVIEWS, SNLI, Size, make_model, make_sentences
from benchmarks.speed.textbook import TextbookModel, sides_of

SIZES = {size.name: size for size in (SNLI, MULTINLI, REVIEWS)}


def memory_rows(rounds: int) -> list[Row]:
    rows = []
    for name in SIZES:
        peaks = {side: [_measured(name, side) for _ in range(min(rounds, 3))] for side in SIDES}
        ratio, spread = ratios(peaks["ours"], peaks["textbook"])
        note = f"{peaks['ours'][0]:.0f} against {peaks['textbook'][0]:.0f} MB above the weights"
        rows.append(Row(f"memory-{name}", ratio, spread, 0.6, True, note))
    return rows


def _measured(name: str, side: str) -> float:
    command = [sys.executable, "-m", "benchmarks.speed.memory", name, side]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def step_memory(size: Size, side: str) -> float:
    """Returns the megabytes that a step adds to the process at its peak."""
    ours = make_model(size).train()
    model = ours if side == "ours" else TextbookModel(ours).train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-4, fused=True)

    def step(examples: int) -> None:
        batch = ours.text.batch(make_sentences(ours, size, 0, examples))
        output = model(batch if side == "ours" else sides_of(batch, size.sides))
        logits = output if isinstance(output, torch.Tensor) else output.logits
        labels = torch.zeros(examples, dtype=torch.long)
        functional.cross_entropy(logits, labels).backward()
        torch.nn.utils.clip_grad_norm_(trained, 10.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    step(2)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    before = status_mb("VmRSS")
    step(size.examples)
    return status_mb("VmHWM") - before


def status_mb(name: str) -> float:
    """Returns a figure of the kernel about this process: VmRSS is now, VmHWM the peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return float(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {name}: this comparison needs Linux")


SIDES = ("ours", "textbook")

if __name__ == "__main__":
    torch.manual_seed(0)
    print(step_memory(SIZES[sys.argv[1]], sys.argv[2]))
