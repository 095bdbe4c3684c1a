"""What a fitted model says about nodes, as tables and numbers."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor, nn

from dssgnn.data import LoadedGraph, Split
from dssgnn.expansion import ChaosExpansion
from dssgnn.metrics import calibration_metrics

__all__ = ["node_frame", "node_scores", "part_metrics", "to_numpy"]


def part_metrics(
    expansion: ChaosExpansion, y: Tensor, split: Split, model: nn.Module, lambda_max: float
) -> dict[str, Any]:
    """Calibration metrics of the parts that have nodes, and what the page shows of the model's inside."""
    metrics: dict[str, Any] = {}
    for part in ("test", "val", "train"):
        mask = getattr(split, part)
        if bool(mask.any()):
            metrics[part] = {"nodes": int(mask.sum()), **calibration_metrics(expansion[mask], y[mask])}
    layers = [m for m in model.modules() if hasattr(m, "low_coefficients")]
    metrics["model"] = {
        "chaos_energy_by_order": expansion.coefficients[:, 1:].square().sum(dim=2).mean(dim=0).tolist(),
        "filters": [
            {
                "layer": i,
                **{
                    key: getattr(layer, attribute).detach().cpu().tolist()
                    for key, attribute in (
                        ("low", "low_coefficients"),
                        ("high", "high_coefficients"),
                        ("low_gates", "low_gates"),
                        ("high_gates", "high_gates"),
                    )
                },
            }
            for i, layer in enumerate(layers)
        ],
        "lambda_max": lambda_max,
    }
    return metrics


def node_scores(expansion: ChaosExpansion, ood: Tensor) -> dict[str, NDArray[np.float32]]:
    """Every uncertainty of every node, each ``[N]``, by the name of its column."""
    values = {
        "confidence": expansion.predictive().amax(dim=1),
        "entropy": expansion.entropy(),
        "mutual_information": expansion.mutual_information(),
        "chaos_energy": expansion.chaos_energy,
        "energy": expansion.energy(),
        "ood_score": ood,
    }
    return {name: to_numpy(value) for name, value in values.items()}


def node_frame(
    loaded: LoadedGraph,
    expansion: ChaosExpansion,
    ood: Tensor,
    class_names: tuple[str, ...] | tuple[int, ...],
    split: Split | None,
) -> pd.DataFrame:
    """The table of `DSSClassifier.frame`; with ``split`` also each node's label and part."""
    names = np.array([str(name) for name in class_names], dtype=object)
    probabilities = to_numpy(expansion.predictive())
    columns: dict[str, Any] = {"node": loaded.node_ids}
    if split is not None:
        y = loaded.data.y.cpu().numpy()
        columns["label"] = np.where(y >= 0, names[y], None)
        part = np.full(len(y), "", dtype=object)
        for word in ("train", "val", "test"):
            part[getattr(split, word).cpu().numpy()] = word
        columns["split"] = part
    columns["prediction"] = names[probabilities.argmax(axis=1)]
    scores = node_scores(expansion, ood)
    columns["confidence"] = scores.pop("confidence")
    columns |= {f"p_{name}": probabilities[:, i] for i, name in enumerate(names)}
    return pd.DataFrame(columns | scores)


def to_numpy(values: Tensor) -> NDArray[np.float32]:
    """A tensor as an array, wherever it lies."""
    array: NDArray[np.float32] = values.cpu().numpy()
    return array
