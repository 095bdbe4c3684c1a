"""`dssgnn bench reading`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["reading"]


def reading(
    out: Annotated[Path, typer.Option(help="Results file to write the records into.")] = Path(
        "results/reading.json"
    ),
    nodes: Annotated[int, typer.Option(help="Nodes of the folder of tables.")] = 100_000,
    edges: Annotated[int, typer.Option(help="Edges of the folder of tables.")] = 1_000_000,
    features: Annotated[int, typer.Option(help="Feature columns.")] = 20,
) -> None:
    """Time the reading and checking of a large folder of tables, and its memory."""
    from dssgnn.benchmarks.reading import records
    from dssgnn.benchmarks.records import merge_records

    made = records(nodes, edges, features)
    merge_records(out, made)
    for record in made:
        seconds, peak = record.metrics["seconds"], record.metrics["peak_mb"]
        print(f"{record.variant}: {seconds:.2f} s, peak {peak:.0f} MB")
    print(f"records: {out}")
