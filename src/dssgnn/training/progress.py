"""A progress bar for `fit`: loss, validation Brier and time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    label: str, epochs: int, quiet: bool = False
) -> Iterator[Callable[[dict[str, float]], None]]:
    """Show a bar on stderr while the block runs; give the function that `fit` calls each epoch."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed:.0f}/{task.total:.0f}  loss {task.fields[loss]:.4f}"),
        TextColumn("val Brier {task.fields[brier]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task(label, total=epochs, loss=float("nan"), brier=float("nan"))

        def update(row: dict[str, float]) -> None:
            bar.update(task, completed=row["epoch"] + 1, loss=row["loss"], brier=row["val_brier"])

        yield update
