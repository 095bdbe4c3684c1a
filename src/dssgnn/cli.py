"""The command line. Everything heavy is imported inside the commands, so that help comes at once."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dssgnn._version import __version__
from dssgnn.benchmarks.commands import bench

if TYPE_CHECKING:
    from dssgnn.data import LoadedGraph

__all__ = ["app", "main"]

app = typer.Typer(
    name="dssgnn",
    help="Uncertainty for graph neural networks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")

Graph = Annotated[
    str, typer.Argument(help="A catalog name (dssgnn datasets), a folder of tables, .npz or .graphml.")
]
Model = Annotated[Path, typer.Argument(help="A model folder that dssgnn fit wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    from dssgnn.errors import InputError

    # Threads that spin while they wait stall each other on a busy machine; torch is not imported yet.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = app(standalone_mode=False)
    except (InputError, OSError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        # typer carries its own copy of click: its usage errors are known by what they can do.
        if not hasattr(error, "format_message"):
            if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", str(error)):
                _fail(f"not enough memory for this model and graph: {error}")
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(2)
        _fail(error.format_message() or "see --help")
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
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
    loaded, name = _read(graph, split=split or 0, missing=missing, categorical=categorical)
    if split is not None and name != graph:
        _fail(f"--split goes with a catalog name; {graph} is a file, which brings its own split")
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
        _print_metrics({part: metrics[part] for part in ("test", "val", "train") if part in metrics})
        print(f"model: {out}")


@app.command()
def predict(
    model: Model,
    graph: Graph,
    out: Annotated[Path, typer.Option(help="The table to write, .csv or .parquet.")],
    quiet: Quiet = False,
) -> None:
    """Write one row a node: prediction, probabilities and uncertainties.

    Example: dssgnn predict models/cora cora --out predictions.csv
    """
    from dssgnn.errors import InputError
    from dssgnn.estimator import DSSClassifier
    from dssgnn.files import atomic_path

    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out must end in .csv or .parquet, got {out}")
    estimator = DSSClassifier.load(model)
    loaded, _ = _read(graph, encoding=estimator.state_.encoding)
    frame = estimator.frame(loaded)
    try:
        with atomic_path(out) as temporary:
            frame.to_csv(temporary, index=False) if out.suffix == ".csv" else frame.to_parquet(
                temporary, index=False
            )
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error}") from error
    if not quiet:
        print("\n".join(loaded.report.lines()))
        print(f"predictions: {out}")


@app.command()
def evaluate(
    model: Model,
    graph: Graph,
    on: Annotated[
        str, typer.Option(help="test, val or train of the stored split, or all labelled nodes.")
    ] = "test",
    as_json: Json = False,
) -> None:
    """Accuracy, Brier, NLL and ECE of a model on a graph.

    Example: dssgnn evaluate models/cora cora --on test
    """
    import json

    from dssgnn.errors import InputError
    from dssgnn.estimator import DSSClassifier

    if on not in ("test", "val", "train", "all"):
        raise InputError(f"--on must be test, val, train or all, got {on!r}")
    estimator = DSSClassifier.load(model)
    loaded, _ = _read(graph, encoding=estimator.state_.encoding)
    mask = None
    if on != "all":
        mask = getattr(estimator.state_.split, on)
        if len(mask) != loaded.data.num_nodes:
            raise InputError(
                f"{graph} has {loaded.data.num_nodes} nodes, the stored split is for {len(mask)}; use --on all"
            )
    metrics = estimator.evaluate(loaded, mask)
    if as_json:
        print(json.dumps(metrics, indent=1))
    else:
        _print_metrics({on: metrics})


@app.command()
def report(
    model: Model,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    ood: Annotated[
        str | None, typer.Option(help="A graph whose energies are drawn beside the model's own.")
    ] = None,
) -> None:
    """Write the page that shows how far to trust a model: one file, no network.

    Example: dssgnn report models/cora --out report.html
    """
    from dssgnn.estimator import DSSClassifier
    from dssgnn.report import write_report

    outliers = None
    if ood is not None:
        estimator = DSSClassifier.load(model)
        loaded, name = _read(ood, encoding=estimator.state_.encoding)
        outliers = {name: estimator.uncertainty(loaded)["energy"]}
    write_report(model, out, outliers=outliers)
    print(f"page: {out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the model folder and the page go.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Of the weights and the training.")] = 0,
    epochs: Annotated[int | None, typer.Option(help="Train at most this long.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> None:
    """Train on an embedded Minesweeper board, beside a GCN, and print how far to trust each."""
    from dssgnn.demo import run

    run(out, seed=seed, epochs=epochs, quiet=quiet)


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
    table = Table(
        "name", "nodes", "edges", "classes", "features", "licence", "here", caption="edges: both directions"
    )
    table.columns[0].no_wrap = True
    for row in rows:
        sizes = (f"{row[key]:,}" for key in ("nodes", "edges", "classes", "features"))
        table.add_row(row["name"], *sizes, row["licence"], "yes" if row["present"] else "no")
    console = Console()
    console.print(table)
    for row in rows:
        if not row["present"]:
            console.print(f"{row['name']}: {row['reason']}", soft_wrap=True, highlight=False)


def _read(graph: str, *, split: int | None = None, **options: Any) -> "tuple[LoadedGraph, str]":
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


def _print_metrics(parts: dict[str, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("part", "nodes", "accuracy", "Brier", "NLL", "ECE")
    for part, metrics in parts.items():
        figures = (f"{metrics[key]:.4f}" for key in ("accuracy", "brier", "nll", "ece"))
        table.add_row(part, f"{metrics['nodes']:,.0f}", *figures)
    Console().print(table)
