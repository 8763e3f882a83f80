"""Progress of a long job: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

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
    if not (console.is_terminal or console.is_jupyter):
        yield _plain_lines(console, what, total, unit, earlier)
        return
    with _bar(console) as bar:
        task = bar.add_task(what, total=total, completed=earlier, rate="", note="")
        start = time.monotonic()

        def advance(count: int, note: str = "") -> None:
            finished = bar.tasks[task].completed + count
            rate = (finished - earlier) / max(time.monotonic() - start, 1e-9)
            bar.update(task, advance=count, rate=f"{rate:,.0f}{unit}", note=note)

        yield advance


def _bar(console: Console) -> Progress:
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


def _plain_lines(console: Console, what: str, total: int | None, unit: str, earlier: int) -> Done:
    start = last = time.monotonic()
    finished = earlier

    def advance(count: int, note: str = "") -> None:
        nonlocal finished, last
        finished += count
        now = time.monotonic()
        if now - last < PLAIN_LINE_SECONDS and finished != total:
            return
        last = now
        rate = (finished - earlier) / max(now - start, 1e-9)
        left = f", {(total - finished) / rate:,.0f} s left" if total and finished < total else ""
        of = f"/{total:,}" if total else ""
        text = f"{what}: {finished:,}{of} ({rate:,.0f}{unit}{left}) {note}".rstrip()
        console.print(text, highlight=False, markup=False)

    return advance
