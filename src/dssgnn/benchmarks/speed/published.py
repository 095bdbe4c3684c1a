"""The published order of operations, as the honest reference of the speed benchmark.

Same parameters, same result as `DSSGNN`; only the order differs: one Chebyshev recurrence a branch and an order,
the ``S``-fold expansion before the linear map, every intermediate on the tape. Given a `GraphOperator` the sparse
product is ours (CSR with a cached transpose), and what is measured is the algorithm alone; given a COO tensor it is
torch's, with autograd through it. Which product the authors used, their paper does not say.
"""

from typing import Protocol

import torch
from torch import Tensor

from dssgnn.expansion import ChaosExpansion
from dssgnn.nn import DSSGNN, DSSConv
from dssgnn.spectral import projection_tables

__all__ = ["published_forward"]


class Product(Protocol):
    """Multiplies by the rescaled Laplacian."""

    def __matmul__(self, h: Tensor, /) -> Tensor: ...


def published_forward(model: DSSGNN, x: Tensor, operator: Product) -> ChaosExpansion:
    """What ``model(x, operator)`` computes, in the authors' order (no norm, no residual, constant gates)."""
    h = [x @ weight for weight in model.lift.weight]
    for layer in model.layers:
        assert isinstance(layer, DSSConv)
        h = _layer(layer, h, operator)
    if model.readout_weight is not None:
        h = [channel @ model.readout_weight for channel in h]
    return ChaosExpansion(torch.stack(h, dim=1), model.quadrature_size)


def _layer(layer: DSSConv, h: list[Tensor], operator: Product) -> list[Tensor]:
    mixed = []
    for n, channel in enumerate(h):
        low = _filter(layer.low_coefficients, channel, operator)
        high = _filter(layer.high_coefficients, channel, operator)
        mixed.append(layer.low_gates[n, 0] * low + layer.high_gates[n, 0] * high)
    tables = projection_tables(layer.chaos_order, layer.quadrature_size, h[0].dtype, h[0].device)
    evaluation, projection = tables
    values = []
    for row in evaluation:
        value = sum(psi * channel for psi, channel in zip(row, mixed, strict=True)) @ layer.weight
        values.append(value if layer.activation is None else layer.activation(value))
    return [sum(phi * value for phi, value in zip(row, values, strict=True)) for row in projection]


def _filter(coefficients: Tensor, h: Tensor, operator: Product) -> Tensor:
    before, current = h, h
    out = coefficients[0] * h
    for k in range(1, coefficients.numel()):
        following = operator @ current if k == 1 else 2 * (operator @ current) - before
        before, current = current, following
        out = out + coefficients[k] * current
    return out
