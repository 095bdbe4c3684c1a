"""The ``.npz`` of the heterophilous suite (Platonov et al., 2023), with its ten published splits."""

from collections.abc import Mapping

from dssgnn.data.catalog.readers.base import RawFile, RawGraph, make_graph, npz_arrays

__all__ = ["read_heterophilous"]


def read_heterophilous(files: Mapping[str, RawFile]) -> RawGraph:
    """Read ``graph``: ``node_features [N, F], node_labels [N], edges [E, 2]`` and masks ``[S, N]``.

    The suite's own graphs list each edge once; the ``*_directed.npz`` of Chameleon and Squirrel, which
    have the same keys, list directed edges.
    """
    file = files["graph"]
    parts = ("train", "val", "test")
    keys = ("node_features", "node_labels", "edges", *(f"{part}_masks" for part in parts))
    arrays = npz_arrays(file, keys)
    masks = {part: arrays[f"{part}_masks"].T for part in parts}
    return make_graph(file.path, arrays["node_features"], arrays["edges"].T, arrays["node_labels"], masks)
