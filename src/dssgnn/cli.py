"""The command line. Everything heavy is imported inside the commands, so that help comes at once."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dssgnn._version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="dssgnn",
    help="Uncertainty for graph neural networks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(help="The benchmarks; each writes its records into a results file.", no_args_is_help=True)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    from dssgnn.errors import InputError

    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Of the weights and the training.")] = 0,
    epochs: Annotated[int, typer.Option(help="Train at most this long.")] = 200,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> None:
    """Train on an embedded Minesweeper board, beside a GCN, and print how far to trust each."""
    from dssgnn.demo import run

    run(seed=seed, epochs=epochs, quiet=quiet)


@app.command()
def datasets(
    as_json: Annotated[bool, typer.Option("--json", help="Every field, for machines.")] = False,
) -> None:
    """List every known dataset: size, licence, where it is looked for, present or absent and why.

    Example: dssgnn datasets --json
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from dssgnn.data.catalog import status_rows

    rows = status_rows()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table("name", "nodes", "edges", "classes", "features", "licence", "here")
    table.columns[0].no_wrap = True
    for row in rows:
        sizes = (f"{row[key]:,}" for key in ("nodes", "edges", "classes", "features"))
        table.add_row(row["name"], *sizes, row["licence"], "yes" if row["present"] else "no")
    console = Console()
    console.print(table)
    for row in rows:
        if not row["present"]:
            console.print(f"{row['name']}: {row['reason']}", soft_wrap=True, highlight=False)


@bench.command()
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


@bench.command()
def render(
    docs: Annotated[Path, typer.Option(help="Folder of Markdown files with table markers.")] = Path("docs"),
    results: Annotated[Path, typer.Option(help="Folder of results files.")] = Path("results"),
) -> None:
    """Write the documentation's tables anew from the results files."""
    from dssgnn.benchmarks.render import render as render_tables

    for path in render_tables(docs, results):
        print(f"rendered: {path}")


@bench.command()
def speed(
    out: Annotated[Path, typer.Option(help="Results file to write the records into.")] = Path(
        "results/speed.json"
    ),
    shapes: Annotated[str, typer.Option(help="Graph shapes, separated by commas.")] = "amazon-ratings",
    orders: Annotated[str, typer.Option(help="Chaos orders, separated by commas.")] = "0,1,2,3",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    repeats: Annotated[int, typer.Option(help="Timed steps; the median is recorded.")] = 7,
) -> None:
    """Time a training step against the published order of operations, in one run."""
    from rich.console import Console
    from rich.table import Table

    from dssgnn.benchmarks.records import Record, merge_records
    from dssgnn.benchmarks.speed import SHAPES, run
    from dssgnn.errors import InputError

    names = tuple(shapes.split(","))
    for name in names:
        if name not in SHAPES:
            raise InputError(f"--shapes knows {', '.join(SHAPES)}, got {name!r}")
    if not all(part.isdigit() for part in orders.split(",")):
        raise InputError(f"--orders takes numbers separated by commas, got {orders!r}")
    table = Table("setting", "published ms", "ours ms", "ratio", "published MiB", "ours MiB")
    pair: dict[str, Record] = {}
    records = []
    for record in run(names, tuple(int(part) for part in orders.split(",")), device, repeats):
        records.append(record)
        pair[record.variant] = record
        if len(pair) == 2:
            ours, theirs = pair["ours"].metrics, pair["published"].metrics
            ratio = theirs["step_ms"] / ours["step_ms"]
            values = [theirs["step_ms"], ours["step_ms"], ratio, theirs["saved_mib"], ours["saved_mib"]]
            table.add_row(record.setting, *(f"{value:.1f}" for value in values))
            pair = {}
    merge_records(out, records)
    Console().print(table)
    print(f"records: {out}")
