"""A graph becomes an operator: the rescaled Laplacian, sparse products, and polynomial filters of it."""

from dssgnn.graph.features import SparseFeatures, sparse_linear, sparse_where_faster
from dssgnn.graph.filter import polynomial_filter
from dssgnn.graph.operator import GraphOperator, OperatorCache
from dssgnn.graph.ordering import locality_order, renumbered

__all__ = [
    "GraphOperator",
    "OperatorCache",
    "SparseFeatures",
    "locality_order",
    "polynomial_filter",
    "renumbered",
    "sparse_linear",
    "sparse_where_faster",
]
