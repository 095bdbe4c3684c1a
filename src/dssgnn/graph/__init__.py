"""A graph becomes an operator: the rescaled Laplacian, sparse products, and polynomial filters of it."""

from dssgnn.graph.filter import polynomial_filter
from dssgnn.graph.operator import GraphOperator, OperatorCache

__all__ = ["GraphOperator", "OperatorCache", "polynomial_filter"]
