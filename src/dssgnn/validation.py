"""Elementary checks of tensors that enter from outside; each raises one `InputError` or returns nothing.

Every room uses these: a file reader adds the file and the row, a module adds the argument's name.
"""

import operator
from numbers import Real
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeGuard, get_args

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from dssgnn.errors import InputError

if TYPE_CHECKING:
    from dssgnn.graph.features import SparseFeatures

__all__ = [
    "FeatureCheck",
    "check_choice",
    "check_count",
    "check_edge_index",
    "check_edge_weight",
    "check_features",
    "check_labels",
    "check_mask",
    "check_masks",
    "check_rates",
    "check_share",
    "is_number",
]


def check_count(value: object, name: str, *, minimum: int = 0) -> int:
    """Return ``value`` as an integer that is at least ``minimum``."""
    # Whatever is an integer (numpy's too, as sweeps bring them), but not a boolean.
    number = (
        None if isinstance(value, bool) or not isinstance(value, SupportsIndex) else operator.index(value)
    )
    if number is None or number < minimum:
        raise InputError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return number


def check_choice(value: object, choices: object, name: str) -> None:
    """Check that ``value`` is one of ``choices``: a tuple, or the values of a ``Literal``."""
    allowed = choices if isinstance(choices, tuple) else get_args(choices)
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in allowed):
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_share(value: object, name: str) -> None:
    """Check that ``value`` is a number in 0..1."""
    if not (is_number(value) and 0 <= value <= 1):
        raise InputError(f"{name} must be in [0, 1], got {value!r}")


def check_rates(**rates: object) -> None:
    """Check that every rate of dropout is a number in ``[0, 1)``."""
    for name, rate in rates.items():
        if not (is_number(rate) and 0 <= rate < 1):
            raise InputError(f"{name} must be in [0, 1), got {rate!r}")


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, numpy's too, but not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_edge_index(edge_index: Tensor, num_nodes: int | None = None) -> None:
    """Check that ``edge_index`` is ``[2, E]``, integer, and within ``0..num_nodes-1``."""
    if not isinstance(edge_index, Tensor):
        raise InputError(f"edge_index must be a tensor of shape [2, E], got {type(edge_index).__name__}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise InputError(f"edge_index must have shape [2, E], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise InputError(f"edge_index must hold int64 or int32, got {edge_index.dtype}")
    if edge_index.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(edge_index))
    if low < 0:
        raise InputError(f"edge_index holds the negative node {low}; nodes are numbered from 0")
    if num_nodes is not None and high >= num_nodes:
        raise InputError(
            f"edge_index names node {high}, but there are {num_nodes} nodes (0..{num_nodes - 1})"
        )


def check_edge_weight(edge_weight: Tensor, num_edges: int) -> None:
    """Check that weights are one finite, non-negative number an edge."""
    if not isinstance(edge_weight, Tensor):
        raise InputError(
            f"edge_weight must be a tensor of shape [{num_edges}], got {type(edge_weight).__name__}"
        )
    if edge_weight.dim() != 1 or edge_weight.numel() != num_edges:
        raise InputError(f"edge_weight must have shape [{num_edges}], got {list(edge_weight.shape)}")
    if not edge_weight.is_floating_point():
        raise InputError(f"edge_weight must be floating point, got {edge_weight.dtype}")
    bad = ~torch.isfinite(edge_weight)
    if bool(bad.any()):
        raise InputError(
            f"edge_weight of edge {_first(bad)} is {edge_weight[bad][0].item()}, expected finite"
        )
    bad = edge_weight < 0
    if bool(bad.any()):
        value = edge_weight[bad][0].item()
        raise InputError(f"edge_weight of edge {_first(bad)} is {value:g}, expected non-negative weights")


def check_features(
    x: "Tensor | SparseFeatures", num_nodes: int | None = None, channels: int | None = None
) -> None:
    """Check that ``x`` is a finite floating-point matrix ``[N, channels]``."""
    values = _values(x)
    if values is None:
        raise InputError(f"x must be a tensor of shape [N, features], got {type(x).__name__}")
    if len(x.shape) != 2:
        raise InputError(f"x must have shape [N, features], got {list(x.shape)}")
    if not values.is_floating_point():
        raise InputError(f"x must be floating point, got {x.dtype}")
    if channels is not None and x.size(1) != channels:
        raise InputError(f"x has {x.size(1)} features, but the model was made for {channels}")
    if num_nodes is not None and x.size(0) != num_nodes:
        raise InputError(f"x has {x.size(0)} rows, but the graph has {num_nodes} nodes")
    # A sum is finite only if every entry is, or if it overflows: the slow look runs then alone.
    if not bool(torch.isfinite(values.sum())):
        bad = ~torch.isfinite(values)
        if bool(bad.any()):
            place = bad.nonzero()[0]
            row, column = place if isinstance(x, Tensor) else (x.rows()[place], x.pattern.col[place])
            value = values[tuple(place)].item()
            raise InputError(f"x[{int(row)}, {int(column)}] is {value}, expected finite features")


def _values(x: object) -> Tensor | None:
    """The numbers that a feature matrix holds, dense or sparse; ``None`` for anything else."""
    from dssgnn.graph.features import SparseFeatures  # the graph's modules use these checks

    if isinstance(x, SparseFeatures):
        return x.values
    return x if isinstance(x, Tensor) else None


class FeatureCheck:
    """`check_features` for a module that sees the same tensor every epoch: it is read once.

    Looking for NaN reads all of ``x`` and, on a GPU, waits for it.
    """

    def __init__(self, channels: int | None = None) -> None:
        self.channels = channels
        self._seen: WeakTensorKeyDictionary = WeakTensorKeyDictionary()  # shape and version that passed

    def __call__(self, x: "Tensor | SparseFeatures", num_nodes: int | None = None) -> None:
        """Check ``x`` unless it is a tensor, unmodified, that passed before."""
        values = _values(x)
        tracked = values is not None and not values.is_inference()
        state = (x.shape, values._version) if values is not None and tracked else None
        known = tracked and values in self._seen and self._seen[values] == state
        if known and (num_nodes is None or x.size(0) == num_nodes):
            return
        check_features(x, num_nodes, self.channels)
        if tracked:
            self._seen[values] = state

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureCheck, (self.channels,)


def check_labels(y: Tensor, num_nodes: int, num_classes: int, mask: Tensor | None = None) -> None:
    """Check that the labels (of the nodes in ``mask``) are integers in ``0..num_classes-1``."""
    if y.dim() != 1 or y.numel() != num_nodes:
        raise InputError(f"y must have shape [{num_nodes}], got {list(y.shape)}")
    if y.dtype != torch.int64:
        raise InputError(f"y must hold int64 class numbers, got {y.dtype}")
    bad = (y < 0) | (y >= num_classes)
    if mask is not None:
        bad &= mask
    if bool(bad.any()):
        node = _first(bad)
        raise InputError(f"label of node {node} is {int(y[node])}, expected 0..{num_classes - 1}")


def check_mask(mask: Tensor, num_nodes: int, name: str) -> None:
    """Check that ``mask`` is boolean, one entry a node, and selects at least one node."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or list(mask.shape) != [num_nodes]:
        got = f"{mask.dtype} {list(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
        raise InputError(f"{name} must be a boolean tensor of shape [{num_nodes}], got {got}")
    if not bool(mask.any()):
        raise InputError(f"{name} is empty, expected at least one node")


def check_masks(num_nodes: int, **masks: Tensor) -> None:
    """Check every mask as `check_mask` does, and that no two of them share a node."""
    seen: dict[str, Tensor] = {}
    for name, mask in masks.items():
        check_mask(mask, num_nodes, name)
        for other, previous in seen.items():
            both = mask & previous
            if bool(both.any()):
                raise InputError(f"node {_first(both)} is in both {other} and {name}; masks must not overlap")
        seen[name] = mask


def _first(where: Tensor) -> int:
    return int(where.nonzero()[0, 0])
