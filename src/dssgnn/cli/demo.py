"""`dssgnn demo`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Where the model folder and the page go.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Of the weights and the training.")] = 0,
    epochs: Annotated[int | None, typer.Option(help="Train at most this long.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> None:
    """Train on an embedded Minesweeper board, beside a GCN, and print how far to trust each."""
    from dssgnn.demo import run

    run(out, seed=seed, epochs=epochs, quiet=quiet)
