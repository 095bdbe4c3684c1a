"""`dssgnn bench ...`; what is heavy is imported inside the commands."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, cast

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
    """Write the documentation's tables and figures anew from the results files."""
    from dssgnn.benchmarks.calibration.figures import draw
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


@bench.command()
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

    from dssgnn.benchmarks.records import merge_records, read_records
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
    if out.exists():
        read_records(out)  # before the time is spent: it must be a results file to be added to
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


@bench.command()
def calibration(
    out: Annotated[
        Path | None,
        typer.Option(
            help="Results file; what it holds already is not run again. results/calibration.json, for --curves "
            "results/calibration_curves.json."
        ),
    ] = None,
    datasets: Annotated[
        str, typer.Option(help="Catalog names, separated by commas; those present by default.")
    ] = "",
    methods: Annotated[str, typer.Option(help="Systems, separated by commas, or all.")] = "dss-gnn,gcn,gat",
    variants: Annotated[
        str, typer.Option(help="Variants, separated by commas, or all but 'default'; --rows lists them.")
    ] = "default",
    splits: Annotated[
        str,
        typer.Option(help="How many splits (10), or a range of them (5-9); 0 searches and tests nothing."),
    ] = "10",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of everything random in the variant 'default'.")] = 0,
    search: Annotated[
        Path, typer.Option(help="Results file of the search behind the variants 'best' and 'tuned'.")
    ] = Path("results/calibration_search.json"),
    ablations: Annotated[
        str, typer.Option(help="Ablations of the presets of --base instead, separated by commas, or all.")
    ] = "",
    base: Annotated[
        str, typer.Option(help="Presets that ablations change: published or paper.")
    ] = "published",
    curves: Annotated[
        str, typer.Option(help="What a figure shows of the rows instead: reliability or curvature.")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Runs of every row and split, for comparisons.")] = 1,
    workers: Annotated[
        int, typer.Option(help="Processes that share the rows (not the variant 'default').")
    ] = 1,
    timed: Annotated[
        bool,
        typer.Option("--timed", help="Run one system anew, beside what is on record, and record the time."),
    ] = False,
    rows: Annotated[bool, typer.Option("--rows", help="List every system and variant, and stop.")] = False,
) -> None:
    """Train systems on the published splits and record their test metrics.

    The variant 'default' is what `dssgnn fit` does; the others are the rows of the paper's table, and train all
    splits of a graph as one population. A sweep that was stopped goes on where it was.

    Example: dssgnn bench calibration --methods gcn,deep-ensemble --variants paper --datasets cora,texas
    """
    from functools import partial

    import torch

    from dssgnn.benchmarks.calibration import plan, run, sweep
    from dssgnn.benchmarks.calibration.ablations import ABLATIONS
    from dssgnn.benchmarks.calibration.curves import Kind
    from dssgnn.benchmarks.calibration.curves import curves as measure_curves
    from dssgnn.benchmarks.calibration.timing import timed_sweep
    from dssgnn.benchmarks.calibration.workers import sweep_in_processes
    from dssgnn.devices import resolve_device
    from dssgnn.errors import InputError
    from dssgnn.validation import check_count

    if rows:
        for method, variant in plan.known_systems():
            print(f"{method} {variant}")
        print(f"ablations: {', '.join([*ABLATIONS, *plan.OUR_ABLATIONS])}")
        return
    if curves not in ("", "reliability", "curvature"):
        raise InputError(f"--curves knows reliability and curvature, got {curves!r}")
    if curves and (ablations or workers > 1 or seeds > 1):
        raise InputError("--curves does not go with --ablations, --workers or --seeds")
    for name, count in (("--workers", workers), ("--seeds", seeds)):
        check_count(count, name, minimum=1)
    measure_rows = partial(sweep_in_processes, workers=workers) if workers > 1 else sweep
    measure_rows = partial(measure_rows, seeds=seeds)
    systems, numbers = plan.asked_systems(methods, variants), plan.asked_splits(splits)
    graphs = plan.asked_graphs(datasets)
    if timed and (ablations or curves):
        raise InputError("--timed does not go with --ablations or --curves")
    if timed and not (numbers and seeds == 1):
        raise InputError("--timed is of one run of each split, got --splits 0 or --seeds above 1")
    if timed and (len(systems) != 1 or systems[0][1] == "default"):
        raise InputError("--timed is of one system with a variant")
    out = out or Path(f"results/calibration{'_curves' if curves else ''}.json")
    place, tell = torch.device(resolve_device(device)), partial(print, flush=True)
    if ablations:
        changed = plan.ablation_rows(ablations, base, graphs)
        measure_rows(changed, numbers, out, place, tell, benchmark="calibration-ablation")
        return
    table = plan.rows_of(graphs, systems, search, place, tell)
    if not table and (curves or "default" not in variants.split(",")):
        raise InputError("there is no such row of these graphs; --rows lists what there is")
    if curves:
        measure_curves([(*row, cast(Kind, curves)) for row in table], numbers, out, place, tell)
        return
    run(
        graphs,
        [method for method, variant in systems if variant == "default"],
        numbers,
        out,
        device=device,
        seed=seed,
        say=lambda r: print(
            f"{r.setting} {r.method} split {r.split}: Brier {r.metrics['brier']:.4f}", flush=True
        ),
    )
    if timed:
        measure_rows = partial(timed_sweep, measure_rows, workers=workers)
    measure_rows(table, numbers, out, place, tell)
