"""Peak memory, time and page faults of a long stream of texts, each count in a process of its own.

python -m benchmarks.speed.stream_memory COUNT [CHARACTERS]    one process, texts of that length
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import torch

from benchmarks.speed.harness import Row, ratios
from benchmarks.speed.memory import status_mb
from genpool import SentenceEncoder
from genpool.inference.quick import QuickEncoder

FEW, MANY = 20_000, 100_000
TEXT_CHARACTERS = 200
#: the memory of many texts may be so many times that of few
GOAL = 1.1


@dataclass(frozen=True)
class StreamCost:
    """What a process needed to encode a stream of texts in 8 bits, one thread.

    Attributes:
        texts: their number.
        characters: the length of each.
        peak_mb: the largest resident memory.
        user: seconds of user time.
        system: seconds of system time.
        faults: page faults.
    """

    texts: int
    characters: int
    peak_mb: float
    user: float
    system: float
    faults: int


def generated_texts(
    count: int, words: tuple[str, ...], characters: int = TEXT_CHARACTERS
) -> Iterator[str]:
    """Yields texts of so many characters, of words drawn by their rank."""
    draw = random.Random(0)
    for _ in range(count):
        text = ""
        while len(text) < characters:
            # Frequencies fall with the rank, as in a language: most words of a text are common.
            text += words[int(len(words) ** draw.random()) - 1] + " "
        yield text[:characters]


def encode_texts(count: int, characters: int = TEXT_CHARACTERS) -> StreamCost:
    """Encodes texts in this process and returns what it has needed since it started."""
    torch.set_num_threads(1)
    encoder = SentenceEncoder.from_pretrained()
    words = encoder.text.vocabulary.words[4:]
    texts = generated_texts(count, words, characters)
    for _ in QuickEncoder(encoder, int8=True).encode_stream(texts):
        pass
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # Not ru_maxrss: a process inherits that of the one that started it.
    peak = status_mb("VmHWM")
    return StreamCost(count, characters, peak, usage.ru_utime, usage.ru_stime, usage.ru_minflt)


def cost_of(count: int) -> StreamCost:
    """Returns the cost of a stream, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.stream_memory", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return StreamCost(**json.loads(done.stdout))


def stream_memory_rows(rounds: int) -> list[Row]:
    """Returns the row of the bench: the peak of many texts as a multiple of that of few."""
    costs = {count: [cost_of(count) for _ in range(min(rounds, 2))] for count in (FEW, MANY)}
    peaks = {count: [cost.peak_mb for cost in measured] for count, measured in costs.items()}
    ratio, spread = ratios(peaks[MANY], peaks[FEW])
    note = f"{peaks[MANY][0]:,.0f} MB for {MANY:,} texts, {peaks[FEW][0]:,.0f} MB for {FEW:,}"
    return [Row("memory-stream", ratio, spread, GOAL, True, note)]


if __name__ == "__main__":
    print(json.dumps(asdict(encode_texts(*map(int, sys.argv[1:])))))
