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
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dssgnn.errors import InputError
from dssgnn.validation import check_choice

__all__ = ["Basis", "multiply", "polynomial_filter"]

Basis = Literal["chebyshev", "monomial"]

_LANES = 16  # floats in a cache line


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
        h: state ``[N, Q, d]``; computed in the matrix's type, also under autocast.
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
    return _PolynomialFilter.apply(  # type: ignore[no-untyped-call, no-any-return]
        matrix, transposed, h.to(dtype), theta.to(dtype), basis, lambda_max
    )


class _PolynomialFilter(torch.autograd.Function):
    @staticmethod
    def forward(
        matrix: Tensor, transposed: Tensor, h: Tensor, theta: Tensor, basis: Basis, lambda_max: float
    ) -> Tensor:
        flat, rows = h.flatten(1), _by_column(theta, h.size(2))  # [N, W], [K+1, R, W]
        out = h.new_empty(h.size(0), theta.size(0), flat.size(1))
        for block in _column_blocks(flat):
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
        grad_h = torch.empty_like(flat) if want_h else None
        products = torch.zeros_like(rows)  # <T_k(L^T) G, H>, column by column
        for block in _column_blocks(flat):
            state = flat[:, block].contiguous() if want_theta else flat[:, block]
            total = torch.zeros_like(state)
            for r in range(theta.size(0)):
                powers = _powers(ctx.transposed, grad[:, r, block], len(rows) - 1, ctx.basis, ctx.lambda_max)
                for k, power in enumerate(powers):
                    if want_h:
                        total.addcmul_(power, rows[k, r, block])
                    if want_theta:
                        products[k, r, block] = (power * state).sum(dim=0)
            if grad_h is not None:
                grad_h[:, block] = total
        grad_theta = (
            products.view(len(rows), -1, *h.shape[1:]).sum(dim=3).permute(1, 2, 0) if want_theta else None
        )
        return None, None, None if grad_h is None else grad_h.view_as(h), grad_theta, None, None


def _by_column(theta: Tensor, width: int) -> Tensor:
    """Coefficients ``[R, Q, K+1]`` repeated for every channel of their order: ``[K+1, R, Q * width]``."""
    return theta.permute(2, 0, 1).repeat_interleave(width, dim=2)


def _column_blocks(h: Tensor) -> Iterator[slice]:
    """Columns to run a recurrence on together: all of them, or on a CPU so few that they stay in its cache."""
    nodes, width = h.shape
    size = width if h.is_cuda else max(_LANES, 2**20 // nodes // _LANES * _LANES)
    return (slice(start, min(start + size, width)) for start in range(0, width, size))


def _powers(matrix: Tensor, first: Tensor, degree: int, basis: Basis, lambda_max: float) -> Iterator[Tensor]:
    """Yield the basis polynomials of the operator on ``first [N, W]``; each is overwritten two steps later."""
    first = first.contiguous()
    with torch.autocast(first.device.type, enabled=False):
        yield first
        before, current = None, first
        for k in range(1, degree + 1):
            if basis == "monomial":
                # Ahat = I - (lambda_max / 2)(L~ + I)
                following = current * (1 - lambda_max / 2)
                following.addmm_(matrix, current, alpha=-lambda_max / 2)
            elif before is None:
                following = matrix @ current
            elif k == 2:
                following = torch.addmm(before, matrix, current, beta=-1, alpha=2)
            else:
                following = before.addmm_(matrix, current, beta=-1, alpha=2)
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
            return (matrix @ flat).view(h.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.matrix, ctx.transposed = inputs[0], inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, multiply(ctx.transposed, ctx.matrix, grad)
