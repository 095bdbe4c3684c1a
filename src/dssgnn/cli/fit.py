"""`dssgnn fit`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dssgnn.cli.common import Graph, Json, Quiet, print_metrics, read

__all__ = ["fit"]


def fit(
    graph: Graph,
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    method: Annotated[
        str, typer.Option(help="dss-gnn, dss-hybrid, gcn, gcn-res, gat, chebnet, gpr-gnn, bernnet, tfe-gnn.")
    ] = "dss-gnn",
    split: Annotated[
        int | None, typer.Option(help="Which published split of a catalog graph; 0 by default.")
    ] = None,
    chaos_order: Annotated[int | None, typer.Option(help="P, the order of the expansion.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    epochs: Annotated[int | None, typer.Option(help="Train at most this long.")] = None,
    search: Annotated[
        str | None, typer.Option(help="Choose a configuration first: quick or thorough.")
    ] = None,
    search_seconds: Annotated[float | None, typer.Option(help="Begin no trial after this long.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any parameter of DSSClassifier, as name=value; repeatable."),
    ] = None,
    missing: Annotated[str, typer.Option(help="Missing numbers in tables: error or mean.")] = "error",
    categorical: Annotated[str, typer.Option(help="Columns of numbers that are categories, by commas.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    no_graph: Annotated[
        bool, typer.Option("--no-graph", help="Leave the training edges out of the folder.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a graph and write it to a folder.

    Example: dssgnn fit cora --out models/cora --split 0
    """
    import json
    import warnings
    from contextlib import ExitStack

    from dssgnn.errors import InputError
    from dssgnn.estimator import DSSClassifier
    from dssgnn.files import remove_leftovers
    from dssgnn.model_folder import check_target
    from dssgnn.training.progress import progress_bar

    check_target(out)

    given: dict[str, Any] = {"method": method, "seed": seed, "device": device} | _assignments(settings or [])
    given |= {
        k: v
        for k, v in {
            "chaos_order": chaos_order,
            "epochs": epochs,
            "search": search,
            "search_seconds": search_seconds,
        }.items()
        if v is not None
    }
    estimator = DSSClassifier().set_params(**given)
    loaded, name = read(graph, split=split or 0, missing=missing, categorical=categorical)
    if split is not None and name != graph:
        raise InputError(f"--split goes with a catalog name; {graph} is a file, which brings its own split")
    say = not (quiet or as_json)
    if say:
        print("\n".join(loaded.report.lines()))
    checkpoint = out.with_name(f".{out.name}.checkpoint")
    limit = estimator.get_params()["epochs"]
    bars: list[Callable[[dict[str, float]], None]] = []
    try:
        with ExitStack() as stack, warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")

            def on_epoch(row: dict[str, float]) -> None:
                if not bars:  # not before: what cannot be trained is one line of error and no bar
                    bars.append(stack.enter_context(progress_bar(name, limit, not say)))
                bars[0](row)

            estimator.fit(loaded, name=name, checkpoint=checkpoint, resume=resume, on_epoch=on_epoch)
    except InputError:
        if not resume:
            checkpoint.unlink(missing_ok=True)
        raise
    except KeyboardInterrupt:
        kept = checkpoint.exists()
        print(f"stopped{'; to go on, repeat the command with --resume' if kept else ''}", file=sys.stderr)
        raise
    estimator.save(out, graph=not no_graph)
    checkpoint.unlink(missing_ok=True)
    for path in (out, checkpoint):
        remove_leftovers(path)
    metrics = estimator.state_.metrics
    if as_json:
        print(json.dumps({"out": str(out), "metrics": metrics}, indent=1))
    elif say:
        for note in notes:
            print(f"note: {note.message}")
        print_metrics({part: metrics[part] for part in ("test", "val", "train") if part in metrics})
        print(f"model: {out}")


def _assignments(settings: list[str]) -> dict[str, Any]:
    """``name=value`` pairs, values as JSON where they are, as text otherwise."""
    import json

    from dssgnn.errors import InputError

    given = {}
    for pair in settings:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, got {pair!r}")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        given[name] = tuple(value) if isinstance(value, list) else value
    return given
