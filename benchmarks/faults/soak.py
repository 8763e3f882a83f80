"""Many clients at once, some slow, some sending garbage, some hanging up.

Run with `python -m benchmarks.faults.soak [SECONDS] [CLIENTS]` (default: 60 seconds, 200 clients).
Right requests must get right answers, nobody a 5xx except 503, and the memory of the service must
not grow.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

SECONDS, CLIENTS, SEED = 60, 200, 0
#: how far a vector over HTTP may be from that of the model in this process
TOLERANCE = 1e-5
SENTENCES = [
    f"{subject} {verb} {place}."
    for subject in ("A small dog", "The old man", "Two children", "An animal", "Somebody")
    for verb in ("runs", "is sleeping", "looks around", "eats a meal")
    for place in ("in the park", "at home", "near the sea", "under a tree")
]


@dataclass
class Outcome:
    """What happened.

    Attributes:
        answers: how often every status was answered, by kind of client.
        wrong: right requests that got a wrong answer.
        memory: megabytes of the service, once per second.
    """

    answers: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: int = 0
    memory: list[float] = field(default_factory=list)

    def count(self, kind: str, status: str) -> None:
        """Counts one request."""
        self.answers.setdefault(kind, Counter())[status] += 1

    def failures(self) -> list[str]:
        """Returns what must not happen and did."""
        problems = [
            f"{kind}: {count} x {status}"
            for kind, statuses in self.answers.items()
            for status, count in statuses.items()
            if status.startswith("5") and status != "503"
        ]
        if self.wrong:
            problems.append(f"{self.wrong} wrong answers")
        # The first third fills tables and caches.
        first, last = np.array_split(self.memory[len(self.memory) // 3 :], 2)
        if len(first) and max(last) > 1.1 * max(first):
            problems.append(f"memory grew from {max(first):.0f} to {max(last):.0f} MB")
        return problems


@contextmanager
def service() -> Iterator[tuple[int, int]]:
    """Runs `genpool serve` with the embedded models; yields its process id and port."""
    command = [sys.executable, "-m", "genpool", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the service has no output")
            line = process.stdout.readline()
            matched = re.search(r":(\d+) ", line)
            if matched is None:
                raise RuntimeError(f"the service did not start: {line}")
            yield process.pid, int(matched[1])
        finally:
            process.terminate()


class Clients:
    """The kinds of clients; each method is one request on a connection of its own.

    Args:
        port: of the service.
        expected: the vectors of SENTENCES, of length 1.
        outcome: where everything is counted.
    """

    def __init__(self, port: int, expected: dict[str, Any], outcome: Outcome) -> None:
        self.port, self.expected, self.outcome = port, expected, outcome
        self.random = random.Random(SEED)

    async def right(self) -> None:
        """Sends one to four sentences and compares the vectors."""
        texts = self.random.choices(SENTENCES, k=self.random.randint(1, 4))
        status, body = await self.post("/v1/embeddings", {"input": texts})
        self.outcome.count("right", status)
        if status == "200":
            vectors = np.array([row["embedding"] for row in json.loads(body)["data"]])
            expected = np.array([self.expected[text] for text in texts])
            self.outcome.wrong += int(np.abs(vectors - expected).max() > TOLERANCE)

    async def other_endpoints(self) -> None:
        """Asks for a similarity, a label or an explanation."""
        pair = self.random.sample(SENTENCES, 2)
        path, body = self.random.choice(
            [
                ("/similarity", {"first": pair[0], "second": pair[1]}),
                ("/classify", {"input": [pair]}),
                ("/explain", {"input": pair, "dimension_weights": True}),
            ]
        )
        status, content = await self.post(path, body)
        self.outcome.count("other endpoints", status)
        if status == "200" and path == "/similarity":
            cosine = float(self.expected[pair[0]] @ self.expected[pair[1]])
            error = abs(json.loads(content)["similarities"][0][0] - cosine)
            self.outcome.wrong += int(error > TOLERANCE)

    async def slow(self) -> None:
        """Sends its request a few bytes at a time."""
        status, _ = await self.post("/v1/embeddings", {"input": SENTENCES[0]}, pause=0.05)
        self.outcome.count("slow", status)

    async def hangs_up(self) -> None:
        """Leaves in the middle of the request, or before the answer."""
        content = request("/explain", json.dumps({"input": SENTENCES[0]}).encode())
        length = self.random.choice([20, len(content) - 5, len(content)])
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(content[:length])
        await writer.drain()
        writer.close()
        self.outcome.count("hangs up", "left")

    async def garbage(self) -> None:
        """Sends what is no JSON, no text, too much, or no HTTP at all."""
        noise = self.random.randbytes(200)
        kind, content = self.random.choice(
            [
                ("no JSON", request("/v1/embeddings", noise)),
                ("no text", request("/classify", b'{"input": [[1, {}]]}')),
                ("too large", request("/v1/embeddings", b" " * (5 << 20))),
                ("no HTTP", noise + b"\r\n\r\n"),
            ]
        )
        status, _ = await self.send(content)
        self.outcome.count(kind, status)

    async def post(self, path: str, body: object, pause: float = 0.0) -> tuple[str, bytes]:
        """Returns the status and the body of an answer."""
        return await self.send(request(path, json.dumps(body).encode()), pause)

    async def send(self, content: bytes, pause: float = 0.0) -> tuple[str, bytes]:
        """Returns the status and the body of the answer to some bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for part in (
                [content[at : at + 16] for at in range(0, len(content), 16)] if pause else [content]
            ):
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
            answer = await reader.read()
        except ConnectionError:
            return "closed", b""
        finally:
            writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return (head.split(b" ")[1].decode() if head else "closed"), body


def request(path: str, content: bytes) -> bytes:
    """Returns the bytes of a request whose connection is closed afterwards."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def megabytes(process: int) -> float:
    """Returns the resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    kilobytes = re.search(r"VmRSS:\s+(\d+)", status)
    return int(kilobytes[1]) / 1024 if kilobytes else 0.0


async def soak(
    process: int, port: int, expected: dict[str, Any], clients: int, seconds: float
) -> Outcome:
    """Returns what happened while many clients did their worst."""
    outcome = Outcome()
    kinds = Clients(port, expected, outcome)
    shares: list[tuple[Callable[[], Awaitable[None]], float]] = [
        (kinds.right, 0.6),
        (kinds.other_endpoints, 0.1),
        (kinds.slow, 0.1),
        (kinds.hangs_up, 0.1),
        (kinds.garbage, 0.1),
    ]
    end = monotonic() + seconds

    async def client(act: Callable[[], Awaitable[None]]) -> None:
        while monotonic() < end:
            await act()

    async def watch() -> None:
        while monotonic() < end:
            outcome.memory.append(megabytes(process))
            await asyncio.sleep(1)

    acts = [act for act, share in shares for _ in range(round(share * clients))]
    await asyncio.gather(watch(), *(client(act) for act in acts))
    return outcome


def run(clients: int = CLIENTS, seconds: float = SECONDS) -> Outcome:
    """Starts a service and lets the clients at it."""
    from genpool import SentenceEncoder

    vectors = SentenceEncoder.from_pretrained().encode(SENTENCES, normalize_embeddings=True)
    expected = dict(zip(SENTENCES, vectors, strict=True))
    with service() as (process, port):
        return asyncio.run(soak(process, port, expected, clients, seconds))


def main() -> None:
    """Prints the counts; the exit code is 1 if something happened that must not."""
    arguments = [int(argument) for argument in sys.argv[1:]]
    seconds, clients = [*arguments, *(SECONDS, CLIENTS)[len(arguments) :]]
    outcome = run(clients, seconds)
    for kind, statuses in sorted(outcome.answers.items()):
        counts = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
        print(f"{kind}: {counts}")
    third = len(outcome.memory) // 3
    print(
        f"memory: {max(outcome.memory[: third + 1]):.0f} MB, at the end {outcome.memory[-1]:.0f} MB"
    )
    problems = outcome.failures()
    print("\n".join(problems) or "nothing failed")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
