"""Progress of long work: the protocol that the library calls, and the bar that a terminal shows.

A `Progress` opens a stage and yields a function that is called with the number of units done since the last call:

>>> with silent("reading", total=10) as advance:
...     advance(10)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

__all__ = ["Advance", "Progress", "silent", "terminal"]

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
