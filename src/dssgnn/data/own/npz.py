"""A graph in one ``.npz``: ``x, edge_index, y``, optional ``edge_weight, train_mask, val_mask, test_mask``.

Arrays are judged by their headers before a byte of them is read: a file cannot make us run its code (pickled
objects are refused) nor fill the memory (the shape it declares must be the size it has).
"""

import lzma
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dssgnn.data.checks import MASKS
from dssgnn.data.own.arrays import graph_from_tensors
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.loaded import LoadedGraph
from dssgnn.data.own.sheets import one_line, shown
from dssgnn.data.own.table_files import check_memory
from dssgnn.errors import InputError

__all__ = ["read_arrays", "read_npz"]

_REQUIRED = ("x", "edge_index", "y")
_OPTIONAL = ("edge_weight", *MASKS)
# What zipfile and numpy raise on files that are cut, mangled, encrypted or compressed in unknown ways.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    MemoryError,
)


def read_npz(path: str | Path, *, encoding: FeatureEncoding | None = None) -> LoadedGraph:
    """Read a graph from an ``.npz`` file.

    ``x [N, F]`` real numbers, ``edge_index [2, E]`` integers, ``y [N]`` integers (-1: no label),
    ``edge_weight [E]`` finite and non-negative, masks ``[N]`` booleans or 0/1.

    Args:
        path: the file, as ``np.savez`` writes it.
        encoding: that of the graph a model was fitted on; ``x`` must have as many features.

    Raises:
        InputError: naming the file, the array and what was expected.
    """
    name = shown(path)
    arrays, ignored = read_arrays(path, _REQUIRED, _OPTIONAL)
    tensors = {key: _tensor(name, key, array) for key, array in arrays.items()}
    return graph_from_tensors(tensors, name, encoding=encoding, ignored=ignored)


def read_arrays(
    path: str | Path, required: Sequence[str], optional: Sequence[str] = ()
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Read arrays of an ``.npz`` by name, without pickles and without trust in what its headers declare.

    Returns:
        The arrays, and the names of those that were not asked for.

    Raises:
        InputError: naming the file and what was expected.
    """
    name = shown(path)
    if not os.path.isfile(path):
        raise InputError(f"{name} is not a file, expected an .npz")
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_archive(archive, name, required, optional)
    except InputError:
        raise
    except _UNREADABLE as error:
        reason = one_line(error) or type(error).__name__
        raise InputError(f"{name} cannot be read as .npz: {reason}") from error


def _read_archive(
    archive: zipfile.ZipFile, name: str, required: Sequence[str], optional: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    members = [info.filename for info in archive.infolist()]
    if len(set(members)) < len(members):
        raise InputError(f"{name} holds an array twice, expected distinct names")
    present = {member.removesuffix(".npy") for member in members if member.endswith(".npy")}
    absent = [key for key in required if key not in present]
    if absent:
        found = ", ".join(sorted(present)) or "no array"
        wanted = " and ".join(filter(None, (", ".join(required[:-1]), required[-1])))
        raise InputError(f"{name} has no array {absent[0]!r}, expected {wanted}; found {one_line(found)}")
    keys = [key for key in (*required, *optional) if key in present]
    check_memory(name, sum(archive.getinfo(f"{key}.npy").file_size for key in keys))
    for key in keys:
        info = archive.getinfo(f"{key}.npy")
        with archive.open(info) as member:
            _check_header(name, key, member, info.file_size)
    arrays = {}
    for key in keys:
        with archive.open(f"{key}.npy") as member, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's remarks on headers that Python 2 wrote
            arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
    return arrays, tuple(sorted(one_line(key) for key in present - set(keys)))


def _check_header(name: str, key: str, member: IO[bytes], size: int) -> None:
    version = np.lib.format.read_magic(member)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"{name}: array {key!r} has format {version}, expected 1.0 or 2.0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, _, dtype = readers[version](member)
    if dtype.hasobject:
        raise InputError(f"{name}: array {key!r} holds pickled objects, expected numbers")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != size - member.tell():
        raise InputError(
            f"{name}: array {key!r} declares shape {one_line(list(shape))} of {one_line(dtype)}, "
            f"but holds {size - member.tell()} bytes"
        )


def _tensor(name: str, key: str, array: NDArray[Any]) -> Tensor:
    kinds = {"x": "buif", "edge_weight": "uif"}.get(key, "bui" if key in MASKS else "ui")
    if array.dtype.kind not in kinds:
        expected = {"x": "numbers", "edge_weight": "numbers"}.get(
            key, "booleans" if key in MASKS else "integers"
        )
        raise InputError(f"{name}: array {key!r} has type {one_line(array.dtype)}, expected {expected}")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.size and array.max() >= 2**63:
        raise InputError(f"{name}: array {key!r} holds {array.max()}, expected values below 2^63")
    target: type[np.generic] = np.float32 if key in ("x", "edge_weight") else np.int64
    with np.errstate(over="ignore"):  # what overflows becomes infinite, which the check refuses
        return torch.from_numpy(np.ascontiguousarray(array.astype(target)))
