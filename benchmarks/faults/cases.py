"""Runs thousands of cases in child processes that are watched: time, memory, code that is run.

A case is a function of its number. It returns what happened ("refused", "loaded", ...) or raises.
The child may not take more than 1 GB beyond what it has at its start (more only where a script says
so), a case not more than CASE_SECONDS, and nothing may unpickle, start a program or open a
connection. A child that dies is noticed, and the cases behind it go on in another.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import IO, Any, NamedTuple

#: cases of one child process
CHUNK = 200
CASE_SECONDS = 20
MEMORY_BYTES = 2**30
#: audit events that a file of a stranger must never lead to
FORBIDDEN = (
    "pickle.find_class",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
    "socket.connect",
    "socket.getaddrinfo",
)


class Problem(Exception):
    """A case that ended in a way that must not be."""


class Limits(NamedTuple):
    """What a case may do: exceptions that are the outcome "refused", seconds, bytes."""

    allowed: tuple[type[BaseException], ...]
    seconds: int
    memory: int


@dataclass
class Tally:
    """What happened.

    Attributes:
        counts: how often each outcome was.
        problems: the cases that must not be, with what happened.
        peak: the largest memory of a child beyond its start, in bytes.
        slowest: seconds of the slowest case.
    """

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    peak: int = 0
    slowest: float = 0.0

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.most_common())
        return (
            f"{self.counts.total():,} cases: {counts}; problems: {len(self.problems)}; "
            f"slowest {self.slowest:.2f} s, memory at most +{self.peak / 1e6:.0f} MB"
        )


def run_cases(
    case: Callable[[int], str],
    count: int,
    allowed: tuple[type[BaseException], ...] = (),
    first: int = 0,
    seconds: int = CASE_SECONDS,
    memory: int = MEMORY_BYTES,
) -> Tally:
    """Returns what happened in `count` cases.

    Args:
        case: called with the number of a case; returns the name of the outcome.
        count: the number of cases.
        allowed: exceptions that are the outcome "refused". Default: none.
        first: the number of the first case. Default: 0.
        seconds: time of one case. Default: CASE_SECONDS.
        memory: bytes that a child may take. Default: MEMORY_BYTES.
    """
    limits = Limits(allowed, seconds, memory)
    tally, number = Tally(), first
    while number < first + count:
        end = min(number + CHUNK, first + count)
        number = _run_chunk(case, range(number, end), limits, tally)
        if number < first + count:
            print(f"so far {tally}", file=sys.stderr, flush=True)
    return tally


def main(title: str, runs: Iterable[tuple[str, Tally]]) -> None:
    """Prints every tally as soon as it is there; the exit code is 1 if there is a problem."""
    failed = False
    for name, tally in runs:
        print(f"{title}, {name}: {tally}", flush=True)
        for problem in tally.problems[:20]:
            print(problem, flush=True)
        failed |= bool(tally.problems)
    sys.exit(failed)


def count_argument(default: int) -> int:
    """Returns the number of cases that the command line asks for."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else default


def _run_chunk(
    case: Callable[[int], str],
    numbers: range,
    limits: Limits,
    tally: Tally,
) -> int:
    """Runs cases in a child; returns the number of the first that was not run."""
    receive, send = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(receive)
        with os.fdopen(send, "w", encoding="utf-8") as lines:
            _child(case, numbers, limits, lines)
        os._exit(0)
    os.close(send)
    following = numbers.start
    with os.fdopen(receive, encoding="utf-8") as lines:
        for line in lines:
            outcome = json.loads(line)
            following = outcome["number"] + 1
            tally.counts[outcome["name"]] += 1
            tally.peak = max(tally.peak, outcome["memory"])
            tally.slowest = max(tally.slowest, outcome["seconds"])
            if outcome["problem"]:
                tally.problems.append(f"case {outcome['number']}: {outcome['problem']}")
    status = os.waitpid(child, 0)[1]
    if following < numbers.stop:
        tally.counts["died"] += 1
        tally.problems.append(f"case {following}: the process died, status {status}")
        following += 1
    return following


def _child(
    case: Callable[[int], str],
    numbers: range,
    limits: Limits,
    lines: IO[str],
) -> None:
    start = _memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (start + limits.memory, resource.RLIM_INFINITY))
    broken: list[str] = []
    sys.addaudithook(lambda event, _: broken.append(event) if event in FORBIDDEN else None)
    signal.signal(signal.SIGALRM, _too_slow)
    resident = _memory("VmRSS")
    for number in numbers:
        broken.clear()
        # If not even Python's own handler runs any more, the process says where, and ends.
        faulthandler.dump_traceback_later(3 * limits.seconds, exit=True)
        signal.alarm(limits.seconds)
        began = perf_counter()
        name, problem = _outcome(case, number, limits.allowed)
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        if broken:
            name, problem = "forbidden", f"it led to {broken[0]}"
        report = {
            "number": number,
            "name": name,
            "problem": problem,
            "seconds": perf_counter() - began,
            "memory": max(0, _memory("VmHWM") - resident),
        }
        lines.write(json.dumps(report) + "\n")
        lines.flush()


def _outcome(
    case: Callable[[int], str], number: int, allowed: tuple[type[BaseException], ...]
) -> tuple[str, str | None]:
    try:
        return case(number), None
    except allowed:
        return "refused", None
    except Problem as error:
        return "wrong", str(error)
    except BaseException:  # a panic of Rust is no Exception
        return "traceback", traceback.format_exc(limit=-8)


def _too_slow(*_: Any) -> None:
    raise Problem("it took too long")


def _memory(name: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
