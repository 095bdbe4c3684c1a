"""`dssgnn bench calibration`."""

from pathlib import Path
from typing import Annotated, cast

import typer

__all__ = ["calibration"]


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
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="Let every split choose a searched system's configuration by its own validation nodes (small graphs).",
        ),
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

    from dssgnn.benchmarks.calibration import ABLATION, ALONE, CALIBRATION, plan, run
    from dssgnn.benchmarks.calibration.ablations import ABLATIONS
    from dssgnn.benchmarks.calibration.curves import Kind
    from dssgnn.benchmarks.calibration.curves import curves as measure_curves
    from dssgnn.benchmarks.calibration.timing import timed_sweep
    from dssgnn.benchmarks.frame import sweep, sweep_in_processes
    from dssgnn.benchmarks.records import check_results_file
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
    if curves and (workers > 1 or seeds > 1):
        raise InputError("--curves does not go with --workers or --seeds")
    for name, count in (("--workers", workers), ("--seeds", seeds)):
        check_count(count, name, minimum=1)
    systems, numbers = plan.asked_systems(methods, variants), plan.asked_splits(splits)
    graphs = plan.asked_graphs(datasets)
    if sum(map(bool, (timed, ablations, curves, alone))) > 1:
        raise InputError("--timed, --ablations, --curves and --alone do not go together")
    if timed and not (numbers and seeds == 1):
        raise InputError("--timed is of one run of each split, got --splits 0 or --seeds above 1")
    if timed and (len(systems) != 1 or systems[0][1] == "default"):
        raise InputError("--timed is of one system with a variant")
    defaults = [method for method, variant in systems if variant == "default"]
    for name, given in (("--curves", curves), ("--seeds", seeds > 1)):
        if given and defaults and not ablations:
            raise InputError(
                f"{name} does not go with the variant 'default'; name others with --variants (--rows lists them)"
            )
    if alone and not numbers:
        raise InputError("--alone tests what every split chose, got --splits 0")
    if not numbers and (ablations or not any(plan.is_searched(system) for system in systems)):
        raise InputError("--splits 0 is for systems that are searched for, and none of these is")
    place, tell = torch.device(resolve_device(device)), partial(print, flush=True)
    if ablations:
        benchmark, table = ABLATION, plan.ablation_rows(ablations, base, graphs)
    elif alone:
        benchmark, table = ALONE, plan.alone_rows(graphs, systems, numbers, search, place, tell)
    else:
        benchmark, table = CALIBRATION, plan.rows_of(graphs, systems, search, place, tell)
        if not table and (curves or not defaults):
            raise InputError("there is no such row of these graphs; --rows lists what there is")
    out = out or Path(f"results/calibration{'_curves' if curves else ''}.json")
    check_results_file(out)
    if curves:
        measure_curves(table, cast(Kind, curves), numbers, out, place, tell)
        return
    if benchmark is CALIBRATION:
        run(
            graphs,
            defaults,
            numbers,
            out,
            device=device,
            seed=seed,
            say=lambda r: print(
                f"{r.setting} {r.method} split {r.split}: Brier {r.metrics['brier']:.4f}", flush=True
            ),
        )
    swept = partial(sweep_in_processes, workers=workers) if workers > 1 else sweep
    swept = partial(swept, seeds=seeds)
    if timed:
        timed_sweep(swept, table, numbers, out, place, tell, workers=workers)
    else:
        swept(benchmark, table, numbers, out, place, tell)
