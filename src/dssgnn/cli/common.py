"""What several commands share: arguments, reading a graph, printing metrics."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dssgnn.data import LoadedGraph

__all__ = ["Graph", "Json", "Model", "Quiet", "print_metrics", "read"]

Graph = Annotated[
    str, typer.Argument(help="A catalog name (dssgnn datasets), a folder of tables, .npz or .graphml.")
]
Model = Annotated[Path, typer.Argument(help="A model folder that dssgnn fit wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def read(graph: str, *, split: int | None = None, **options: Any) -> "tuple[LoadedGraph, str]":
    """A graph by catalog name or by path, and what to call it."""
    from dssgnn.data import load, names, read_graph
    from dssgnn.errors import InputError

    if categorical := options.pop("categorical", ""):
        if graph in names() or graph.endswith(".npz"):
            raise InputError(f"--categorical goes with tables; {graph} has no named columns")
        options["categorical"] = categorical.split(",")
    if options.get("missing", "error") not in ("error", "mean"):
        raise InputError(f"--missing must be error or mean, got {options['missing']!r}")
    if graph in names():
        return read_graph(load(graph, split=split), encoding=options.get("encoding")), graph
    if not Path(graph).exists() and "/" not in graph and "." not in graph:
        raise InputError(f"no graph {graph!r}: neither a catalog name ({', '.join(names())}) nor a path")
    return read_graph(graph, **options), Path(graph).stem or graph


def print_metrics(parts: dict[str, dict[str, float]]) -> None:
    """A line a part of the split."""
    from rich.console import Console
    from rich.table import Table

    table = Table("part", "nodes", "accuracy", "Brier", "NLL", "ECE")
    for part, metrics in parts.items():
        figures = (f"{metrics[key]:.4f}" for key in ("accuracy", "brier", "nll", "ece"))
        table.add_row(part, f"{metrics['nodes']:,.0f}", *figures)
    Console().print(table)
