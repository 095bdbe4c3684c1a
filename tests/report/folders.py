"""Model folders made up without training, as `dssgnn fit` would write them, to be read or to be spoiled."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HOSTILE = "</script><img src=x onerror=alert(1)>"


def write_folder(
    folder: Path,
    *,
    nodes: int = 600,
    classes: tuple[Any, ...] = ("mine", "safe", "edge of the board"),
    degree: float = 5.0,
    seed: int = 0,
    graph: bool = True,
    graph_name: str = "made-up",
    ids: list[Any] | None = None,
) -> Path:
    """A homophilous random graph, and a model that is right on about four nodes of five and over-confident."""
    rng = np.random.default_rng(seed)
    count = len(classes)
    y = rng.choice(count, nodes, p=np.arange(count, 0, -1) / (count * (count + 1) / 2))
    edges = rng.integers(nodes, size=(2, int(nodes * degree / 2)))
    edges = edges[:, (y[edges[0]] == y[edges[1]]) | (rng.random(edges.shape[1]) < 0.4)]
    part = rng.choice(3, nodes, p=[0.3, 0.2, 0.5])
    ease = rng.normal(1.5, 1.0, nodes)
    mean = rng.normal(0, 0.7, (nodes, count))
    mean[np.arange(nodes), y] += ease
    probabilities = np.exp(1.6 * mean)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    names = np.array([str(name) for name in classes], dtype=object)
    labels = np.where(rng.random(nodes) < 0.04, -1, y)
    energy = -np.log(np.exp(mean).sum(axis=1))
    frame = {
        "node": ids if ids is not None else np.arange(nodes),
        "label": [None if label < 0 else names[label] for label in labels],
        "split": np.array(["train", "val", "test"], dtype=object)[part],
        "prediction": names[probabilities.argmax(axis=1)],
        "confidence": probabilities.max(axis=1),
        **{f"p_{name}": probabilities[:, k] for k, name in enumerate(names)},
        "entropy": -(probabilities * np.log(probabilities)).sum(axis=1),
        "mutual_information": 0.1 * rng.random(nodes) * (1 - probabilities.max(axis=1)),
        "chaos_energy": rng.gamma(2.0, 0.1, nodes),
        "energy": energy,
        "ood_score": energy + 0.1 * rng.normal(size=nodes),
    }
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(frame).to_parquet(folder / "predictions.parquet")
    np.savez(folder / "split.npz", train=part == 0, val=part == 1, test=part == 2)
    if graph:
        np.savez(folder / "graph.npz", edge_index=np.concatenate([edges, edges[::-1]], axis=1), y=labels)
    epochs = np.arange(1, 81)
    pd.DataFrame(
        {
            "epoch": epochs,
            "loss": np.exp(-epochs / 20) + 0.3,
            "val_accuracy": 0.8 - 0.5 * np.exp(-epochs / 15),
            "val_brier": 0.3 + 0.5 * np.exp(-epochs / 12) + epochs / 2000,
            "val_nll": 0.5 + np.exp(-epochs / 10),
            "val_ece": 0.05 + 0.02 * np.sin(epochs / 5),
        }
    ).to_csv(folder / "history.csv", index=False)
    write_json(
        folder / "config.json",
        {
            "schema": 1,
            "created": "2026-11-16T12:00:00+00:00",
            "versions": {"dssgnn": "0.1.0", "torch": "2.9.0", "python": "3.11.7"},
            "method": "dss-gnn",
            "parameters": {"hidden_channels": 64, "chaos_order": 2, "filter_orders": [4, 4], "seed": 0},
            "classes": list(classes),
            "num_features": 7,
            "feature_names": [f"x{k}" for k in range(7)],
            "encoding": None,
            "scaling": None,
            "operator": {"normalization": "sym", "direction": "both", "lambda_max": 2.0},
            "graph": {"name": graph_name, "nodes": nodes, "edges": 2 * edges.shape[1]},
            "split": "stratified 30/20/50, seed 0",
        },
    )
    write_json(
        folder / "metrics.json",
        {
            "val": {"nodes": 100, "accuracy": 0.81, "brier": 0.3, "nll": 0.6, "ece": 0.05},
            "train": {"nodes": 200, "accuracy": 0.9, "brier": 0.2, "nll": 0.4, "ece": 0.04},
            "training": {
                "best_epoch": 60,
                "epochs": 80,
                "seconds": 12.3,
                "stopped": "patience",
                "parameters": 12345,
            },
            "model": {
                "chaos_energy_by_order": [0.3, 0.05],
                "filters": [
                    {
                        "layer": layer,
                        "low": [0.5, -0.4 + 0.1 * layer, 0.1],
                        "high": [0.3, 0.5, 0.1 * layer],
                        "low_gates": [[0.7], [0.6], [0.5]],
                        "high_gates": [[0.3], [0.2], [0.4]],
                    }
                    for layer in range(2)
                ],
                "lambda_max": 2.0,
            },
        },
    )
    return folder


def write_bare_folder(folder: Path) -> Path:
    """As little as a folder may hold: no edges, no label in the test part, NaN and null wherever they may be."""
    write_folder(folder, nodes=40, graph=False)
    frame = pd.read_parquet(folder / "predictions.parquet")
    frame.loc[frame["split"] == "test", "label"] = None
    for name in ("mutual_information", "chaos_energy", "energy", "ood_score"):
        frame[name] = np.nan
    frame.loc[frame.index[frame["split"] == "test"][:3], ["p_mine", "p_safe", "p_edge of the board"]] = np.nan
    frame.to_parquet(folder / "predictions.parquet")
    change_json(
        folder / "metrics.json", training={}, model={"chaos_energy_by_order": [], "filters": []}, val=None
    )
    change_json(folder / "config.json", method="gcn", created=None, versions=None, graph={"name": "bare"})
    (folder / "history.csv").write_text("epoch,loss,val_brier\n1,nan,\n")
    return folder


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def change_json(path: Path, **changes: Any) -> None:
    write_json(path, json.loads(path.read_text()) | changes)
