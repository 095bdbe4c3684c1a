"""Arrays without column names become a checked graph: the common end of ``.npz`` and in-memory graphs."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.data.checks import MASKS
from dssgnn.data.own.columns import class_names_of
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.loaded import LoadedGraph, finish
from dssgnn.errors import InputError

__all__ = ["graph_from_tensors"]


def graph_from_tensors(
    tensors: Mapping[str, Tensor],
    source: str,
    *,
    encoding: FeatureEncoding | None = None,
    ignored: tuple[str, ...] = (),
) -> LoadedGraph:
    """Check tensors (``x``, ``edge_index``, ``y``, ...) and number the classes.

    Class numbers of ``y`` are those of the sorted labels, so labels may be any integers >= 0; -1 means none.
    An ``encoding`` fitted on a table takes ``x`` as already encoded: only the number of features must agree.
    """
    x, y = tensors["x"], tensors["y"]
    if x.dim() != 2 or 0 in x.shape:
        raise InputError(
            f"{source}: x has shape {list(x.shape)}, expected [nodes, features], at least [1, 1]"
        )
    if list(y.shape) != [x.size(0)]:
        raise InputError(f"{source}: y has shape {list(y.shape)}, expected [{x.size(0)}], one label a node")
    if bool((y < -1).any()):
        raise InputError(f"{source}: y holds {int(y.min())}, expected classes >= 0 (-1: no label)")
    labels = y.cpu().numpy()
    column = pa.array(labels, pa.int64(), mask=labels < 0)
    if encoding is None:
        encoding = FeatureEncoding(unnamed=x.size(1), class_names=class_names_of(column))
    if encoding.num_features != x.size(1):
        raise InputError(
            f"{source}: x has {x.size(1)} features, but the encoding was fitted with {encoding.num_features}"
        )
    numbers, unseen_labels = encoding.encode_labels(column)
    content = {**tensors, "y": torch.from_numpy(numbers.copy()).to(y.device)}
    content.update({name: _mask(content[name], name, source) for name in MASKS if name in content})
    ids = np.arange(x.size(0))
    return finish(Data(**content), encoding, ids, source, unseen_labels=unseen_labels, ignored=ignored)


def _mask(mask: Tensor, name: str, source: str) -> Tensor:
    if mask.dtype != torch.bool and bool(((mask != 0) & (mask != 1)).any()):
        raise InputError(f"{source}: {name} holds other values than 0 and 1, expected booleans")
    return mask.bool()
