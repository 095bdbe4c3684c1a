"""One door for every graph: `read_graph` takes a path, a PyG ``Data`` or a NetworkX graph."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.data.checks import MASKS
from dssgnn.data.own.arrays import graph_from_tensors
from dssgnn.data.own.columns import Missing
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.graphml import read_graphml
from dssgnn.data.own.loaded import LoadedGraph
from dssgnn.data.own.netx import from_networkx
from dssgnn.data.own.npz import read_npz
from dssgnn.data.own.sheets import shown
from dssgnn.data.own.tables import read_tables
from dssgnn.errors import InputError

__all__ = ["from_data", "read_graph"]

_FIELDS = ("x", "edge_index", "y", "edge_weight", *MASKS)


def read_graph(
    path_or_object: object,
    *,
    encoding: FeatureEncoding | None = None,
    missing: Missing = "error",
    categorical: Iterable[str] = (),
) -> LoadedGraph:
    """Read and check a graph, whatever it comes in.

    Args:
        path_or_object: a folder of tables, an ``.npz`` or ``.graphml`` file, a PyG ``Data``, a NetworkX graph.
        encoding: that of the graph a model was fitted on (``LoadedGraph.encoding``); None learns one here.
        missing: what a missing number does when an encoding is learned: ``"error"`` or ``"mean"``.
        categorical: columns of numbers that are categories, when an encoding is learned from named columns.

    Returns:
        The graph, its encoding, its nodes' ids and the report of the check.

    Raises:
        InputError: one line that names the file, the row or key, the value received and the one expected.

    >>> graph = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([7, -1]))
    >>> loaded = read_graph(graph)
    >>> loaded.class_names, loaded.data.y.tolist()
    ((7,), [0, -1])
    """
    if isinstance(path_or_object, Data):
        return from_data(path_or_object, encoding=encoding)
    networkx = sys.modules.get("networkx")  # a NetworkX graph exists only where networkx was imported
    if networkx is not None and isinstance(path_or_object, networkx.Graph):
        return from_networkx(path_or_object, encoding=encoding, missing=missing, categorical=categorical)
    if not isinstance(path_or_object, str | os.PathLike):
        raise InputError(
            f"a graph cannot be a {type(path_or_object).__name__}, expected a path, a PyG Data or a NetworkX graph"
        )
    path = Path(path_or_object)
    if os.path.isdir(path):
        return read_tables(path, encoding=encoding, missing=missing, categorical=categorical)
    if not os.path.exists(path):
        raise InputError(
            f"{shown(path)} does not exist, expected a folder of tables, an .npz or a .graphml file"
        )
    if path.suffix == ".npz":
        return read_npz(path, encoding=encoding)
    if path.suffix == ".graphml":
        return read_graphml(path, encoding=encoding, missing=missing, categorical=categorical)
    raise InputError(
        f"{shown(path)} is no kind of graph we read, expected a folder of tables, an .npz or a .graphml file"
    )


def from_data(data: Data, *, encoding: FeatureEncoding | None = None, source: str = "data") -> LoadedGraph:
    """Check a PyG ``Data``; the result is a new object with the fields the library uses, ``data`` stays as it is.

    ``x`` may be sparse or of another real type, ``y`` may be absent or ``[N, 1]``.
    """
    given = {name: data[name] for name in _FIELDS if data.get(name) is not None}
    for name in ("x", "edge_index"):
        if name not in given:
            raise InputError(f"{source}: has no {name}, expected x [N, F] and edge_index [2, E]")
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise InputError(f"{source}: {name} is a {type(value).__name__}, expected a tensor")
    tensors = {name: _convert(name, value, source) for name, value in given.items()}
    x = tensors["x"]
    if "y" not in tensors:
        tensors["y"] = torch.full(x.shape[:1], -1, device=x.device)
    elif tensors["y"].dim() == 2 and tensors["y"].size(1) == 1:
        tensors["y"] = tensors["y"].squeeze(1)
    ignored = tuple(sorted(str(name) for name in data.keys() if name not in _FIELDS))  # noqa: SIM118
    return graph_from_tensors(tensors, source, encoding=encoding, ignored=ignored)


def _convert(name: str, value: Any, source: str) -> Tensor:
    dense: Tensor = value.to_dense() if value.layout != torch.strided else value
    if name in ("x", "edge_weight"):
        if dense.is_complex():
            raise InputError(f"{source}: {name} holds {dense.dtype}, expected real numbers")
        return dense.detach().to(torch.float32)
    if dense.is_floating_point() or dense.is_complex() or (dense.dtype == torch.bool and name not in MASKS):
        expected = "booleans" if name in MASKS else "integers"
        raise InputError(f"{source}: {name} holds {dense.dtype}, expected {expected}")
    return dense if name in MASKS else dense.to(torch.int64)
