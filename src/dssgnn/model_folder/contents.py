"""The files of a model folder, each read with a check of what it must hold."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dssgnn.data.own.npz import read_arrays
from dssgnn.errors import InputError

__all__ = [
    "blaming",
    "checked_arrays",
    "read_history",
    "read_json",
    "read_metrics",
    "read_table",
    "require",
]

SCORES = ("entropy", "mutual_information", "chaos_energy", "energy", "ood_score")


def checked_arrays(
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


def read_table(path: Path, nodes: int, classes: tuple[Any, ...]) -> pd.DataFrame:
    """The predictions: a row a node, a column a class and a score."""
    require(path)
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


def read_metrics(path: Path) -> dict[str, Any]:
    """The metrics of every part that there is, and of the training."""
    metrics = read_json(path)
    parts = [part for part in ("test", "val", "train") if part in metrics]
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(parts, ("nodes", "accuracy", "brier", "nll", "ece"))
    for part, keys in (wanted | {"training": ("best_epoch", "epochs")}).items():
        values = metrics.get(part)
        for key in keys:
            value = values.get(key) if isinstance(values, dict) else None
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise InputError(f"{path}: {part}.{key} is {value!r:.40}, expected a number")
    return metrics


def read_history(path: Path) -> list[dict[str, float]]:
    """One row an epoch."""
    require(path)
    try:
        frame = pd.read_csv(path, dtype=float)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a table of numbers ({_line(error)})") from error
    # Rows longer than the header would silently become an index.
    if frame.empty or "epoch" not in frame or not isinstance(frame.index, pd.RangeIndex):
        raise InputError(f"{path}: has no column 'epoch', expected one row an epoch")
    rows: list[dict[str, float]] = frame.to_dict("records")  # type: ignore[assignment]
    return rows


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    require(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable JSON ({_line(error)})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}, expected a JSON object")
    return content


def require(path: Path) -> None:
    """Check that a file is there."""
    if not path.is_file():
        raise InputError(f"{path}: is missing, expected a file of a model folder")


class blaming:
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
