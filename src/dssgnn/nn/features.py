"""What a first layer does with features, dense or sparse."""

from torch import Tensor, nn

from dssgnn.graph import SparseFeatures, sparse_linear
from dssgnn.nn.dropout import dropout
from dssgnn.nn.linear import linear

__all__ = ["drop_features", "linear_features", "suited_features"]


def drop_features(x: Tensor | SparseFeatures, rate: float, training: bool) -> Tensor | SparseFeatures:
    """Dropout on features; of sparse ones on the entries alone, since a dropped zero is a zero."""
    if isinstance(x, SparseFeatures):
        return x.with_values(dropout(x.values, rate, training))
    return dropout(x, rate, training)


def linear_features(x: Tensor | SparseFeatures, weight: Tensor) -> Tensor:
    """``x @ weight`` for features ``[N, d]`` and ``weight [d, d']``."""
    return sparse_linear(x, weight) if isinstance(x, SparseFeatures) else linear(x, weight)


def suited_features(encoder: nn.Module, x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
    """``x`` as ``encoder`` takes it: dense, unless it says that it also takes `SparseFeatures`."""
    if isinstance(x, SparseFeatures) and not getattr(encoder, "sparse_features", False):
        return x.dense()
    return x
