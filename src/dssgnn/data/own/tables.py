"""People's own tables: a folder with ``nodes.csv|parquet`` and ``edges.csv|parquet``.

Nodes: ``id``, optional ``label``, optional ``split`` (train, val, test or empty), the rest are feature columns.
Edges: ``source``, ``target``, optional ``weight``; an edge goes one way, as it is written.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data

from dssgnn.data.checks import MASKS
from dssgnn.data.own.columns import Missing, class_names_of
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.loaded import LoadedGraph, finish
from dssgnn.data.own.sheets import TEXT, Sheet, one_line, shown
from dssgnn.data.own.table_files import read_sheet
from dssgnn.errors import InputError

__all__ = ["graph_from_sheets", "read_tables"]

_NODE_COLUMNS = ("id", "label", "split")
_EDGE_COLUMNS = ("source", "target", "weight")
_PARTS = ("train", "val", "test")


def read_tables(
    folder: str | Path,
    *,
    encoding: FeatureEncoding | None = None,
    missing: Missing = "error",
    categorical: Iterable[str] = (),
) -> LoadedGraph:
    """Read the two tables of a folder into a checked graph.

    Args:
        folder: holds ``nodes.csv`` or ``nodes.parquet``, and ``edges.csv`` or ``edges.parquet``.
        encoding: that of the graph a model was fitted on; None learns one from this folder.
        missing: what a missing number does when an encoding is learned, see `FeatureEncoding`.
        categorical: columns of numbers that are categories, when an encoding is learned.

    Raises:
        InputError: naming the file, the line (CSV, the header is line 1) or row (Parquet, from 0), the value
            received and the one expected.
    """
    folder = Path(folder)
    nodes, edges = (read_sheet(_find(folder, name)) for name in ("nodes", "edges"))
    return graph_from_sheets(
        nodes, edges, shown(folder), encoding=encoding, missing=missing, categorical=categorical
    )


def graph_from_sheets(
    nodes: Sheet,
    edges: Sheet,
    source: str,
    *,
    encoding: FeatureEncoding | None = None,
    missing: Missing = "error",
    categorical: Iterable[str] = (),
) -> LoadedGraph:
    """Join a sheet of nodes and one of edges into a checked graph; arguments as in `read_tables`."""
    _require(nodes, ["id"])
    _require(edges, ["source", "target"])
    if len(nodes) == 0:
        raise InputError(f"{nodes.name} has no rows, expected at least one node")
    ids = _node_ids(nodes)
    ends = [_positions(edges, name, ids, nodes) for name in ("source", "target")]
    labels = nodes.labels("label") if "label" in nodes.names else pa.nulls(len(nodes), TEXT)
    if encoding is None:
        features = [name for name in nodes.names if name not in _NODE_COLUMNS]
        encoding = FeatureEncoding.fit(
            nodes, features, class_names=class_names_of(labels), missing=missing, categorical=categorical
        )
    encoded = encoding.transform(nodes, ignore=_NODE_COLUMNS)
    y, unseen_labels = encoding.encode_labels(labels)
    data = Data(
        x=torch.from_numpy(encoded.x),
        edge_index=torch.from_numpy(np.stack(ends)),
        y=torch.from_numpy(y.copy()),
    )
    if "weight" in edges.names:
        data.edge_weight = _weights(edges)
    if "split" in nodes.names:
        data.update(_masks(nodes))
    return finish(
        data,
        encoding,
        ids.to_numpy(zero_copy_only=False).copy(),
        source,
        encoded=encoded,
        unseen_labels=unseen_labels,
        ignored=tuple(name for name in edges.names if name not in _EDGE_COLUMNS),
    )


def _find(folder: Path, name: str) -> Path:
    candidates = [folder / f"{name}.csv", folder / f"{name}.parquet"]
    present = [path for path in candidates if os.path.exists(path)]
    if len(present) != 1:
        found = "both" if present else "neither"
        raise InputError(
            f"{shown(folder)} holds {found} of {name}.csv and {name}.parquet, expected exactly one"
        )
    return present[0]


def _require(sheet: Sheet, names: list[str]) -> None:
    for name in names:
        if name not in sheet.names:
            header = ", ".join(sheet.names[:6]) + (", ..." if len(sheet.names) > 6 else "")
            if len(sheet.names) == 1 and (";" in header or "\t" in header):
                raise InputError(f"{sheet.name} is separated by semicolons or tabs, expected commas")
            raise InputError(
                f"{sheet.name} has no column {name!r}, expected one; its header is {one_line(header, 200)!r}"
            )


def _node_ids(nodes: Sheet) -> Any:
    ids = nodes.keys("id")
    first = pc.index_in(ids, value_set=ids).to_numpy()  # where each id occurs first
    again = first != np.arange(len(first))
    if again.any():
        row = int(again.argmax())
        place = nodes.locate(int(first[row]))
        raise nodes.error(
            row, f"id {ids[row].as_py()!r:.60} occurs a second time (first in {place}), expected distinct ids"
        )
    return ids


def _positions(edges: Sheet, name: str, ids: Any, nodes: Sheet) -> Any:
    """The node number of every edge's end."""
    keys = edges.keys(name)
    if len(keys) == 0:
        return np.zeros(0, dtype=np.int64)
    integers = ids.type != TEXT
    if keys.type != ids.type:
        keys, ids = keys.cast(TEXT), ids.cast(TEXT)
    found = pc.index_in(keys, value_set=ids)
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        key = keys[row].as_py()
        wordy = integers and isinstance(key, str) and not key.lstrip("-").isdecimal()
        problem = (
            f"is text, but the ids of {nodes.name} are integers" if wordy else f"is not an id of {nodes.name}"
        )
        raise edges.error(row, f"{name} {key!r:.60} {problem}")
    return found.to_numpy().astype(np.int64)


def _weights(edges: Sheet) -> torch.Tensor:
    values = edges.numbers("weight")
    bad = ~((values >= 0) & (values <= np.finfo(np.float32).max))
    if bad.any():
        row = int(bad.argmax())
        got = "missing" if np.isnan(values[row]) else f"{values[row]:g}"
        raise edges.error(row, f"weight is {got}, expected a finite number >= 0")
    return torch.from_numpy(values.astype(np.float32))


def _masks(nodes: Sheet) -> dict[str, torch.Tensor]:
    """The three masks; none at all where the column is empty throughout."""
    words = nodes.words("split")
    known = pc.is_in(words, value_set=pa.array(_PARTS, TEXT))
    row = pc.index(pc.or_(known, words.is_null()), False).as_py()
    if row >= 0:
        raise nodes.error(row, f"split is {words[row].as_py()!r:.60}, expected train, val, test or nothing")
    if words.null_count == len(words):
        return {}
    return {
        mask: torch.from_numpy(
            pc.fill_null(pc.equal(words, part), False).to_numpy(zero_copy_only=False).copy()
        )
        for mask, part in zip(MASKS, _PARTS, strict=True)
    }
