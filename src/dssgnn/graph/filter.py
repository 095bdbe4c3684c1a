r"""Polynomial filters of a sparse operator, with the adjoint run backwards instead of a tape.

For :math:`Y_{r,n} = \sum_k \theta_{r,n,k} T_k(\tilde L) H_n` only ``H`` is kept for the backward pass. With the
incoming gradient ``G``, one recurrence on :math:`\tilde L^T` gives both gradients:

.. math::
    \partial H_n = \sum_{r,k} \theta_{r,n,k} T_k(\tilde L^T) G_{r,n}, \qquad
    \partial \theta_{r,n,k} = \langle T_k(\tilde L^T) G_{r,n},\, H_n \rangle .

The memory kept does not depend on the degree, and with one branch the backward pass costs as many sparse
products as the forward pass.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dssgnn.errors import InputError
from dssgnn.graph.product import matrix_product
from dssgnn.kernels import usable
from dssgnn.spectral.chebyshev import Basis
from dssgnn.validation import check_choice

__all__ = ["multiply", "polynomial_filter"]

_LANES = 16  # floats in a cache line
_HALF = (torch.bfloat16, torch.float16)


def polynomial_filter(
    matrix: Tensor,
    transposed: Tensor,
    h: Tensor,
    theta: Tensor,
    basis: Basis = "chebyshev",
    lambda_max: float = 2.0,
) -> Tensor:
    r"""Apply ``R`` polynomials an order to a chaos state, all from one recurrence.

    Args:
        matrix: :math:`\tilde L` as CSR ``[N, N]``.
        transposed: its transpose as CSR (the same object where it is symmetric).
        h: state ``[N, Q, d]``; computed in the matrix's type, also under autocast. On a GPU a half-precision state
            stays one, and so do the terms of the recurrence and what is summed of them between two steps; a step
            itself computes in float32.
        theta: coefficients ``[R, Q, K+1]``.
        basis: :math:`T_k(\tilde L)` or :math:`\hat A^k`.
        lambda_max: the bound that :math:`\tilde L` was rescaled with; ``"monomial"`` undoes it.

    Returns:
        ``[N, R, Q, d]``.
    """
    check_choice(basis, Basis, "basis")
    if h.dim() != 3 or theta.dim() != 3 or theta.size(1) != h.size(1):
        raise InputError(
            f"filter needs a state [N, Q, d] and coefficients [R, Q, K+1], got {list(h.shape)} and {list(theta.shape)}"
        )
    dtype = matrix.dtype
    stored = h.dtype if h.dtype in _HALF and dtype == torch.float32 and usable(h) else dtype
    return _PolynomialFilter.apply(  # type: ignore[no-untyped-call, no-any-return]
        matrix, transposed, h.to(stored), theta.to(dtype), basis, lambda_max
    )


class _PolynomialFilter(torch.autograd.Function):
    @staticmethod
    def forward(
        matrix: Tensor, transposed: Tensor, h: Tensor, theta: Tensor, basis: Basis, lambda_max: float
    ) -> Tensor:
        flat, rows = h.flatten(1), _by_column(theta, h.size(2))  # [N, W], [K+1, R, W]
        if usable(h):
            from dssgnn.kernels.filtering import filter_forward

            out = filter_forward(matrix, flat.contiguous(), rows, basis, lambda_max)
            return out.view(h.size(0), theta.size(0), *h.shape[1:])
        out = h.new_empty(h.size(0), theta.size(0), flat.size(1))
        for block, _ in _blocks(h):
            sums: list[Tensor] = []
            for k, power in enumerate(_powers(matrix, flat[:, block], len(rows) - 1, basis, lambda_max)):
                if k == 0:
                    sums = [power * row for row in rows[0, :, block]]
                else:
                    for total, row in zip(sums, rows[k, :, block], strict=True):
                        total.addcmul_(power, row)
            for r, total in enumerate(sums):
                out[:, r, block] = total
        return out.view(h.size(0), theta.size(0), *h.shape[1:])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        """A population is more orders: the batch is folded into ``Q``, and one recurrence serves all."""
        matrix, transposed, h, theta, basis, lambda_max = inputs
        size: int = info.batch_size
        h, theta = (_batch_to(t, dim, 1, size) for t, dim in zip((h, theta), in_dims[2:4], strict=True))
        orders = h.size(2)
        out: Tensor = _PolynomialFilter.apply(  # type: ignore[no-untyped-call]
            matrix, transposed, h.flatten(1, 2), theta.flatten(1, 2), basis, lambda_max
        )
        return out.view(*out.shape[:2], size, orders, out.size(3)), 2

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, transposed, h, theta, basis, lambda_max = inputs
        ctx.save_for_backward(h, theta)
        ctx.transposed, ctx.basis, ctx.lambda_max = transposed, basis, lambda_max

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, theta = ctx.saved_tensors
        want_h, want_theta = ctx.needs_input_grad[2:4]
        flat, rows = h.flatten(1), _by_column(theta, h.size(2))
        grad = grad.flatten(2)  # [N, R, W]
        if usable(h):
            from dssgnn.kernels.filtering import filter_adjoint

            state, grad = flat.contiguous(), grad.contiguous()
            total, products = filter_adjoint(ctx.transposed, state, grad, rows, ctx.basis, ctx.lambda_max)
            by_order = products.view(*products.shape[:2], *h.shape[1:]).sum(dim=3).permute(1, 2, 0)
            return None, None, total.view_as(h), by_order, None, None
        grad_h = torch.empty_like(flat) if want_h else None
        grad_theta = torch.zeros_like(theta) if want_theta else None
        for block, orders in _blocks(h):
            state = flat[:, block].contiguous() if want_theta else flat[:, block]
            summed: Tensor | None = None
            for r in range(theta.size(0)):
                powers = _powers(ctx.transposed, grad[:, r, block], len(rows) - 1, ctx.basis, ctx.lambda_max)
                for k, power in enumerate(powers):
                    if want_h:
                        row = rows[k, r, block]
                        summed = power * row if summed is None else summed.addcmul_(power, row)
                    if grad_theta is not None:
                        grad_theta[r, orders, k] += _inner(power, state, orders.stop - orders.start)
            if grad_h is not None and summed is not None:
                grad_h[:, block] = summed
        return None, None, None if grad_h is None else grad_h.view_as(h), grad_theta, None, None


def _batch_to(value: Tensor, batch: int | None, dim: int, size: int) -> Tensor:
    """What a vmap rule was given, with the batch (made by repeating where there is none) at ``dim``."""
    if batch is not None:
        return value.movedim(batch, dim)
    return value.unsqueeze(dim).expand(*value.shape[:dim], size, *value.shape[dim:])


def _by_column(theta: Tensor, width: int) -> Tensor:
    """Coefficients ``[R, Q, K+1]`` repeated for every channel of their order: ``[K+1, R, Q * width]``."""
    return theta.permute(2, 0, 1).repeat_interleave(width, dim=2)


def _blocks(h: Tensor) -> Iterator[tuple[slice, slice]]:
    """What to run a recurrence on together, as columns of ``h [N, Q, d]`` and as the orders that hold them.

    Everything, or on a CPU so much that it stays in the cache: several orders, or a part of one.
    """
    nodes, orders, width = h.shape
    size = orders * width if h.is_cuda else max(_LANES, 2**20 // nodes // _LANES * _LANES)
    together = max(1, size // width)
    for first in range(0, orders, together):
        last = min(first + together, orders)
        for start in range(first * width, last * width, size):
            yield slice(start, min(start + size, last * width)), slice(first, last)


def _inner(a: Tensor, b: Tensor, orders: int) -> Tensor:
    """``<a, b>`` for each of the orders whose columns stand side by side in ``a`` and ``b``: ``[orders]``."""
    if orders == 1 and not a.is_cuda:
        return torch.dot(a.view(-1), b.view(-1))  # no temporary
    return (a * b).sum(dim=0).view(orders, -1).sum(dim=1)


def _powers(matrix: Tensor, first: Tensor, degree: int, basis: Basis, lambda_max: float) -> Iterator[Tensor]:
    """Yield the basis polynomials of the operator on ``first [N, W]``; each is valid until the next."""
    first = first.contiguous()
    with torch.autocast(first.device.type, enabled=False):
        yield first
        before, current = None, first
        for _ in range(degree):
            following = matrix_product(matrix, current)
            if basis == "monomial":
                # Ahat = I - (lambda_max / 2)(L~ + I)
                following.mul_(-lambda_max / 2).add_(current, alpha=1 - lambda_max / 2)
            elif before is not None:
                torch.lerp(before, following, 2, out=following)  # 2 L~ t - t'
            before, current = current, following
            yield current


def multiply(matrix: Tensor, transposed: Tensor, h: Tensor) -> Tensor:
    """``matrix @ h`` along the first dimension of ``h [N, ...]``, differentiable in ``h``."""
    h = h.to(matrix.dtype)
    return _Multiply.apply(matrix, transposed, h)  # type: ignore[no-untyped-call, no-any-return]


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(matrix: Tensor, transposed: Tensor, h: Tensor) -> Tensor:
        with torch.autocast(h.device.type, enabled=False):
            flat = h.reshape(h.size(0), -1)
            return matrix_product(matrix, flat).view(h.shape)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], matrix: Tensor, transposed: Tensor, h: Tensor
    ) -> tuple[Tensor, int]:
        h = _batch_to(h, in_dims[2], 1, info.batch_size)  # more columns
        return _Multiply.apply(matrix, transposed, h), 1  # type: ignore[no-untyped-call]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.matrix, ctx.transposed = inputs[0], inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, multiply(ctx.transposed, ctx.matrix, grad)
