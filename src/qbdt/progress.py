"""Progress of long work: the protocol that the library calls, the bar of a terminal, and the lines of a log.

A `Progress` opens a stage and yields a function that is called with the number of units done since the last call:

>>> with silent("reading", total=10) as advance:
...     advance(10)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

__all__ = ["Advance", "Progress", "lines", "silent", "terminal", "visible"]

Advance: TypeAlias = Callable[[int], None]
Progress: TypeAlias = Callable[[str, int | None], AbstractContextManager[Advance]]


@contextmanager
def silent(description: str, total: int | None = None) -> Iterator[Advance]:
    """Show nothing: the default everywhere in the library."""
    yield lambda done: None


@contextmanager
def terminal(description: str, total: int | None = None) -> Iterator[Advance]:
    """Draw a bar with rate and remaining time on standard error; it vanishes when the stage ends."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s", style="progress.data.speed")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.advance(task, done)


EVERY = 30.0
"""Seconds between two lines of a log."""


def lines(every: float = EVERY, *, last: bool = False) -> Progress:
    """Progress for logs: a line on standard error every so many seconds, with `last` also one at the end of a stage."""

    @contextmanager
    def stage(description: str, total: int | None = None) -> Iterator[Advance]:
        done, start = 0, time.monotonic()
        shown = start

        def say() -> None:
            share = "" if not total else f" of {total:,} ({min(done / total, 1.0):.0%})"
            print(f"{description}: {done:,}{share}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)

        def advance(more: int) -> None:
            nonlocal done, shown
            done += more
            if time.monotonic() - shown >= every:
                shown = time.monotonic()
                say()

        yield advance
        if last:
            say()

    return stage


def visible(*, last: bool = False) -> Progress:
    """Return the bar where standard error is a terminal, and the lines of a log where it is not."""
    return terminal if sys.stderr.isatty() else lines(last=last)
