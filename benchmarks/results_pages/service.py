"""Throughput and latency of the service on loopback, and what faults and a fuzzer do to it.

    python -m benchmarks.results_pages.service            prints the figures
    python -m benchmarks.results_pages.service --write    also writes results/service.md

`--quick` leaves the soak test and the fuzzer out, for a look at the throughput.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.faults import soak
from benchmarks.faults.fuzz import fuzz, fuzzed_service
from benchmarks.pages import markdown_table, one_line, versions_line, write_page
from benchmarks.speed.http_servers import SERVERS
from benchmarks.speed.sentences import make_sentences

CLIENTS, ROUNDS, ROUND_SECONDS, FUZZ_CASES = 32, 5, 4.0, 1000
HEADER = ["server", "requests/s", "ratio", "median", "p99", "p99 / median", "CPU per request"]
FUZZ_HEADER = ["endpoint", "cases", "answers"]
THROUGHPUT_TEXT = f"""
Requests for the vector of one sentence (the SNLI test set) on loopback, {CLIENTS} clients that each
send one after the other on an open connection (genpool serve answers in base64, as OpenAI's clients
ask for); the embedded encoder everywhere, {os.cpu_count()} cores for the server and the clients
together, {torch.get_num_threads()} threads for PyTorch (its default, unless OMP_NUM_THREADS says
otherwise). {ROUNDS} rounds of {ROUND_SECONDS:g} seconds per server, in turns. The ratio is to the
service with batches of one sentence, round by round: median and range. CPU is the processor time
of the server, which depends least on what else runs.
"""
SOAK_TEXT = """
`python -m benchmarks.faults.soak`, in the same run: 60 % of the clients send right requests whose
vectors are compared with the model's, 10 % use other endpoints, 10 % send a few bytes at a time,
10 % hang up in the middle, 10 % send garbage.
"""
FUZZ_TEXT = f"""
`python -m benchmarks.faults.fuzz`, in the same run: {FUZZ_CASES:,} requests per endpoint, made up
by schemathesis from /openapi.json; half of them fit the schema, half break it. (GET endpoints have
no input: few different requests exist.) No answer was 500 or more, or of another shape than the
schema says.
"""


class Measured(NamedTuple):
    """Requests per second, the latencies of all requests, and the server's processor time."""

    throughput: float
    latencies: list[float]
    cpu_seconds: float


class Server(NamedTuple):
    """A server that runs: its port, and the id of its process."""

    port: int
    process: int

    def cpu_seconds(self) -> float:
        """Returns the processor time of all its threads so far."""
        # After the name, which may have spaces: the 12th and 13th values are user and system time.
        values = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(name: str) -> Iterator[Server]:
    """Runs one of the servers in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.http_servers", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError(f"{name} has no output")
            yield Server(int(process.stdout.readline()), process.pid)
        finally:
            process.terminate()


def requests_of(sentences: list[str]) -> list[bytes]:
    """Returns one request for each sentence, ready to be sent."""
    bodies = [
        json.dumps({"input": sentence, "encoding_format": "base64"}).encode()
        for sentence in sentences
    ]
    head = "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]


async def load(server: Server, requests: list[bytes], clients: int, seconds: float) -> Measured:
    """Returns what clients measured that send one request after the other, on open connections."""
    latencies: list[float] = []
    start, cpu_before = perf_counter(), server.cpu_seconds()

    async def client(place: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while (begin := perf_counter()) < start + seconds:
            writer.write(requests[place % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            latencies.append(perf_counter() - begin)
            place += clients
        writer.close()

    await asyncio.gather(*(client(place) for place in range(clients)))
    throughput = len(latencies) / (perf_counter() - start)
    return Measured(throughput, latencies, server.cpu_seconds() - cpu_before)


def measure_servers(clients: int) -> dict[str, list[Measured]]:
    """Returns the rounds of every server, measured in turns while all of them run."""
    requests = requests_of(make_sentences(2000))
    with ExitStack() as stack:
        servers = {name: stack.enter_context(running(name)) for name in SERVERS}
        for server in servers.values():  # fills tables and caches
            asyncio.run(load(server, requests, clients, ROUND_SECONDS / 2))
        rounds: dict[str, list[Measured]] = {name: [] for name in SERVERS}
        for _ in range(ROUNDS):
            for name, server in servers.items():
                rounds[name].append(asyncio.run(load(server, requests, clients, ROUND_SECONDS)))
    return rounds


def throughput_rows(rounds: dict[str, list[Measured]]) -> list[list[str]]:
    """Returns a row per server; the ratio is to one request at a time, round by round."""
    baseline = rounds["genpool serve, one request at a time"]
    rows = []
    for name, measured in rounds.items():
        pairs = zip(measured, baseline, strict=True)
        ratios = [one.throughput / other.throughput for one, other in pairs]
        latencies = np.array([second for one in measured for second in one.latencies])
        median, p99 = np.quantile(latencies, [0.5, 0.99])
        rows.append(
            [
                name,
                f"{statistics.median(one.throughput for one in measured):,.0f}",
                f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{1000 * median:.1f} ms",
                f"{1000 * p99:.1f} ms",
                f"{p99 / median:.1f}",
                f"{1000 * sum(one.cpu_seconds for one in measured) / len(latencies):.2f} ms",
            ]
        )
    return rows


def soak_part() -> str:
    """Returns the counts of the soak test as a part of the page."""
    outcome = soak.run()
    lines = [
        [kind, ", ".join(f"{count:,} x {status}" for status, count in sorted(statuses.items()))]
        for kind, statuses in sorted(outcome.answers.items())
    ]
    third = len(outcome.memory) // 3
    return "\n\n".join(
        [
            f"## {soak.CLIENTS} clients for {soak.SECONDS} seconds",
            one_line(SOAK_TEXT),
            markdown_table(["clients", "answers"], lines),
            f"Wrong answers: {outcome.wrong}. Memory of the service: at most "
            f"{max(outcome.memory[: third + 1]):.0f} MB in the first third, at most "
            f"{max(outcome.memory[third:]):.0f} MB later. "
            f"Failures: {'; '.join(outcome.failures()) or 'none'}.",
        ]
    )


def fuzz_part() -> str:
    """Returns the counts of the fuzzer as a part of the page; raises if it finds something."""
    with fuzzed_service() as app:
        counted = fuzz(app, FUZZ_CASES)
    rows = [
        [
            label,
            f"{sum(statuses.values()):,}",
            ", ".join(f"{count:,} x {status}" for status, count in sorted(statuses.items())),
        ]
        for label, statuses in counted.items()
    ]
    return "\n\n".join(
        [
            "## A schema fuzzer",
            one_line(FUZZ_TEXT),
            markdown_table(FUZZ_HEADER, rows),
        ]
    )


def main() -> None:
    """Measures everything in one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    rows = throughput_rows(measure_servers(CLIENTS))
    parts = [
        "# The HTTP service",
        "    python -m benchmarks.results_pages.service --write",
        f"{versions_line()}.",
        f"## Throughput at {CLIENTS} clients",
        one_line(THROUGHPUT_TEXT),
        markdown_table(HEADER, rows),
        f"Before the measurement {load_before:.1f} other processes wanted a core at a time "
        "(load average of a minute); above 0.5, the figures but CPU are too low.",
    ]
    if not options.quick:
        parts += [soak_part(), fuzz_part()]
    if options.write:
        write_page("service", parts)
    else:
        print("\n\n".join(parts))


if __name__ == "__main__":
    main()
