"""Planetoid: eight ``ind.<name>.*`` files, seven of them Python 2 pickles, read by a closed unpickler."""

import collections
import io
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dssgnn.data.catalog.readers.base import (
    CSR,
    RawFile,
    RawGraph,
    csr_from_coordinates,
    make_graph,
    one_line,
)
from dssgnn.errors import InputError

__all__ = ["PLANETOID_PARTS", "read_planetoid", "restricted_unpickle"]

PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_VALIDATION_SIZE = 500  # the public split: the 500 nodes after the training ones


class _SparseRecord:
    """Takes the place of scipy's ``csr_matrix`` while unpickling; holds its fields, trusts none of them."""


# NumPy's private constructor under its old and new module names, without importing either.
_reconstruct = np.empty(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): _SparseRecord,
    ("scipy.sparse._csr", "csr_matrix"): _SparseRecord,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not allowed")
        return _ALLOWED[module, name]


def restricted_unpickle(file: RawFile) -> Any:
    """Unpickle ``file``, allowing NumPy arrays, CSR matrices, dicts and lists and nothing else.

    Raises:
        InputError: if the pickle is damaged or names any other class or function.
    """
    try:
        # Python 2 strings hold the arrays' bytes: latin1 maps them one to one.
        return _Unpickler(io.BytesIO(file.content), encoding="latin1").load()
    except Exception as error:  # a hostile or damaged pickle can raise anything
        raise InputError(f"{file.path}: not a Planetoid pickle: {one_line(error)}") from error


def _matrix(file: RawFile) -> CSR:
    record = restricted_unpickle(file)
    state = vars(record) if isinstance(record, _SparseRecord) else {}
    arrays: list[Any] = [state.get(key) for key in ("data", "indices", "indptr")]
    shape = state.get("_shape", state.get("shape"))
    if not all(isinstance(a, np.ndarray) and a.ndim == 1 and a.dtype.kind in "iuf" for a in arrays):
        raise InputError(f"{file.path}: expected a pickled CSR matrix")
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(n, int) for n in shape)):
        raise InputError(f"{file.path}: the CSR matrix has shape {shape!r}, expected two integers")
    values, columns, starts = arrays
    consistent = (
        len(starts) == shape[0] + 1
        and starts[0] == 0
        and starts[-1] == len(values) == len(columns)
        and (np.diff(starts) >= 0).all()
        and (not len(columns) or (columns.min() >= 0 and columns.max() < shape[1]))
    )
    if not consistent:
        raise InputError(
            f"{file.path}: the CSR matrix's row pointers or columns do not fit its shape {shape}"
        )
    return CSR(values, columns, starts, shape)


def _labels(file: RawFile) -> NDArray[np.int64]:
    onehot = restricted_unpickle(file)
    if not (isinstance(onehot, np.ndarray) and onehot.ndim == 2 and onehot.dtype.kind in "iuf"):
        raise InputError(f"{file.path}: expected a pickled one-hot label matrix")
    labels: NDArray[np.int64] = onehot.argmax(axis=1).astype(np.int64)
    return labels


def _edges(file: RawFile, nodes: int) -> NDArray[np.int64]:
    lists = restricted_unpickle(file)
    if not isinstance(lists, dict) or len(lists) != nodes:
        raise InputError(f"{file.path}: expected a pickled dict with the neighbour lists of {nodes} nodes")
    try:
        edges = np.array([(source, target) for source, targets in lists.items() for target in targets])
    except (TypeError, ValueError) as error:
        raise InputError(f"{file.path}: expected lists of node numbers: {one_line(error)}") from error
    return edges.T if edges.size else np.zeros((2, 0), dtype=np.int64)


def read_planetoid(files: Mapping[str, RawFile]) -> RawGraph:
    """Read ``x, tx, allx, y, ty, ally, graph, test.index`` into a graph with the public split.

    Nodes in the test range without a row of their own (15 in Citeseer) get zero features and, as the
    argmax of an all-zero one-hot row, class 0.
    """
    test_file = files["test.index"]
    try:
        test = np.array(test_file.content.split(), dtype=np.int64)
    except (OverflowError, ValueError) as error:
        raise InputError(f"{test_file.path}: expected one node number a line: {one_line(error)}") from error
    known, tested = _matrix(files["allx"]), _matrix(files["tx"])
    known_labels, tested_labels = _labels(files["ally"]), _labels(files["ty"])
    if not len(test) or len(np.unique(test)) != len(test) or test.min() != known.shape[0]:
        raise InputError(f"{test_file.path}: expected distinct nodes from {known.shape[0]} on, one a line")
    sizes = {"tx": tested.shape[0], "ty": len(tested_labels)}
    for part, size in sizes.items():
        if size != len(test):
            raise InputError(f"{files[part].path}: {size} rows, but {test_file.path.name} has {len(test)}")
    if len(known_labels) != known.shape[0] or tested.shape[1] != known.shape[1]:
        raise InputError(f"{files['allx'].path}: its shape {known.shape} does not fit those of ally and tx")

    nodes = int(test.max()) + 1
    edges = _edges(files["graph"], nodes)
    rows = np.concatenate(
        [np.repeat(np.arange(known.shape[0]), np.diff(known.starts)), np.repeat(test, np.diff(tested.starts))]
    )
    features = csr_from_coordinates(
        rows,
        np.concatenate([known.columns, tested.columns]),
        np.concatenate([known.values, tested.values]),
        (nodes, known.shape[1]),
    )
    labels = np.zeros(nodes, dtype=np.int64)
    labels[: len(known_labels)] = known_labels
    labels[test] = tested_labels
    trained = len(_labels(files["y"]))
    index = np.arange(nodes)
    masks = {
        "train": (index < trained)[:, None],
        "val": ((index >= trained) & (index < trained + _VALIDATION_SIZE))[:, None],
        "test": np.isin(index, test)[:, None],
    }
    return make_graph(files["graph"].path, features, edges, labels, masks)
