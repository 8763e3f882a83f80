"""Checkpoints and model folders in which a bit was flipped or the end of a file is missing.

Run with `python -m benchmarks.faults.damage [COUNT]` (1,000 of each). The newest of two
checkpoints is damaged: the one before it must be used, with a warning. A model folder must be
refused, or be the same model where only white space or the entry "checksums" itself was hit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.faults.cases import Problem, Tally, count_argument, main, run_cases
from benchmarks.faults.model_folders import make_folders, vectors
from genpool.errors import FolderError
from genpool.training.run_folder import load_checkpoint, save_checkpoint

COUNT, SEED = 1000, 0


def damage(content: bytes, chance: random.Random) -> bytes:
    """Returns a file with a flipped bit, or without its end."""
    place = chance.randrange(len(content))
    if chance.random() < 0.5:
        return content[:place]
    return (
        content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
    )


def checkpoint_case(place: Path) -> Callable[[int], str]:
    """Returns the cases of checkpoints."""
    folder = place / "checkpoints"
    for step in (1, 2):
        values = {"model.a": torch.full((40, 7), float(step)), "adam.step": torch.tensor(step)}
        save_checkpoint(folder, step, {"step": step, "rate": 0.1, "name": "é"}, values)
    newest = folder / "step-000000002.safetensors"
    content = newest.read_bytes()

    def case(number: int) -> str:
        chance = random.Random(f"{SEED} checkpoints {number}")
        newest.write_bytes(damage(content, chance))
        loaded = load_checkpoint(folder)
        if loaded is None:
            raise Problem("no checkpoint was found")
        state, tensors, warnings = loaded
        step = state["step"]
        if not bool((tensors["model.a"] == step).all()) or state["rate"] != 0.1:
            raise Problem(f"a damaged checkpoint of step {step} was used")
        if step == 1 and len(warnings) == 1:
            return "the one before it used, with a warning"
        if step == 2 and not warnings:
            return "used, and not changed in any value"
        raise Problem(f"step {step} with {len(warnings)} warnings")

    return case


def folder_case(place: Path) -> Callable[[int], str]:
    """Returns the cases of model folders."""
    folders = make_folders(place)
    expected = [vectors(folder) for folder in folders]
    contents = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]

    def case(number: int) -> str:
        chance = random.Random(f"{SEED} damaged folders {number}")
        which = chance.randrange(len(folders))
        for name, content in contents[which].items():
            (folders[which] / name).write_bytes(content)
        name = chance.choice(["config.json", "model.safetensors", "tokenizer.json"])
        (folders[which] / name).write_bytes(damage(contents[which][name], chance))
        if not np.array_equal(vectors(folders[which]), expected[which]):
            raise Problem(f"another model was loaded: {name}")
        return "the same model"

    return case


def run(count: int) -> Iterator[tuple[str, Tally]]:
    """Yields what happened, for checkpoints and for folders."""
    with TemporaryDirectory() as folder:
        yield "checkpoints", run_cases(checkpoint_case(Path(folder)), count)
        yield "model folders", run_cases(folder_case(Path(folder)), count, (FolderError,))


if __name__ == "__main__":
    main("damaged", run(count_argument(COUNT)))
