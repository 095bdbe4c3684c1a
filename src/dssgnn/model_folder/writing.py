"""Writing a model folder."""

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dssgnn._version import versions
from dssgnn.checkpoint import save_tensors
from dssgnn.errors import InputError
from dssgnn.estimator import DSSClassifier, operator_options
from dssgnn.files import atomic_folder

__all__ = ["SCHEMA", "check_target", "save_folder"]

SCHEMA = 1


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


def _write_json(path: Path, content: Any) -> None:
    # `default`: a parameter may be a number of numpy's.
    path.write_text(
        json.dumps(content, indent=1, default=lambda value: value.item()) + "\n", encoding="utf-8"
    )


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
