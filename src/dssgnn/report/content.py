"""Everything the page shows, computed from a model folder as one JSON-able dict."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dssgnn.report import inside, performance
from dssgnn.report.findings import findings
from dssgnn.report.folder import PARTS, Floats, ModelFolder, number, read_folder, section
from dssgnn.report.statistics import node_scores
from dssgnn.report.structure import adjacency, distance, homophily
from dssgnn.report.table import node_table

__all__ = ["report_content"]

Content = dict[str, Any]


def report_content(
    folder: Path | str, outliers: Mapping[str, np.ndarray] | None = None, *, seed: int = 0
) -> Content:
    """What the page shows, from the files of a model folder.

    A figure that cannot be drawn is ``{"absent": why}``. Numbers are rounded to five significant digits; what
    is not finite is ``None``.

    Args:
        folder: as `dssgnn fit` writes it.
        outliers: energies of the nodes of other graphs, by name.
        seed: of the bootstrap, the random rows of the table and the neighbourhoods.

    Raises:
        InputError: if a file is missing or malformed, or the energies are.
    """
    model = read_folder(folder)
    finite = np.isfinite(model.probabilities).all(axis=1)
    test = model.parts["test"] & (model.labels >= 0) & finite
    scores = node_scores(model.probabilities[test], model.labels[test])
    graph = None if model.edge_index is None else adjacency(model.edge_index, model.num_nodes)
    place = {} if graph is None else _place(graph, model)
    content: Content = {
        "about": _about(model, int((model.parts["test"] & ~finite).sum())),
        "metrics": performance.metrics(model, test, scores, seed),
        "reliability": performance.reliability(model, test),
        "confidence": performance.confidence(scores),
        "energy": performance.energy(model, test),
        "risk": performance.risk(model, test, scores),
        "strata": performance.strata(model, test, scores, place),
        "filters": inside.filters(model),
        "orders": inside.orders(model),
        "history": inside.history(model),
        "outliers": performance.outlier_densities(model, outliers or {}),
        "table": node_table(model, graph, place, seed=seed),
    }
    content["findings"] = findings(content)
    cleaned: Content = _clean(content)
    return cleaned


def _place(graph: sp.csr_array, model: ModelFolder) -> dict[str, Floats]:
    return {
        "degree": np.diff(graph.indptr).astype(np.float64),
        "homophily": homophily(graph, model.labels),
        "distance": distance(graph, np.flatnonzero(model.parts["train"])),
    }


def _about(model: ModelFolder, broken: int) -> Content:
    config, training = model.config, section(model.metrics, "training")
    graph = section(config, "graph")
    return {
        "method": config.get("method", "unknown method"),
        "graph": graph.get("name", "unnamed graph"),
        "nodes": model.num_nodes,
        "edges": number(graph.get("edges")),
        "classes": list(model.classes),
        "features": number(config.get("num_features")),
        "parts": {name: int(model.parts[name].sum()) for name in PARTS},
        "labelled": {name: int((model.parts[name] & (model.labels >= 0)).sum()) for name in PARTS},
        "broken": broken,
        "split": config.get("split"),
        "created": config.get("created"),
        "training": {
            **{key: number(training.get(key)) for key in ("epochs", "best_epoch", "seconds", "parameters")},
            "stopped": training.get("stopped"),
        },
        "parameters": section(config, "parameters"),
        "operator": section(config, "operator"),
        "versions": section(config, "versions"),
    }


def _clean(value: Any) -> Any:
    """The same in plain JSON types: arrays as lists, five significant digits, ``None`` for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_clean(item) for item in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value
