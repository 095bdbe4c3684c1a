"""`make demo`: the whole path on an embedded graph, beside a GCN trained the same way."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from dssgnn.data import load
from dssgnn.estimator import DSSClassifier
from dssgnn.report import write_report
from dssgnn.training.progress import progress_bar

__all__ = ["run"]

# Mines are found by looking further than two cells: deeper than the default.
SHARED = {"hidden_channels": 32, "dropout": 0.2, "epochs": 200, "patience": 50}
SYSTEMS = {
    "DSS-GNN": {"method": "dss-gnn", "num_layers": 4, "norm": "batch", **SHARED},
    "GCN": {"method": "gcn", **SHARED},
}


def run(
    out: Path, *, seed: int = 0, epochs: int | None = None, quiet: bool = False
) -> dict[str, dict[str, float]]:
    """Train both on the embedded Minesweeper board; write the model folder and the page to ``out``; print a table.

    Returns:
        Test metrics and seconds by system.
    """
    data = load("minesweeper-demo", split=0)
    results = {}
    for name, options in SYSTEMS.items():
        model = DSSClassifier(seed=seed).set_params(**options)
        if epochs is not None:
            model.set_params(epochs=epochs)
        with progress_bar(name, model.get_params()["epochs"], quiet) as on_epoch:
            model.fit(data, name="minesweeper-demo", on_epoch=on_epoch)
        metrics = model.state_.metrics
        results[name] = metrics["test"] | {"seconds": metrics["training"]["seconds"]}
        if name == "DSS-GNN":
            model.save(out / "model")
            write_report(out / "model", out / "report.html")
    table = Table("system", "accuracy", "Brier", "NLL", "ECE", "seconds", title="Minesweeper: find the mines")
    for name, metrics in results.items():
        figures = [f"{metrics[key]:.4f}" for key in ("accuracy", "brier", "nll", "ece")]
        table.add_row(name, *figures, f"{metrics['seconds']:.1f}")
    console = Console()
    console.print(table)
    print(f"test quarter of {data.num_nodes:,} cells; lower is better for all but accuracy")
    print(f"model: {out / 'model'}")
    print(f"page:  {out / 'report.html'}")
    return results
