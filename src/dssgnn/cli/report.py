"""`dssgnn report`."""

from pathlib import Path
from typing import Annotated

import typer

from dssgnn.cli.common import Model, read

__all__ = ["report"]


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
        loaded, name = read(ood, encoding=estimator.state_.encoding)
        outliers = {name: estimator.uncertainty(loaded)["energy"]}
    write_report(model, out, outliers=outliers)
    print(f"page: {out}")
