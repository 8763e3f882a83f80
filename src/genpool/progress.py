"""Progress of a long job: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

#: between two plain lines
PLAIN_LINE_SECONDS = 10.0

Done = Callable[..., None]


@contextmanager
def progress(
    what: str, total: int | None, shown: bool = True, unit: str = "/s", earlier: int = 0
) -> Iterator[Done]:
    """Yields a function `done(count, note="")`, to be called when `count` more items are done.

    `total` is None if it is not known, which leaves out the time left; `earlier` items were done
    before, which the rate does not count. The note, such as a score, is shown behind the rate.

    Example:
        >>> with progress("encoding", len(batches)) as done:
        ...     for batch in batches:
        ...         encode(batch)
        ...         done(1)
    """
    if not shown:
        yield lambda count, note="": None
        return
    # Imported here: `import genpool` should cost little more than torch does.
    from rich.console import Console

    console = Console(stderr=True)
    bar: Any = _bar(console) if console.is_terminal or console.is_jupyter else None
    task = bar and bar.add_task(what, total=total, completed=earlier, rate="", note="")
    finished = earlier
    start = last = time.monotonic()

    def advance(count: int, note: str = "") -> None:
        nonlocal finished, last
        finished += count
        now = time.monotonic()
        rate = (finished - earlier) / max(now - start, 1e-9)
        if bar:
            bar.update(task, completed=finished, rate=f"{rate:,.0f}{unit}", note=note)
        elif now - last >= PLAIN_LINE_SECONDS or finished == total:
            last = now
            of, left = f"/{total:,}" if total else "", ""
            if total and finished < total:
                left = f", {(total - finished) / rate:,.0f} s left"
            text = f"{what}: {finished:,}{of} ({rate:,.0f}{unit}{left}) {note}".rstrip()
            console.print(text, highlight=False, markup=False)

    with bar or nullcontext():
        yield advance


def _bar(console: Any) -> Any:
    from rich import progress as rich

    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}", markup=False),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[note]}", markup=False),
        console=console,
    )
