"""The product of many Gaussian rows with a learned matrix, without the rows."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["gaussian_product", "row_law"]

# Added to correlations before their Cholesky factor is taken in float64: where columns depend on each other, it exists.
_JITTER = 1e-11


def gaussian_product(weight: Tensor, deviation: Tensor, near: Tensor, far: Tensor) -> Tensor:
    r"""``E diag(deviation) W`` for ``E [n, d]`` of independent standard normal entries that is never made.

    With :math:`V = \mathrm{diag}(s) W = Q L^\top` (``Q [d, k]`` orthonormal), the product is :math:`\eta L^\top` with
    :math:`\eta = E Q` standard normal, ``[n, k]``. For a loss with the derivative ``G [n, k]`` by the product, that by
    ``W`` is

    .. math:: \mathrm{diag}(s)\, E^\top G, \qquad
        E^\top G = Q \eta^\top G + (I - Q Q^\top)\, \xi R, \qquad R^\top R = G^\top G,

    as what is left of ``E`` given :math:`\eta` is independent of ``G``. Value and gradient have so together the law
    that they have with ``E``, for ``n k + d k`` numbers in the place of ``n d``.

    Args:
        weight: ``W [d, k]``, with ``d >= k``.
        deviation: ``s [d]``, without a gradient.
        near: :math:`\eta`, standard normal.
        far: :math:`\xi [d, k]`, standard normal; it enters the gradient alone.

    Returns:
        ``[n, k]``.

    Example:
        >>> gaussian_product(torch.tensor([[3.0], [4.0]]), torch.ones(2), torch.eye(1), torch.zeros(2, 1))
        tensor([[5.]])
    """
    basis, factor = row_law(weight, deviation)
    out: Tensor = _Product.apply(weight, deviation, near, far, basis, factor)  # type: ignore[no-untyped-call]
    return out


@torch.no_grad()
def row_law(weight: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
    """``Q [d, k]`` and ``L [k, k]`` of `gaussian_product`."""
    v = weight.double() * deviation.double()[:, None]
    factor = _cholesky(v.mT @ v)
    basis = torch.linalg.solve_triangular(factor.mT, v, upper=True, left=False)
    return basis.to(weight.dtype), factor.to(weight.dtype)


def _cholesky(gram: Tensor) -> Tensor:
    """Lower triangular, of positive semidefinite ``[..., k, k]``; nothing waits for the device."""
    scale = gram.diagonal(dim1=-2, dim2=-1).clamp_min(torch.finfo(gram.dtype).tiny).sqrt()
    correlation = gram / (scale[..., :, None] * scale[..., None, :])
    diagonal = torch.eye(gram.size(-1), dtype=torch.bool, device=gram.device)
    # A column of zeros is uncorrelated too: its row of the factor is as good as zero.
    factor: Tensor = torch.linalg.cholesky_ex(torch.where(diagonal, 1 + _JITTER, correlation)).L
    return scale[..., None] * factor


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        weight: Tensor, deviation: Tensor, near: Tensor, far: Tensor, basis: Tensor, factor: Tensor
    ) -> Tensor:
        return near @ factor.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        _, deviation, near, far, basis, _ = inputs
        ctx.save_for_backward(deviation, near, far, basis)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        stacked = (
            value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)
            for value, dim in zip(inputs, in_dims, strict=True)
        )
        return _Product.apply(*stacked), 0  # type: ignore[no-untyped-call]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        deviation, near, far, basis = ctx.saved_tensors
        grad = grad.to(near.dtype)  # autocast's is narrower
        wide = grad.double()
        rest = far @ _cholesky(wide.mT @ wide).mT.to(far.dtype)
        inner = near.mT @ grad - basis.mT @ rest
        return deviation[..., None] * (basis @ inner + rest), None, None, None, None, None
