"""The product with a learned matrix, in the layout that a machine multiplies fast."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["linear"]

_NARROW = 16  # columns
_PARTS = 256  # products that keep a GPU busy


def linear(h: Tensor, weight: Tensor) -> Tensor:
    """``h @ weight`` for ``h [..., d]`` and ``weight [d, d']``.

    With a few columns (classes) and many rows, the gradient of ``weight`` takes a CPU eight times as long in the
    plain layout: there the transposed matrix is laid out first, and autograd follows the layout.
    """
    if h.dim() != 2:
        # Of two matrices vmap makes one batched product; of more it would copy ``weight`` for every row.
        return linear(h.flatten(0, -2), weight).view(*h.shape[:-1], -1)
    if h.is_cuda and not torch.is_autocast_enabled("cuda"):
        return _Linear.apply(h, weight)  # type: ignore[no-untyped-call, no-any-return]
    if h.is_cuda or weight.size(-1) >= _NARROW:
        return h @ weight
    return nn.functional.linear(h, weight.mT.contiguous())


class _Linear(torch.autograd.Function):
    """``h @ weight``; the gradient of a population's weights is summed in parts, as cuBLAS does for one matrix only."""

    @staticmethod
    def forward(h: Tensor, weight: Tensor) -> Tensor:
        return h @ weight

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], h: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        h_dim, weight_dim = in_dims
        if h_dim is None:  # shared rows: the members' matrices stand side by side
            weight = weight.movedim(weight_dim or 0, 1)  # [d, B, d']
            wide: Tensor = _Linear.apply(h, weight.flatten(1))  # type: ignore[no-untyped-call]
            return wide.view(-1, *weight.shape[1:]), 1
        if weight_dim is None:
            weight, weight_dim = weight.expand(info.batch_size, *weight.shape), 0
        return _Linear.apply(h.movedim(h_dim, 0), weight.movedim(weight_dim, 0)), 0  # type: ignore[no-untyped-call]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        h, weight = ctx.saved_tensors
        want_h, want_weight = ctx.needs_input_grad
        return grad @ weight.mT if want_h else None, _inner(h, grad) if want_weight else None


def _inner(h: Tensor, grad: Tensor) -> Tensor:
    """``h^T grad`` of ``[..., n, d]`` and ``[..., n, d']``."""
    if h.dim() == 2:
        return h.mT @ grad
    size, rows = h.shape[:2]
    parts = max(1, min(_PARTS // size, rows // 64))
    even = rows - rows % parts
    a, b = (t[:, :even].reshape(size * parts, even // parts, -1) for t in (h, grad))
    total: Tensor = (a.mT @ b).view(size, parts, h.size(2), -1).sum(dim=1)
    return total if even == rows else total + h[:, even:].mT @ grad[:, even:]
