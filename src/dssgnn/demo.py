"""`make demo`: the whole path on an embedded graph, beside a GCN trained the same way."""

from rich.console import Console
from rich.table import Table
from torch import nn

from dssgnn.data.synthetic import minesweeper
from dssgnn.nn import DSSGNN, Deterministic, make_encoder
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded
from dssgnn.training.loop import evaluate
from dssgnn.training.progress import progress_bar

__all__ = ["compare", "run"]


def systems(features: int, classes: int) -> dict[str, nn.Module]:
    """The two models of the demo, of one width and depth."""
    return {
        "DSS-GNN": DSSGNN(
            features, 32, classes, num_layers=4, chaos_order=1, residual=True, norm="batch", dropout=0.2
        ),
        "GCN": Deterministic(
            make_encoder("gcn", features, 32, classes, num_layers=4, dropout=0.2, norm="batch")
        ),
    }


def compare(seed: int, epochs: int, quiet: bool, size: int = 100) -> dict[str, dict[str, float]]:
    """Train both on a board of ``size`` by ``size`` cells; test metrics and seconds by system."""
    task = NodeTask.from_data(minesweeper(size, size, seed=seed))
    assert task.test_mask is not None  # the board comes with its split
    config = TrainingConfig(objective="predictive", epochs=epochs, patience=50, seed=seed)
    with seeded(seed):
        models = systems(task.x.size(1), task.num_classes)
    results = {}
    for name, model in models.items():
        with progress_bar(name, epochs, quiet) as on_epoch:
            outcome = fit(model, task, config, on_epoch=on_epoch)
        results[name] = evaluate(model, task, task.test_mask) | {"seconds": outcome.seconds}
    return results


def run(seed: int = 0, epochs: int = 300, quiet: bool = False) -> None:
    """Print the table of `compare`."""
    results = compare(seed, epochs, quiet)
    columns = {"accuracy": "accuracy", "brier": "Brier", "nll": "NLL", "ece": "ECE", "seconds": "seconds"}
    table = Table("Minesweeper, 10,000 cells, test quarter", *columns.values())
    for name, metrics in results.items():
        table.add_row(
            name, *(f"{metrics[c]:.1f}" if c == "seconds" else f"{metrics[c]:.4f}" for c in columns)
        )
    Console().print(table)
