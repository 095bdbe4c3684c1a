"""`dssgnn bench ...`; what is heavy is imported inside the commands."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["bench"]

bench = typer.Typer(help="The benchmarks; each writes its records into a results file.", no_args_is_help=True)


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
    from dssgnn.errors import InputError

    if not docs.is_dir():
        raise InputError(f"--docs must be a folder of Markdown files, got {docs}")
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

    from dssgnn.benchmarks.records import Record, merge_records, read_records
    from dssgnn.benchmarks.speed import SHAPES, run
    from dssgnn.devices import resolve_device
    from dssgnn.errors import InputError
    from dssgnn.validation import check_count

    names = tuple(shapes.split(","))
    for name in names:
        if name not in SHAPES:
            raise InputError(f"--shapes knows {', '.join(SHAPES)}, got {name!r}")
    if not all(part.isdecimal() and part.isascii() for part in orders.split(",")):
        raise InputError(f"--orders takes numbers separated by commas, got {orders!r}")
    check_count(repeats, "--repeats", minimum=1)
    resolve_device(device)
    if out.exists():
        read_records(out)  # before the time is spent: it must be a results file to be added to
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


@bench.command()
def calibration(
    out: Annotated[Path, typer.Option(help="Results file; what it holds already is not run again.")] = Path(
        "results/calibration.json"
    ),
    datasets: Annotated[
        str, typer.Option(help="Catalog names, separated by commas; those present by default.")
    ] = "",
    methods: Annotated[str, typer.Option(help="Systems, separated by commas.")] = "dss-gnn,gcn,gat",
    splits: Annotated[str, typer.Option(help="How many splits (10), or a range of them (5-9).")] = "10",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
) -> None:
    """Fit systems with their defaults on the published splits and record their test metrics.

    Example: dssgnn bench calibration --datasets cora,texas --splits 5-9
    """
    from dssgnn.benchmarks.calibration import DATASETS, run
    from dssgnn.data import names, status_rows
    from dssgnn.errors import InputError
    from dssgnn.systems import METHODS

    present = {row["name"] for row in status_rows(verify=False) if row["present"]}
    chosen = datasets.split(",") if datasets else [name for name in DATASETS if name in present]
    for name in chosen:
        if name not in names():
            raise InputError(f"--datasets knows {', '.join(names())}, got {name!r}")
    for method in methods.split(","):
        if method not in METHODS:
            raise InputError(f"--methods knows {', '.join(METHODS)}, got {method!r}")
    first, dash, last = splits.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)):
        raise InputError(f"--splits takes a number (10) or a range (5-9), got {splits!r}")
    numbers = range(int(first), int(last) + 1) if dash else range(int(first))
    run(
        chosen,
        methods.split(","),
        numbers,
        out,
        device=device,
        seed=seed,
        say=lambda r: print(
            f"{r.setting} {r.method} split {r.split}: Brier {r.metrics['brier']:.4f}", flush=True
        ),
    )
