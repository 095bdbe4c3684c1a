"""What the page needs of a model folder, read and checked."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dssgnn.data.own.npz import read_arrays
from dssgnn.errors import InputError

__all__ = ["PARTS", "SCORES", "Bools", "Floats", "Ints", "ModelFolder", "number", "read_folder", "section"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PARTS = ("train", "val", "test")
SCORES = ("entropy", "mutual_information", "chaos_energy", "energy", "ood_score")


@dataclass(frozen=True)
class ModelFolder:
    """The content of a model folder, aligned by node."""

    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    history: Mapping[str, Floats]
    classes: tuple[str, ...]
    ids: npt.NDArray[np.object_]  # [N]
    labels: Ints  # [N], -1 unknown
    probabilities: Floats  # [N, C]
    parts: Mapping[str, Bools]  # [N] each
    scores: Mapping[str, Floats]  # [N] each
    edge_index: Ints | None  # [2, E]

    @property
    def num_nodes(self) -> int:
        """``N``."""
        return len(self.ids)


def read_folder(folder: Path | str) -> ModelFolder:
    """Read a model folder.

    Raises:
        InputError: if a file is missing or does not hold what it should; names the file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} must be a model folder written by `dssgnn fit`, found no such folder")
    config = _json(folder / "config.json")
    classes = _classes(config, folder / "config.json")
    frame = _parquet(folder / "predictions.parquet", classes)
    size = len(frame)
    return ModelFolder(
        config=config,
        metrics=_json(folder / "metrics.json"),
        history=_history(folder / "history.csv"),
        classes=classes,
        ids=frame["node"].to_numpy(dtype=object),
        labels=_labels(frame, classes, folder / "predictions.parquet"),
        probabilities=_probabilities(frame, classes, folder / "predictions.parquet"),
        parts=_split(folder / "split.npz", size),
        scores={name: _numbers(frame, [name], folder / "predictions.parquet")[:, 0] for name in SCORES},
        edge_index=_edges(folder / "graph.npz", size),
    )


def section(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object under ``key``, empty where there is none."""
    value = mapping.get(key)
    return value if isinstance(value, dict) else {}


def number(value: object) -> float | None:
    """The value where it is a finite number, else ``None``."""
    real = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if real else None  # type: ignore[return-value]


def _need(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is missing; a model folder written by `dssgnn fit` holds it")


def _json(path: Path) -> dict[str, Any]:
    _need(path)
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} must be JSON, but cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a JSON object, got {type(content).__name__}")
    if path.name == "config.json" and content.get("schema") != 1:
        raise InputError(f"{path} must have schema 1, got {content.get('schema')!r}")
    return content


def _classes(config: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    classes = config.get("classes")
    if not isinstance(classes, list) or not classes or any(isinstance(c, list | dict) for c in classes):
        raise InputError(f"{path} must list the names of the classes under `classes`, got {classes!r:.60}")
    names = tuple(str(name) for name in classes)
    if len(set(names)) < len(names):
        raise InputError(f"{path} must name each class once under `classes`, got {classes!r:.60}")
    return names


def _parquet(path: Path, classes: tuple[str, ...]) -> pd.DataFrame:
    _need(path)
    try:
        frame = pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} must be a parquet table, but cannot be read: {_line(error)}") from None
    for name in ("node", "label", *(f"p_{c}" for c in classes), *SCORES):
        if name not in frame.columns:
            raise InputError(f"{path} must have a column `{name}`, found {', '.join(frame.columns)[:200]}")
    if frame.empty:
        raise InputError(f"{path} must have one row a node, found none")
    return frame


def _numbers(frame: pd.DataFrame, names: list[str], path: Path) -> Floats:
    """The columns as ``[N, len(names)]``; a missing value is NaN."""
    values = np.empty((len(frame), len(names)))
    for column, name in enumerate(names):
        try:
            values[:, column] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise InputError(
                f"{path} must hold numbers in column `{name}`, got {frame[name].dtype}"
            ) from None
    return values


def _probabilities(frame: pd.DataFrame, classes: tuple[str, ...], path: Path) -> Floats:
    values = _numbers(frame, [f"p_{name}" for name in classes], path)
    wrong = (values < 0).any(axis=1) | (np.abs(values.sum(axis=1) - 1) > 1e-3)  # false for NaN
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{path} row {row}: probabilities must sum to 1, got {values[row].sum():.6g}")
    return values


def _labels(frame: pd.DataFrame, classes: tuple[str, ...], path: Path) -> Ints:
    labels = pd.Index(classes, dtype=object).get_indexer(pd.Index(frame["label"].to_numpy(dtype=object)))
    strange = frame["label"].notna().to_numpy() & (labels < 0)
    if strange.any():
        row = int(strange.argmax())
        value = frame["label"].iloc[row]
        raise InputError(f"{path} row {row}: label {value!r:.60} is not one of the classes of config.json")
    return labels.astype(np.int64)


def _arrays(path: Path, names: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    arrays, _ = read_arrays(path, names)
    return [arrays[name] for name in names]


def _split(path: Path, size: int) -> dict[str, Bools]:
    _need(path)
    masks = _arrays(path, PARTS)
    for name, mask in zip(PARTS, masks, strict=True):
        if mask.dtype != np.bool_ or mask.shape != (size,):
            raise InputError(
                f"{path}: `{name}` must be boolean of shape [{size}], got {mask.dtype} {list(mask.shape)}"
            )
    return dict(zip(PARTS, masks, strict=True))


def _edges(path: Path, size: int) -> Ints | None:
    if not path.exists():
        return None
    (edges,) = _arrays(path, ("edge_index",))
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"{path}: `edge_index` must be integer of shape [2, E], got {edges.dtype} {list(edges.shape)}"
        )
    if edges.size and (edges.min() < 0 or edges.max() >= size):
        raise InputError(
            f"{path}: `edge_index` must name nodes 0..{size - 1}, got {edges.min()}..{edges.max()}"
        )
    return edges.astype(np.int64)


def _history(path: Path) -> dict[str, Floats]:
    """The numeric columns; one that holds something else is not for drawing."""
    _need(path)
    try:
        frame = pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return {}
    except (ValueError, OSError) as error:
        raise InputError(f"{path} must be a CSV table, but cannot be read: {_line(error)}") from None
    if "epoch" not in frame.columns:
        raise InputError(f"{path} must have a column `epoch`, found {', '.join(frame.columns)[:200]}")
    numeric = frame.select_dtypes("number")
    return {str(name): numeric[name].to_numpy(dtype=np.float64) for name in numeric.columns}


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
