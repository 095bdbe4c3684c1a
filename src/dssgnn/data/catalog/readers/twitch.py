"""Twitch, two incompatible publications of it: the MUSAE files and PyG's ``.npz``."""

import io
import json
from collections.abc import Mapping

import numpy as np
import pandas as pd

from dssgnn.data.catalog.readers.base import (
    RawFile,
    RawGraph,
    csr_from_coordinates,
    make_graph,
    npz_arrays,
    one_line,
)
from dssgnn.errors import InputError

__all__ = ["MUSAE_FEATURES", "read_musae", "read_pyg_twitch"]

MUSAE_FEATURES = 3170  # ids 0..3169 over the six regions, so that they share their columns


def _table(file: RawFile, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        return pd.read_csv(io.BytesIO(file.content), usecols=list(columns))
    except (ValueError, UnicodeError) as error:
        raise InputError(
            f"{file.path}: expected a CSV with the columns {', '.join(columns)}: {one_line(error)}"
        ) from error


def read_musae(files: Mapping[str, RawFile]) -> RawGraph:
    """Read ``edges``, ``features`` (node to feature ids) and ``target``, joined by ``new_id``.

    The label is ``mature``. A user listed twice (two in FR) must have the same label both times.
    """
    targets = _table(files["target"], ("new_id", "mature"))
    if targets["new_id"].dtype.kind != "i" or targets["mature"].dtype != np.bool_:
        raise InputError(f"{files['target'].path}: expected integers in new_id and True or False in mature")
    distinct = targets.drop_duplicates()
    if distinct["new_id"].duplicated().any():
        node = distinct.loc[distinct["new_id"].duplicated(), "new_id"].iloc[0]
        raise InputError(f"{files['target'].path}: new_id {node} is listed with two different labels")
    nodes = len(distinct)
    ids = distinct["new_id"].to_numpy(dtype=np.int64)
    if not np.array_equal(np.sort(ids), np.arange(nodes)):
        raise InputError(f"{files['target'].path}: new_id must cover 0..{nodes - 1}")
    labels = np.zeros(nodes, dtype=np.int64)
    labels[ids] = distinct["mature"].to_numpy(dtype=np.int64)

    path = files["features"].path
    try:
        lists = {int(node): list(values) for node, values in json.loads(files["features"].content).items()}
        rows = np.repeat(np.array(list(lists), dtype=np.int64), [len(v) for v in lists.values()])
        columns = np.array([c for values in lists.values() for c in values] or np.zeros(0, dtype=np.int64))
        if columns.dtype.kind != "i" or columns.ndim != 1:
            raise TypeError(f"the ids are {columns.dtype}")
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: expected a JSON map from node to a list of feature ids: {one_line(error)}"
        ) from error
    if rows.size and not (rows.min() >= 0 and rows.max() < nodes):
        raise InputError(f"{path}: features of node {rows.max()}, expected 0..{nodes - 1}")
    if columns.size and not (columns.min() >= 0 and columns.max() < MUSAE_FEATURES):
        raise InputError(f"{path}: feature id {columns.max()}, expected 0..{MUSAE_FEATURES - 1}")
    keys = np.unique(rows * MUSAE_FEATURES + columns)  # an id may repeat within a node
    features = csr_from_coordinates(
        keys // MUSAE_FEATURES, keys % MUSAE_FEATURES, np.ones(len(keys)), (nodes, MUSAE_FEATURES)
    )
    edges = _table(files["edges"], ("from", "to"))[["from", "to"]].to_numpy().T
    return make_graph(files["edges"].path, features, edges, labels)


def read_pyg_twitch(files: Mapping[str, RawFile]) -> RawGraph:
    """Read ``graph``: ``features [N, 128], target [N], edges [E, 2]`` with both directions and self-loops."""
    file = files["graph"]
    arrays = npz_arrays(file, ("features", "target", "edges"))
    return make_graph(file.path, arrays["features"], arrays["edges"].T, arrays["target"].reshape(-1))
