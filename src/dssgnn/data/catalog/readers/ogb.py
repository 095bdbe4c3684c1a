"""ogbn-arxiv: the CSV files of the Open Graph Benchmark's archive."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dssgnn.data.catalog.readers.base import RawFile, RawGraph, make_graph, one_line
from dssgnn.errors import InputError

__all__ = ["read_ogb_arxiv"]


def _csv(file: RawFile, kinds: str, columns: int | None = None) -> NDArray[Any]:
    """Return the table, whose numbers must be integers (``kinds="i"``) or may be others (``"if"``)."""
    try:
        table = pd.read_csv(io.BytesIO(file.content), header=None).to_numpy()
    except (OverflowError, ValueError) as error:
        raise InputError(
            f"{file.path}: expected a CSV of numbers without a header: {one_line(error)}"
        ) from error
    if table.dtype.kind not in kinds or (columns is not None and table.shape[1] != columns):
        what = f"{columns or 'any number of'} columns of {'integers' if kinds == 'i' else 'numbers'}"
        raise InputError(f"{file.path}: {table.shape[1]} columns of {table.dtype}, expected {what}")
    return table


def read_ogb_arxiv(files: Mapping[str, RawFile]) -> RawGraph:
    """Read directed edges, features, labels, publication ``year`` and the split by time.

    Edges point from the citing to the cited paper.
    """
    nodes = int(_csv(files["num-node-list"], "i", 1)[0, 0])
    features = _csv(files["node-feat"], "if")
    year = _csv(files["node_year"], "i", 1)[:, 0]
    for name, rows in (("node-feat", len(features)), ("node_year", len(year))):
        if rows != nodes:
            raise InputError(
                f"{files[name].path}: {rows} rows, but {files['num-node-list'].path.name} says {nodes}"
            )
    masks: dict[str, NDArray[Any]] = {}
    for part, role in (("train", "train"), ("val", "valid"), ("test", "test")):
        index = _csv(files[role], "i", 1)[:, 0]
        if index.size and not (index.min() >= 0 and index.max() < nodes):
            raise InputError(f"{files[role].path}: node {index.max()}, expected 0..{nodes - 1}")
        masks[part] = np.zeros((nodes, 1), dtype=np.bool_)
        masks[part][index] = True
    labels = _csv(files["node-label"], "i", 1)[:, 0]
    edges = _csv(files["edge"], "i", 2).T
    return make_graph(files["edge"].path, features, edges, labels, masks, {"year": year})
