"""What every reader takes (`RawFile`) and returns (`RawGraph`), and the checks they share."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from dssgnn.errors import InputError

__all__ = [
    "CSR",
    "RawFile",
    "RawGraph",
    "csr_from_coordinates",
    "make_graph",
    "npz_arrays",
    "one_line",
    "stack_masks",
]

Array = NDArray[Any]


class RawFile(NamedTuple):
    """A published file: where it was found, and its unpacked bytes."""

    path: Path
    content: bytes


class CSR(NamedTuple):
    """A sparse float32 matrix in compressed rows, each position at most once."""

    values: Array
    columns: Array
    starts: Array
    shape: tuple[int, int]

    def dense(self) -> torch.Tensor:
        """Return the matrix as a dense tensor ``[N, F]``."""
        out = torch.zeros(self.shape, dtype=torch.float32)
        rows = torch.from_numpy(np.repeat(np.arange(self.shape[0]), np.diff(self.starts)))
        out[rows, torch.from_numpy(self.columns.astype(np.int64))] = torch.from_numpy(self.values)
        return out


@dataclass(frozen=True)
class RawGraph:
    """A graph as its files list it.

    Args:
        features: ``[N, F]`` float32, dense or `CSR`.
        edge_index: ``[2, E]`` int64, in the direction listed, sorted, each entry once, self-loops included.
        labels: ``[N]`` int64.
        masks: published splits, ``train``, ``val`` and ``test`` bool ``[N, S]``, or empty.
        extra: further arrays of one row a node, such as ``year``.
    """

    features: Array | CSR
    edge_index: Array
    labels: Array
    masks: Mapping[str, Array] = field(default_factory=dict)
    extra: Mapping[str, Array] = field(default_factory=dict)

    def to_data(self) -> Data:
        """Return a PyG `Data`; the S published splits are ``train_masks``, ``val_masks``, ``test_masks``."""
        x = self.features.dense() if isinstance(self.features, CSR) else torch.from_numpy(self.features)
        data = Data(x=x, edge_index=torch.from_numpy(self.edge_index), y=torch.from_numpy(self.labels))
        for part, mask in self.masks.items():
            data[f"{part}_masks"] = torch.from_numpy(mask)
        for name, values in self.extra.items():
            data[name] = torch.from_numpy(values)
        return data


def csr_from_coordinates(rows: Array, columns: Array, values: Array, shape: tuple[int, int]) -> CSR:
    """Return the matrix with ``values`` at ``(rows, columns)``, which must be distinct positions."""
    order = np.lexsort((columns, rows))
    starts = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=starts[1:])
    return CSR(values[order].astype(np.float32), columns[order].astype(np.int32), starts, shape)


def make_graph(
    path: Path,
    features: Array | CSR,
    edges: Array,
    labels: Array,
    masks: Mapping[str, Array] | None = None,
    extra: Mapping[str, Array] | None = None,
) -> RawGraph:
    """Check the parts of a graph against each other and return it; ``edges`` is ``[2, E]``.

    Raises:
        InputError: naming ``path``, the array and the value, where sizes disagree or a value is out of range.
    """
    if len(features.shape) != 2:
        raise InputError(f"{path}: features have shape {list(features.shape)}, expected [nodes, features]")
    nodes = features.shape[0]
    values = features.values if isinstance(features, CSR) else features
    if values.dtype.kind not in "iufb":
        raise InputError(f"{path}: features are {values.dtype}, expected numbers")
    if not np.isfinite(values).all():
        raise InputError(f"{path}: the features hold NaN or infinity, expected finite numbers")
    if labels.shape != (nodes,) or labels.dtype.kind not in "iub":
        raise InputError(f"{path}: labels are {labels.dtype} {list(labels.shape)}, expected {nodes} integers")
    if nodes and int(labels.min()) < 0:
        raise InputError(f"{path}: the label of node {int(labels.argmin())} is {labels.min()}, expected >= 0")
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"{path}: edges are {edges.dtype} {list(edges.shape)}, expected pairs of node numbers"
        )
    if edges.size and not (int(edges.min()) >= 0 and int(edges.max()) < nodes):
        bad = int(edges.min()) if int(edges.min()) < 0 else int(edges.max())
        raise InputError(f"{path}: an edge names node {bad}, expected 0..{nodes - 1}")
    for name, mask in (masks or {}).items():
        if mask.ndim != 2 or mask.shape[0] != nodes or mask.dtype.kind not in "biu":
            raise InputError(
                f"{path}: {name} masks are {mask.dtype} {list(mask.shape)}, expected {nodes} nodes"
            )
    source, target = edges.astype(np.int64)
    keys = np.unique(source * nodes + target)
    return RawGraph(
        features if isinstance(features, CSR) else np.ascontiguousarray(features, dtype=np.float32),
        np.stack([keys // max(nodes, 1), keys % max(nodes, 1)]),
        labels.astype(np.int64),
        {name: np.ascontiguousarray(mask, dtype=np.bool_) for name, mask in (masks or {}).items()},
        {name: np.array(values) for name, values in (extra or {}).items()},
    )


def npz_arrays(file: RawFile, keys: Sequence[str]) -> dict[str, Array]:
    """Return the arrays ``keys`` of an ``.npz``; other members, pickled ones among them, are never opened."""
    wanted = f"expected an .npz with {', '.join(keys)}"
    try:
        with np.load(io.BytesIO(file.content), allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive.files]
            if not missing:
                return {key: archive[key] for key in keys}
    except Exception as error:  # zipfile and NumPy raise a dozen kinds on damaged input
        raise InputError(f"{file.path}: {wanted}: {one_line(error)}") from error
    raise InputError(f"{file.path}: it has no array {missing[0]!r}, {wanted}")


def one_line(error: BaseException) -> str:
    """Return an error's text on one line, as our own messages are."""
    return " ".join(str(error).split())


def stack_masks(file_masks: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Join ``train_mask``, ``val_mask``, ``test_mask`` of S files into ``[N, S]`` each."""
    parts = ("train", "val", "test") if file_masks else ()
    return {part: np.stack([masks[f"{part}_mask"] for masks in file_masks], axis=1) for part in parts}
