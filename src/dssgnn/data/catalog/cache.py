"""A cache of read graphs: safetensors files, no pickle, verified on load, rebuilt when damaged."""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dssgnn.data.catalog.readers import RawGraph
from dssgnn.data.catalog.readers.base import CSR
from dssgnn.files import atomic_path

__all__ = ["cache_key", "cached", "read_cache", "write_cache"]

_FORMAT = 1


def cache_key(**parts: Any) -> str:
    """Return a key that changes with any of ``parts`` (plain JSON values) and with the cache's own format."""
    text = json.dumps({"format": _FORMAT, **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def cached(path: Path, key: str, build: Callable[[], RawGraph]) -> RawGraph:
    """Return the graph stored at ``path`` under ``key``, or build and store it."""
    graph = read_cache(path, key)
    if graph is None:
        graph = build()
        try:
            write_cache(path, key, graph)
        except OSError as error:
            warnings.warn(f"{path.parent}: the graph was read but not cached: {error}", stacklevel=2)
    return graph


def write_cache(path: Path, key: str, graph: RawGraph) -> None:
    """Store ``graph`` at ``path``, whole or not at all."""
    arrays = _flatten(graph)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        save_file(arrays, temporary, metadata={"key": key, "sha256": _checksum(arrays)})


def read_cache(path: Path, key: str) -> RawGraph | None:
    """Return the graph at ``path``, or nothing where it is absent, damaged or of another key."""
    try:
        with safe_open(path, framework="numpy") as stored:
            metadata = stored.metadata() or {}
            if metadata.get("key") != key:
                return None
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        if metadata.get("sha256") != _checksum(arrays):
            return None
        return _restore(arrays)
    except (OSError, SafetensorError, KeyError, ValueError):
        return None


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _flatten(graph: RawGraph) -> dict[str, NDArray[Any]]:
    arrays = {"edge_index": graph.edge_index, "labels": graph.labels}
    if isinstance(graph.features, CSR):
        csr = graph.features
        arrays |= {"x.values": csr.values, "x.columns": csr.columns, "x.starts": csr.starts}
        arrays["x.shape"] = np.array(csr.shape, dtype=np.int64)
    else:
        arrays["x"] = graph.features
    arrays |= {f"mask.{name}": mask for name, mask in graph.masks.items()}
    arrays |= {f"extra.{name}": values for name, values in graph.extra.items()}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _restore(arrays: Mapping[str, NDArray[Any]]) -> RawGraph:
    features: NDArray[Any] | CSR
    if "x" in arrays:
        features = arrays["x"]
    else:
        rows, columns = (int(n) for n in arrays["x.shape"])
        features = CSR(arrays["x.values"], arrays["x.columns"], arrays["x.starts"], (rows, columns))
    groups: dict[str, dict[str, NDArray[Any]]] = {"mask": {}, "extra": {}}
    for name, array in arrays.items():
        group, _, rest = name.partition(".")
        if group in groups:
            groups[group][rest] = array
    return RawGraph(features, arrays["edge_index"], arrays["labels"], groups["mask"], groups["extra"])
