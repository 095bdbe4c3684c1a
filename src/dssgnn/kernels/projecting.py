r"""Evaluate, activate, project in one pass over the state, forward and backward; nothing of size ``S`` is kept."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["ACTIVATIONS", "project", "project_adjoint"]

# Those of dssgnn.nn.projection, by name.
_BLOCK = 256  # numbers of the state that a program, one warp, takes; measured on an H200
ACTIVATIONS = ("elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "softplus", "tanh")


@triton.jit
def _sigmoid(v):
    small = tl.exp(-tl.abs(v))
    return tl.where(v > 0, 1.0, small) / (1 + small)


@triton.jit
def _activate(v, NAME: tl.constexpr):
    if NAME == "relu":
        out = tl.where(v <= 0, 0.0, v)  # not a number stays so
    elif NAME == "leaky_relu":
        out = tl.where(v > 0, v, 0.01 * v)
    elif NAME == "elu":
        # 1 is not subtracted where little would be left.
        series = v * (1 + v * (1 / 2 + v * (1 / 6 + v * (1 / 24 + v * (1 / 120 + v / 720)))))
        below = tl.where(v > -0.02, series, tl.exp(tl.minimum(v, 0.0)) - 1)
        out = tl.where(v > 0, v, below)
    elif NAME == "gelu":
        out = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
    elif NAME == "sigmoid":
        out = _sigmoid(v)
    elif NAME == "silu":
        out = v * _sigmoid(v)
    elif NAME == "softplus":
        out = tl.where(v > 20, v, tl.maximum(v, 0.0) + tl.log(1 + tl.exp(-tl.abs(v))))  # as torch
    else:  # tanh
        small, square = tl.exp(-2 * tl.abs(v)), v * v
        series = v * (1 - square * (1 / 3 - square * (2 / 15 - square * 17 / 315)))
        large = tl.where(v > 0, 1.0, -1.0) * (1 - small) / (1 + small)
        out = tl.where(square < 0.0004, series, large)
    return out


@triton.jit
def _slope(v, NAME: tl.constexpr):
    if NAME == "relu":
        out = tl.where(v <= 0, 0.0, 1.0)
    elif NAME == "leaky_relu":
        out = tl.where(v > 0, 1.0, 0.01 + v * 0)
    elif NAME == "elu":
        out = tl.where(v > 0, 1.0, tl.exp(tl.minimum(v, 0.0)))
    elif NAME == "gelu":
        out = 0.5 * (1 + tl.erf(v * 0.7071067811865476)) + v * tl.exp(-0.5 * v * v) * 0.3989422804014327
    elif NAME == "sigmoid":
        s = _sigmoid(v)
        out = s * (1 - s)
    elif NAME == "silu":
        s = _sigmoid(v)
        out = s * (1 + v * (1 - s))
    elif NAME == "softplus":
        out = tl.where(v > 20, 1.0, _sigmoid(v))
    else:  # tanh
        small = tl.exp(-2 * tl.abs(v))
        out = 4 * small / ((1 + small) * (1 + small))
    return out


@triton.jit
def _values(
    u,
    evaluation,
    bias,
    base,
    channel,
    inside,
    s,
    M,
    d,
    HAS_BIAS: tl.constexpr,
    S: tl.constexpr,
    ACC: tl.constexpr,
    SP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    v = tl.zeros([SP, BLOCK], ACC)
    for m in range(M):
        row = tl.load(u + base + m * d, mask=inside, other=0.0).to(ACC)
        v += tl.load(evaluation + s * M + m, mask=s < S, other=0.0)[:, None] * row[None, :]
    if HAS_BIAS:
        v += tl.load(bias + channel, mask=inside, other=0.0).to(ACC)[None, :]
    return v


@triton.jit
def _forward(
    u,
    evaluation,
    projection,
    bias,
    out,
    count,
    d,
    M,
    Q,
    NAME: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    S: tl.constexpr,
    SP: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    node, channel = place // d, place % d
    s = tl.arange(0, SP)
    v = _values(
        u, evaluation, bias, node * M * d + channel, channel, inside, s, M, d, HAS_BIAS, S, ACC, SP, BLOCK
    )
    a = _activate(v, NAME)
    for n in range(Q):
        weight = tl.load(projection + n * S + s, mask=s < S, other=0.0)
        tl.store(out + node * Q * d + n * d + channel, tl.sum(weight[:, None] * a, axis=0), mask=inside)


@triton.jit
def _backward(
    u,
    evaluation,
    projection,
    bias,
    grad,
    grad_u,
    count,
    d,
    M,
    Q,
    NAME: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    S: tl.constexpr,
    SP: tl.constexpr,
    ACC: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    node, channel = place // d, place % d
    s = tl.arange(0, SP)
    base = node * M * d + channel
    v = _values(u, evaluation, bias, base, channel, inside, s, M, d, HAS_BIAS, S, ACC, SP, BLOCK)
    g = tl.zeros([SP, BLOCK], ACC)
    for n in range(Q):
        row = tl.load(grad + node * Q * d + n * d + channel, mask=inside, other=0.0).to(ACC)
        g += tl.load(projection + n * S + s, mask=s < S, other=0.0)[:, None] * row[None, :]
    g *= _slope(v, NAME)
    for m in range(M):
        weight = tl.load(evaluation + s * M + m, mask=s < S, other=0.0)
        tl.store(grad_u + base + m * d, tl.sum(weight[:, None] * g, axis=0), mask=inside)


def project(u: Tensor, evaluation: Tensor, projection: Tensor, name: str, bias: Tensor | None) -> Tensor:
    """``u [N, M, d]`` to ``[N, Q, d]`` with ``evaluation [S, M]`` and ``projection [Q, S]`` in the sums' type."""
    u = u.contiguous()
    out = u.new_empty(u.size(0), projection.size(0), u.size(2))
    grid, sizes, options = _launch(u, evaluation, projection, name, bias)
    _forward[grid](u, evaluation, projection, u if bias is None else bias, out, *sizes, **options)
    return out


def project_adjoint(
    u: Tensor, evaluation: Tensor, projection: Tensor, name: str, bias: Tensor | None, grad: Tensor
) -> Tensor:
    """The gradient of `project` in ``u``; where ``E_{s,0} = 1``, what it has at order 0 is also the bias's."""
    u, grad = u.contiguous(), grad.contiguous()
    grad_u = torch.empty_like(u)
    grid, sizes, options = _launch(u, evaluation, projection, name, bias)
    _backward[grid](u, evaluation, projection, u if bias is None else bias, grad, grad_u, *sizes, **options)
    return grad_u


def _launch(
    u: Tensor, evaluation: Tensor, projection: Tensor, name: str, bias: Tensor | None
) -> tuple[tuple[int], tuple[int, ...], dict[str, Any]]:
    nodes, terms, width = u.shape
    size = evaluation.size(0)
    options = {
        "NAME": name,
        "HAS_BIAS": bias is not None,
        "S": size,
        "SP": triton.next_power_of_2(size),
        "ACC": tl.float64 if u.dtype == torch.float64 else tl.float32,
        "BLOCK": _BLOCK,
        "num_warps": 1,
    }
    return (triton.cdiv(nodes * width, _BLOCK),), (nodes * width, width, terms, projection.size(0)), options
