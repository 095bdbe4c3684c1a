"""`dssgnn bench speed`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, cast

import typer

__all__ = ["speed"]


def speed(
    out: Annotated[Path, typer.Option(help="Results file to write the records into.")] = Path(
        "results/speed.json"
    ),
    parts: Annotated[
        str, typer.Option(help="Of steps, filter, growth and population, separated by commas.")
    ] = "steps",
    shapes: Annotated[
        str, typer.Option(help="Graph shapes, separated by commas; amazon-ratings on a CPU, all on a GPU.")
    ] = "",
    orders: Annotated[str, typer.Option(help="Chaos orders of the steps, separated by commas.")] = "0,1,2,3",
    contenders: Annotated[
        str, typer.Option(help="Whose steps, separated by commas; those that suit the device.")
    ] = "",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    repeats: Annotated[
        int | None, typer.Option(help="Timed steps, of which the median is recorded; 7, or 21 on a GPU.")
    ] = None,
    degrees: Annotated[str, typer.Option(help="Degrees of the random graphs: power or uniform.")] = "power",
    axes: Annotated[str, typer.Option(help="Of growth: nodes, P and K, separated by commas.")] = "nodes,P,K",
    largest: Annotated[
        int | None, typer.Option(help="Nodes at which growth stops; 10^5, or 10^7 on a GPU.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Of the populations; 15, or 200 on a GPU.")] = None,
) -> None:
    """Time training steps, filters, growth and populations against the published order of operations.

    Example: dssgnn bench speed --parts steps,filter --shapes ogbn-arxiv --orders 0,2
    """
    from rich.console import Console
    from rich.table import Table

    from dssgnn.benchmarks.records import check_results_file, merge_records
    from dssgnn.benchmarks.speed.contenders import CONTENDERS
    from dssgnn.benchmarks.speed.growth import AXES
    from dssgnn.benchmarks.speed.run import PARTS, Plan, run
    from dssgnn.benchmarks.speed.shapes import SHAPES, Degrees
    from dssgnn.devices import resolve_device
    from dssgnn.errors import InputError
    from dssgnn.validation import check_choice, check_count

    if not all(part.isdecimal() and part.isascii() for part in orders.split(",")):
        raise InputError(f"--orders takes numbers separated by commas, got {orders!r}")
    for name, count in (("--repeats", repeats), ("--largest", largest), ("--epochs", epochs)):
        if count is not None:
            check_count(count, name, minimum=1)
    check_choice(degrees, Degrees, "--degrees")
    plan = Plan(
        parts=_chosen(parts, PARTS, "--parts"),
        shapes=_chosen(shapes, SHAPES, "--shapes") if shapes else None,
        orders=tuple(int(part) for part in orders.split(",")),
        contenders=_chosen(contenders, CONTENDERS, "--contenders") if contenders else None,
        device=resolve_device(device),
        repeats=repeats,
        degrees=cast(Degrees, degrees),
        axes=_chosen(axes, AXES, "--axes"),
        largest=largest,
        epochs=epochs,
    )
    check_results_file(out)
    console = Console()
    columns = ("step_ms", "captured_ms", "peak_mib", "saved_mib")
    table = Table("setting", "contender", "step, ms", "captured, ms", "peak, MiB", "kept, MiB")
    for records in run(plan, lambda text: print(text, flush=True)):
        merge_records(out, records)  # what was measured stays, whatever comes after
        for record in records:
            figures = [f"{record.metrics[key]:.2f}" if key in record.metrics else "" for key in columns]
            if any(figures):
                table.add_row(record.setting, record.variant, *figures)
    if table.row_count:
        console.print(table)
    print(f"records: {out}")


def _chosen(text: str, known: Iterable[str], option: str) -> tuple[str, ...]:
    from dssgnn.errors import InputError

    for name in text.split(","):
        if name not in known:
            raise InputError(f"{option} knows {', '.join(known)}, got {name!r}")
    return tuple(text.split(","))
