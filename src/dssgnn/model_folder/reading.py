"""Reading a model folder: whatever is wrong with it is one sentence that names the file."""

import json
import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dssgnn.checkpoint import load_tensors
from dssgnn.data import FeatureEncoding, Split
from dssgnn.devices import resolve_device
from dssgnn.errors import InputError
from dssgnn.estimator import DSSClassifier, operator_options
from dssgnn.fitted import FittedState
from dssgnn.graph import GraphOperator
from dssgnn.model_folder.contents import (
    blaming,
    checked_arrays,
    read_history,
    read_json,
    read_metrics,
    read_table,
    require,
)
from dssgnn.model_folder.writing import SCHEMA
from dssgnn.scaling import Scaling, fit_scaling
from dssgnn.validation import check_count, check_edge_weight

__all__ = ["load_folder"]

Estimator = TypeVar("Estimator", bound=DSSClassifier)


def load_folder(kind: type[Estimator], folder: Path | str) -> Estimator:
    """Read a folder that `save_folder` wrote.

    Raises:
        InputError: one sentence that names the file, what was found and what was expected.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a model folder: {'it is a file' if folder.exists() else 'it does not exist'}"
        )
    config = read_json(folder / "config.json")
    path = folder / "config.json"
    if config.get("schema") != SCHEMA:
        raise InputError(f"{path}: schema {config.get('schema')!r}, expected {SCHEMA}")
    with blaming(path):
        parameters = dict(config["parameters"])
        parameters["filter_orders"] = tuple(parameters["filter_orders"])
        # A model moves: it runs on what the machine that loads it has.
        estimator = kind().set_params(**(parameters | {"device": "auto"}))
        _check_parameters(estimator)
        encoding = FeatureEncoding.from_json(json.dumps(config["encoding"]))
        features = encoding.num_features
        scaling = Scaling.from_json(config["scaling"], features)
        classes = encoding.class_names
        for name, value in (
            ("method", estimator.method),
            ("classes", list(classes)),
            ("num_features", features),
        ):
            if config[name] != value:
                raise InputError(f"{name} is {config[name]!r:.60}, but {value!r:.60} in the rest of the file")
        names = np.array(classes)
        if names.dtype.kind not in "iU":
            raise InputError(f"classes must be text or 64-bit integers, got {list(classes)!r:.60}")
        graph: dict[str, Any] = {
            "name": str(config["graph"]["name"]),
            **{key: check_count(config["graph"][key], key) for key in ("nodes", "edges")},
        }
        nodes: int = graph["nodes"]
    require(folder / "weights.safetensors")
    with blaming(folder / "weights.safetensors", named=True):
        weights, _ = load_tensors(folder / "weights.safetensors")
    estimator.model_ = _model(estimator, features, len(classes), weights, folder)
    estimator.classes_ = names
    estimator.n_features_in_ = features
    split = checked_arrays(folder / "split.npz", dict.fromkeys(("train", "val", "test"), ("?", (nodes,))))
    edges: dict[str, NDArray[Any]] = {}
    if os.path.lexists(folder / "graph.npz"):
        edges = checked_arrays(
            folder / "graph.npz",
            {"edge_index": ("i", (2, graph["edges"])), "y": ("i", (nodes,))},
            {"edge_weight": ("f", (graph["edges"],))},
        )
        with blaming(folder / "graph.npz"):
            _check_range(edges["edge_index"], "edge_index", 0, nodes - 1)
            _check_range(edges["y"], "y", -1, len(classes) - 1)
            if "edge_weight" in edges:
                check_edge_weight(torch.from_numpy(edges["edge_weight"]), graph["edges"])
    predictions = read_table(folder / "predictions.parquet", nodes, classes)
    with blaming(folder / "split.npz"):
        parts = Split(*(torch.from_numpy(split[part].copy()) for part in ("train", "val", "test")))
    estimator.state_ = FittedState(
        encoding=encoding,
        scaling=scaling,
        graph=graph,
        edge_index=edges.get("edge_index"),
        edge_weight=edges.get("edge_weight"),
        y=edges.get("y", np.full(nodes, -1)),
        split=parts,
        split_origin=str(config.get("split", "")),
        predictions=predictions,
        metrics=read_metrics(folder / "metrics.json"),
        history=read_history(folder / "history.csv"),
        parameters=estimator.get_params(),
    )
    return estimator


def _check_parameters(estimator: DSSClassifier) -> None:
    """Refuse what would only fail later: at the first prediction, or at the next fit."""
    estimator._training_config()
    fit_scaling(torch.zeros(1, 1), estimator.scaling)
    GraphOperator.from_edge_index(
        torch.zeros(2, 0, dtype=torch.long), 1, **operator_options(estimator.get_params())
    )


def _check_range(values: NDArray[Any], name: str, low: int, high: int) -> None:
    if values.size and not low <= values.min() <= values.max() <= high:
        raise InputError(f"{name} holds {values.min()}..{values.max()}, expected {low}..{high}")


def _model(
    estimator: DSSClassifier, features: int, classes: int, weights: dict[str, Tensor], folder: Path
) -> torch.nn.Module:
    # On the meta device a model costs no memory, whatever sizes a tampered file asks for.
    with blaming(folder / "config.json"), torch.device("meta"):
        model = estimator._make_model(features, classes)
    path = folder / "weights.safetensors"
    expected = model.state_dict()
    for name in sorted({*expected, *weights}):
        want, got = (
            f"{list(state[name].shape)} {state[name].dtype}" if name in state else "nothing"
            for state in (expected, weights)
        )
        if want != got:
            raise InputError(f"{path}: {name} is {got}, expected {want} for the model in config.json")
    for name, value in weights.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise InputError(f"{path}: {name} holds values that are not finite")
    model.load_state_dict(weights, assign=True)
    return model.to(resolve_device(estimator.device)).eval()
