"""NetworkX graphs: node attributes are the columns of the node table, edge attribute ``weight`` is the weight."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dssgnn.data.own.columns import Missing
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.loaded import LoadedGraph
from dssgnn.data.own.sheets import one_line, sheet_from_columns
from dssgnn.data.own.tables import graph_from_sheets
from dssgnn.errors import InputError

__all__ = ["from_networkx"]

_VECTORS = (list, tuple, np.ndarray)


def from_networkx(
    graph: Any,
    *,
    encoding: FeatureEncoding | None = None,
    missing: Missing = "error",
    categorical: Iterable[str] = (),
    source: str = "NetworkX graph",
) -> LoadedGraph:
    """Turn a ``networkx.Graph`` (directed or not, multi or not) into a checked graph.

    Node attributes ``label`` and ``split`` mean what they mean in a table, every other one is a feature: numbers,
    words, booleans, or vectors of one length (``x`` becomes ``x[0], x[1], ...``). An undirected edge goes both ways.
    """
    nodes = list(graph.nodes(data=True))
    ids = _node_ids([node for node, _ in nodes], source)
    columns = _columns([attributes for _, attributes in nodes], f"{source}: nodes", {"id": ids})
    number = dict(zip((node for node, _ in nodes), ids, strict=True))
    edges = list(graph.edges(data=True))
    if not graph.is_directed():
        edges += [(target, start, attributes) for start, target, attributes in edges if start != target]
    ends: dict[str, Sequence[Any]] = {
        "source": [number[edge[0]] for edge in edges],
        "target": [number[edge[1]] for edge in edges],
    }
    weights = [edge[2].get("weight") for edge in edges]
    if any(weight is not None for weight in weights):
        ends["weight"] = weights
    return graph_from_sheets(
        sheet_from_columns(columns, f"{source}: nodes"),
        sheet_from_columns(ends, f"{source}: edges"),
        source,
        encoding=encoding,
        missing=missing,
        categorical=categorical,
    )


def _node_ids(nodes: Sequence[Hashable], source: str) -> Sequence[int] | Sequence[str]:
    if all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in nodes):
        ids = [int(node) for node in nodes]  # type: ignore[call-overload]
        if all(-(2**63) <= node < 2**63 for node in ids):
            return ids
    words = [str(node) for node in nodes]
    if len(set(words)) < len(words):
        twice = Counter(words).most_common(1)[0][0]
        raise InputError(f"{source}: two nodes are both written {one_line(twice)!r}, expected distinct ids")
    return words


def _columns(
    rows: Sequence[Mapping[Any, Any]], source: str, columns: dict[str, Sequence[Any]]
) -> dict[str, Sequence[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        values = [row.get(name) for row in rows]
        parts = _vector_parts(values, f"{source}: attribute {one_line(name)!r}")
        named = {f"{name}[{i}]": part for i, part in enumerate(parts)} if parts else {str(name): values}
        if named.keys() & columns.keys():
            raise InputError(
                f"{source}: attribute {one_line(name)!r} is there twice, expected distinct names"
            )
        columns |= named
    return columns


def _vector_parts(values: Sequence[Any], source: str) -> list[Sequence[Any]]:
    """The columns of vector-valued cells; empty where cells are no vectors."""
    if not any(isinstance(value, _VECTORS) for value in values):
        return []
    lengths = {
        len(value)
        if isinstance(value, _VECTORS) and not any(isinstance(part, _VECTORS) for part in value)
        else 0
        for value in values
    }
    if len(lengths) > 1 or 0 in lengths:
        raise InputError(f"{source} is a vector in some nodes, expected vectors of one length in all")
    return [list(part) for part in zip(*values, strict=True)]
