"""The ``.npz`` of the gnn-benchmark and graph2gauss repositories: Coauthor-CS, Amazon-Photo, CoraFull."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dssgnn.data.catalog.readers.base import (
    RawFile,
    RawGraph,
    csr_from_coordinates,
    make_graph,
    npz_arrays,
    one_line,
)
from dssgnn.errors import InputError

__all__ = ["read_gnn_benchmark"]

_FIELDS = ("data", "indices", "indptr", "shape")


def _coordinates(
    file: RawFile, arrays: Mapping[str, NDArray[Any]], prefix: str
) -> tuple[NDArray[Any], NDArray[Any], tuple[int, int]]:
    data, indices, indptr, shape = (arrays[f"{prefix}_{field}"] for field in _FIELDS)
    try:
        matrix = csr_matrix((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
    except (IndexError, TypeError, ValueError) as error:
        raise InputError(f"{file.path}: {prefix}_* is not a CSR matrix: {one_line(error)}") from error
    rows, columns = matrix.nonzero()
    return rows, columns, (int(shape[0]), int(shape[1]))


def read_gnn_benchmark(files: Mapping[str, RawFile]) -> RawGraph:
    """Read ``graph``; features become 0/1 (an entry or none), as PyG reads these files.

    Coauthor-CS counts keywords (1, 2, ...) in the file; every published run saw the indicator.
    """
    file = files["graph"]
    keys = [f"{prefix}_{field}" for prefix in ("adj", "attr") for field in _FIELDS]
    arrays = npz_arrays(file, [*keys, "labels"])
    rows, columns, shape = _coordinates(file, arrays, "attr")
    features = csr_from_coordinates(rows, columns, np.ones(len(rows)), shape)
    source, target, adjacency = _coordinates(file, arrays, "adj")
    if adjacency != (shape[0], shape[0]):
        raise InputError(f"{file.path}: adj_shape is {adjacency}, expected {(shape[0], shape[0])}")
    return make_graph(file.path, features, np.stack([source, target]), arrays["labels"])
