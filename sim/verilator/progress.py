"""Progress of a build, for a terminal and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["ProgressHook", "showing_progress"]

ProgressHook = Callable[[str, float], None]
"""Called with the current step and the completed fraction of the whole build, from 0 to 1."""


@contextmanager
def showing_progress(title: str, hook: ProgressHook | None) -> Iterator[ProgressHook]:
    """``hook`` if given, else a bar on standard error if that is a terminal, else a hook that does nothing."""
    console = Console(stderr=True)
    if hook is not None:
        yield hook
    elif not console.is_terminal:
        yield lambda step, done: None
    else:
        columns = (TextColumn(title), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda step, done: bar.update(task, description=step, completed=done)
