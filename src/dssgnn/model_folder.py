"""The model folder: everything about a fitted model, in files that anybody can read, without a pickle."""

import json
import math
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor

from dssgnn.benchmarks.records import versions
from dssgnn.checkpoint import load_tensors, save_tensors
from dssgnn.data import FeatureEncoding, Split
from dssgnn.data.own.npz import read_arrays
from dssgnn.devices import resolve_device
from dssgnn.errors import InputError
from dssgnn.estimator import DSSClassifier, FittedState, operator_options
from dssgnn.files import atomic_folder
from dssgnn.graph import GraphOperator
from dssgnn.scaling import Scaling, fit_scaling
from dssgnn.validation import check_count, check_edge_weight

__all__ = ["SCHEMA", "check_target", "load_folder", "save_folder"]

SCHEMA = 1
SCORES = ("entropy", "mutual_information", "chaos_energy", "energy", "ood_score")
Estimator = TypeVar("Estimator", bound=DSSClassifier)


def save_folder(estimator: DSSClassifier, folder: Path | str, *, graph: bool = True) -> None:
    """Write a fitted estimator to ``folder``, in the place of what was there; a kill leaves the old or the new.

    Raises:
        InputError: if ``folder`` is there and is not a model folder, or cannot be written.
    """
    check_target(folder)
    state = estimator.state_
    try:
        with atomic_folder(folder) as place:
            save_tensors(place / "weights.safetensors", estimator.model_.state_dict(), {"schema": SCHEMA})
            _write_json(place / "config.json", _config(estimator))
            _write_json(place / "metrics.json", state.metrics)
            np.savez(
                place / "split.npz",
                **{p: getattr(state.split, p).cpu().numpy() for p in ("train", "val", "test")},
            )
            if graph and state.edge_index is not None:
                arrays: dict[str, Any] = {"edge_index": state.edge_index, "y": state.y}
                if state.edge_weight is not None:
                    arrays["edge_weight"] = state.edge_weight
                np.savez_compressed(place / "graph.npz", **arrays)
            state.predictions.to_parquet(place / "predictions.parquet", index=False)
            pd.DataFrame(state.history).to_csv(place / "history.csv", index=False)
            (place / "card.md").write_text(_card(estimator), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error}") from error


def check_target(folder: Path | str) -> None:
    """Check that a model folder may be written to ``folder``: it is new, empty, or a model folder.

    Raises:
        InputError: if not.
    """
    folder = Path(folder)
    if folder.name in ("", ".."):
        raise InputError(f"{folder} cannot be a model folder, expected the name of a folder to make")
    if os.path.lexists(folder) and not (folder / "config.json").is_file() and not _is_empty(folder):
        raise InputError(
            f"{folder} is there and is not a model folder; it would be replaced, so give another name"
        )


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
    config = _read_json(folder / "config.json")
    path = folder / "config.json"
    if config.get("schema") != SCHEMA:
        raise InputError(f"{path}: schema {config.get('schema')!r}, expected {SCHEMA}")
    with _blaming(path):
        parameters = dict(config["parameters"])
        parameters["filter_orders"] = tuple(parameters["filter_orders"])
        # A model moves: it runs on what the machine that loads it has.
        estimator = cast(Estimator, kind().set_params(**(parameters | {"device": "auto"})))
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
    _require(folder / "weights.safetensors")
    with _blaming(folder / "weights.safetensors", named=True):
        weights, _ = load_tensors(folder / "weights.safetensors")
    estimator.model_ = _model(estimator, features, len(classes), weights, folder)
    estimator.classes_ = names
    estimator.n_features_in_ = features
    split = _arrays(folder / "split.npz", dict.fromkeys(("train", "val", "test"), ("?", (nodes,))))
    edges: dict[str, NDArray[Any]] = {}
    if os.path.lexists(folder / "graph.npz"):
        edges = _arrays(
            folder / "graph.npz",
            {"edge_index": ("i", (2, graph["edges"])), "y": ("i", (nodes,))},
            {"edge_weight": ("f", (graph["edges"],))},
        )
        with _blaming(folder / "graph.npz"):
            _check_range(edges["edge_index"], "edge_index", 0, nodes - 1)
            _check_range(edges["y"], "y", -1, len(classes) - 1)
            if "edge_weight" in edges:
                check_edge_weight(torch.from_numpy(edges["edge_weight"]), graph["edges"])
    predictions = _table(folder / "predictions.parquet", nodes, classes)
    with _blaming(folder / "split.npz"):
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
        metrics=_metrics(folder / "metrics.json"),
        history=_history(folder / "history.csv"),
        parameters=estimator.get_params(),
    )
    return estimator


def _config(estimator: DSSClassifier) -> dict[str, Any]:
    state = estimator.state_
    parameters = state.parameters
    return {
        "schema": SCHEMA,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": versions(),
        "method": parameters["method"],
        "parameters": parameters,
        "classes": list(state.encoding.class_names),
        "num_features": estimator.n_features_in_,
        "feature_names": list(state.encoding.feature_names),
        "encoding": json.loads(state.encoding.to_json()),
        "scaling": state.scaling.to_json(),
        "operator": operator_options(parameters) | {"lambda_max": 2.0},
        "graph": state.graph,
        "split": state.split_origin,
    }


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
    with _blaming(folder / "config.json"), torch.device("meta"):
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


def _arrays(
    path: Path,
    wanted: dict[str, tuple[str, tuple[int | None, ...]]],
    optional: dict[str, tuple[str, tuple[int | None, ...]]] | None = None,
) -> dict[str, NDArray[Any]]:
    """Arrays of an npz, by kind of dtype (``?`` boolean, ``i`` integer, ``f`` float) and shape."""
    arrays, _ = read_arrays(path, tuple(wanted), tuple(optional or ()))
    for name, (kind, shape) in (wanted | (optional or {})).items():
        array = arrays.get(name)
        if array is None:  # an optional one
            continue
        fits = len(array.shape) == len(shape) and all(
            w in (None, g) for w, g in zip(shape, array.shape, strict=True)
        )
        if array.dtype.kind != {"?": "b"}.get(kind, kind) or not fits:
            raise InputError(
                f"{path}: {name} is {array.dtype} {list(array.shape)}, expected {list(shape)} of kind {kind}"
            )
    return arrays


def _table(path: Path, nodes: int, classes: tuple[Any, ...]) -> pd.DataFrame:
    _require(path)
    numbers = ["confidence", *(f"p_{c}" for c in classes), *SCORES]
    try:
        file = pq.ParquetFile(path)  # reads the description alone
        missing = {"node", "label", "split", "prediction", *numbers} - set(file.schema_arrow.names)
        if missing or file.metadata.num_rows != nodes:
            problem = f"no column {min(missing)!r}" if missing else f"{file.metadata.num_rows} rows"
            raise InputError(
                f"{path}: has {problem}, expected one row for each of {nodes} nodes and a column a class"
            )
        frame = pd.read_parquet(path)
    except InputError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a readable table ({_line(error)})") from error
    for name in numbers:
        kind = frame[name].dtype.kind
        if kind != "f" or not np.isfinite(frame[name]).all():
            raise InputError(f"{path}: column {name!r} must hold finite numbers, found {frame[name].dtype}")
    return frame


def _metrics(path: Path) -> dict[str, Any]:
    metrics = _read_json(path)
    parts = [part for part in ("test", "val", "train") if part in metrics]
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(parts, ("nodes", "accuracy", "brier", "nll", "ece"))
    for part, keys in (wanted | {"training": ("best_epoch", "epochs")}).items():
        values = metrics.get(part)
        for key in keys:
            value = values.get(key) if isinstance(values, dict) else None
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise InputError(f"{path}: {part}.{key} is {value!r:.40}, expected a number")
    return metrics


def _history(path: Path) -> list[dict[str, float]]:
    _require(path)
    try:
        frame = pd.read_csv(path, dtype=float)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a table of numbers ({_line(error)})") from error
    # Rows longer than the header would silently become an index.
    if frame.empty or "epoch" not in frame or not isinstance(frame.index, pd.RangeIndex):
        raise InputError(f"{path}: has no column 'epoch', expected one row an epoch")
    rows: list[dict[str, float]] = frame.to_dict("records")  # type: ignore[assignment]
    return rows


def _write_json(path: Path, content: Any) -> None:
    # `default`: a parameter may be a number of numpy's.
    path.write_text(
        json.dumps(content, indent=1, default=lambda value: value.item()) + "\n", encoding="utf-8"
    )


def _read_json(path: Path) -> dict[str, Any]:
    _require(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable JSON ({_line(error)})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}, expected a JSON object")
    return content


def _require(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: is missing, expected a file of a model folder")


class _blaming:
    """Turns what a malformed file makes the code raise into one error that names the file."""

    def __init__(self, path: Path, *, named: bool = False) -> None:
        self.path, self.named = path, named

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError):
            prefix = "" if self.named else f"{self.path}: "
            raise InputError(f"{prefix}{' '.join(str(error).split())}") from error
        if isinstance(error, KeyError):
            raise InputError(f"{self.path}: has no {error}, expected it in a model folder") from error
        if isinstance(error, (TypeError, ValueError, AttributeError, OverflowError, RuntimeError)):
            raise InputError(f"{self.path}: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _card(estimator: DSSClassifier) -> str:
    state = estimator.state_
    graph, training = state.graph, state.metrics["training"]
    lines = [
        f"# {state.parameters['method']} on {graph['name']}",
        "",
        f"A node classifier for {len(state.encoding.class_names)} classes, trained with dssgnn on a graph of "
        f"{graph['nodes']:,} nodes and {graph['edges']:,} edges with {estimator.n_features_in_:,} features.",
        f"Split: {state.split_origin}. Best epoch {training['best_epoch']} of {training['epochs']}, chosen on "
        f"validation {state.parameters['monitor']}.",
        "",
        "| part | nodes | accuracy | Brier | NLL | ECE |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for part in ("test", "val", "train"):
        if part in state.metrics:
            m = state.metrics[part]
            figures = " | ".join(f"{m[key]:.4f}" for key in ("accuracy", "brier", "nll", "ece"))
            lines.append(f"| {part} | {m['nodes']:,} | {figures} |")
    lines += [
        "",
        "## Limits",
        "",
        "- Probabilities are calibrated for nodes like those it was tested on; validation chose the epoch, so only the "
        "test row is an honest estimate.",
        "- `ood_score` orders nodes by how unusual they are; it is not a probability and has no fixed threshold.",
        "- A graph with other features, another meaning of its edges, or other classes needs another model.",
        "",
    ]
    return "\n".join(lines)
