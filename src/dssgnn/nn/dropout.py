"""Dropout, and other draws, that a population makes member by member."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

__all__ = ["drawing_alone", "drawing_from", "dropout", "normal"]

# The members' generators, and each member's number as vmap sees it.
_MEMBERS: ContextVar[tuple[Sequence[torch.Generator], Tensor] | None] = ContextVar("_MEMBERS", default=None)
_ALONE: ContextVar[torch.Generator | None] = ContextVar("_ALONE", default=None)


def dropout(h: Tensor, rate: float, training: bool = True, joint: bool = False) -> Tensor:
    """Set entries to zero at random and scale the others up; torch's dropout, from one stream a model.

    Outside a population the masks come from torch's default generator. Inside one every member draws from a
    generator of its own, by the same operation on the same shape, and so sees the masks of its separate run.

    With ``joint`` the entries along the second dimension of ``h [N, M, d]``, the orders, stay or go together.

    Example:
        >>> dropout(torch.ones(2), 0.0)
        tensor([1., 1.])
    """
    if not training or rate == 0:
        return h
    keep, members = 1 - rate, _MEMBERS.get()
    shape = torch.Size([h.size(0), 1, *h.shape[2:]]) if joint else h.shape
    # A byte an entry is kept for the backward pass; on a CPU a product with floats is the faster one.
    dtype = torch.bool if h.is_cuda else h.dtype
    if members is None:
        mask = torch.empty(shape, dtype=dtype, device=h.device).bernoulli_(keep, generator=_ALONE.get())
    else:
        generators, number = members
        mask = _Draw.apply(number, shape, dtype, keep, generators)  # type: ignore[no-untyped-call]
    if not h.is_cuda:
        return h * mask.div_(keep)
    # Its forward is the fused mask-and-scale, and its derivative the same.
    out: Tensor = torch.ops.aten.native_dropout_backward(h, mask.expand(h.shape), 1 / keep)
    return out


@contextmanager
def drawing_from(generators: Sequence[torch.Generator], number: Tensor) -> Iterator[None]:
    """Let `dropout` draw for every member of a population from its own generator.

    Args:
        generators: one a member.
        number: the members' numbers, batched by vmap. A mask is made from it, so that it is a member's own
            also where what it drops from is shared.
    """
    token = _MEMBERS.set((generators, number))
    try:
        yield
    finally:
        _MEMBERS.reset(token)


@contextmanager
def drawing_alone(generator: torch.Generator) -> Iterator[None]:
    """Let `dropout` draw from ``generator`` in this thread."""
    token = _ALONE.set(generator)
    try:
        yield
    finally:
        _ALONE.reset(token)


class _Draw(torch.autograd.Function):
    @staticmethod
    def forward(
        number: Tensor,
        shape: torch.Size,
        dtype: torch.dtype,
        keep: float,
        generators: Sequence[torch.Generator],
    ) -> Tensor:
        masks = torch.empty(len(generators), *shape, dtype=dtype, device=number.device)
        for mask, generator in zip(masks, generators, strict=True):
            mask.bernoulli_(keep, generator=generator)
        return masks

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        return _Draw.forward(*inputs), 0


def normal(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator | None = None
) -> Tensor:
    """Standard normal numbers from ``generator``, or from where `dropout` draws."""
    members = _MEMBERS.get() if generator is None else None
    if members is None:
        number, generators = torch.empty(0, device=device), [generator or _ALONE.get()]
    else:
        generators, number = [*members[0]], members[1]
    noise: Tensor = _Normal.apply(number, shape, dtype, generators)  # type: ignore[no-untyped-call]
    return noise


class _Normal(torch.autograd.Function):
    """Apart from vmap, which would draw a population's numbers from one stream."""

    @staticmethod
    def forward(
        number: Tensor,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        generators: Sequence[torch.Generator | None],
    ) -> Tensor:
        return torch.randn(shape, dtype=dtype, device=number.device, generator=generators[0])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        number, shape, dtype, generators = inputs
        return torch.stack([_Normal.forward(number, shape, dtype, [g]) for g in generators]), 0
