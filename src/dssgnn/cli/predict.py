"""`dssgnn predict`."""

from pathlib import Path
from typing import Annotated

import typer

from dssgnn.cli.common import Graph, Model, Quiet, read

__all__ = ["predict"]


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
    loaded, _ = read(graph, encoding=estimator.state_.encoding)
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
