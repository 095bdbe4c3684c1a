"""A graph becomes an operator: the rescaled Laplacian, sparse products, and polynomial filters of it."""

from dssgnn.graph.features import SparseFeatures, sparse_linear, sparse_where_faster
from dssgnn.graph.filter import polynomial_filter
from dssgnn.graph.operator import GraphOperator, OperatorCache

__all__ = [
    "GraphOperator",
    "OperatorCache",
    "SparseFeatures",
    "polynomial_filter",
    "sparse_linear",
    "sparse_where_faster",
]
