"""`dssgnn evaluate`."""

from typing import Annotated

import typer

from dssgnn.cli.common import Graph, Json, Model, print_metrics, read

__all__ = ["evaluate"]


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
    loaded, _ = read(graph, encoding=estimator.state_.encoding)
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
        print_metrics({on: metrics})
