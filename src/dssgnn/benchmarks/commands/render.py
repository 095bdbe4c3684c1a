"""`dssgnn bench render`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["render"]


def render(
    docs: Annotated[Path, typer.Option(help="Folder of Markdown files with table markers.")] = Path("docs"),
    results: Annotated[Path, typer.Option(help="Folder of results files.")] = Path("results"),
) -> None:
    """Write the documentation's tables and figures anew from the results files."""
    from dssgnn.benchmarks.calibration.tables.figures import draw
    from dssgnn.benchmarks.records import read_records
    from dssgnn.benchmarks.render import render as render_tables
    from dssgnn.benchmarks.speed.figures import draw_growth
    from dssgnn.errors import InputError

    if not docs.is_dir():
        raise InputError(f"--docs must be a folder of Markdown files, got {docs}")
    for path in render_tables(docs, results):
        print(f"rendered: {path}")
    file = results / "speed.json"
    try:
        drawn = draw_growth(read_records(file), docs / "figures") if file.exists() else []
        drawn += draw(results, docs / "figures")
    except ModuleNotFoundError:
        print("figures: left as they are, matplotlib is not installed (pip install 'dssgnn[plot]')")
    else:
        for path in drawn:
            print(f"drawn: {path}")
