"""`make demo`: the whole path on an embedded graph, beside a GCN trained the same way."""

from rich.console import Console
from rich.table import Table
from torch import nn
from torch_geometric.data import Data

from dssgnn.data import load
from dssgnn.nn import DSSGNN, Deterministic, make_encoder
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded
from dssgnn.training.loop import evaluate
from dssgnn.training.progress import progress_bar

__all__ = ["compare", "run"]


def compare(data: Data, seed: int, epochs: int, quiet: bool) -> dict[str, dict[str, float]]:
    """Train a DSS-GNN and a GCN of one width and depth; test metrics and seconds by system."""
    task = NodeTask.from_data(data)
    features, classes = task.x.size(1), task.num_classes
    with seeded(seed):
        dss = DSSGNN(
            features, 32, classes, num_layers=4, chaos_order=1, residual=True, norm="batch", dropout=0.2
        )
        gcn = make_encoder("gcn", features, 32, classes, num_layers=4, norm="batch", dropout=0.2)
    systems: dict[str, nn.Module] = {"DSS-GNN": dss, "GCN": Deterministic(gcn)}
    config = TrainingConfig(objective="predictive", epochs=epochs, patience=50, seed=seed)
    results = {}
    for name, model in systems.items():
        with progress_bar(name, epochs, quiet) as on_epoch:
            outcome = fit(model, task, config, on_epoch=on_epoch)
        results[name] = evaluate(model, task, data.test_mask) | {"seconds": outcome.seconds}
    return results


def run(seed: int = 0, epochs: int = 200, quiet: bool = False) -> None:
    """Print the table of `compare` on the embedded Minesweeper board."""
    data = load("minesweeper-demo")
    results = compare(data, seed, epochs, quiet)
    table = Table("system", "accuracy", "Brier", "NLL", "ECE", "seconds", title="Minesweeper: find the mines")
    for name, metrics in results.items():
        figures = [f"{metrics[key]:.4f}" for key in ("accuracy", "brier", "nll", "ece")]
        table.add_row(name, *figures, f"{metrics['seconds']:.1f}")
    console = Console()
    console.print(table)
    console.print(f"test quarter of {data.num_nodes:,} cells; lower is better for all but accuracy")
