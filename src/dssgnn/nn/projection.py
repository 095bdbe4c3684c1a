r"""Evaluate, activate, project: a pointwise nonlinearity on a chaos state.

.. math::
    V_s = \sum_m E_{s,m} U_m + b, \qquad H'_n = \sum_s \Phi_{n,s}\, \sigma(V_s)

is eqs. sample_preact and dss_projection_update with the filters already applied. For the activations known by
name only the input ``U`` is kept for the backward pass: the ``S`` node values are computed again there.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dssgnn.errors import InputError

__all__ = ["ACTIVATIONS", "Activation", "evaluate_activate_project", "reset_activation", "resolve_activation"]

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "elu": nn.functional.elu,
    "gelu": nn.functional.gelu,
    "leaky_relu": nn.functional.leaky_relu,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": nn.functional.silu,
    "softplus": nn.functional.softplus,
    "tanh": torch.tanh,
}


def resolve_activation(activation: str | Activation | None) -> Activation | None:
    """A name or any pointwise function; ``None`` stays ``None`` and leaves a layer linear."""
    if activation is None or callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise InputError(f"activation must be one of {known}, a function or None, got {activation!r}")
    return ACTIVATIONS[activation]


def evaluate_activate_project(
    u: Tensor,
    evaluation: Tensor,
    projection: Tensor,
    activation: Activation | None,
    bias: Tensor | None = None,
) -> Tensor:
    """Push a chaos state through a pointwise activation.

    Args:
        u: filtered state ``[N, M, d]``; ``M = P+1``, or ``2(P+1)`` where both branches are kept apart.
        evaluation: ``E [S, M]``, the basis (times the gates) at the quadrature nodes.
        projection: ``Phi [P+1, S]``, the weighted basis at the same nodes.
        activation: a pointwise function, or ``None`` for a linear layer, which is then one small product.
        bias: ``[d]``, added before the activation.

    Returns:
        ``[N, P+1, d]``.
    """
    evaluation, projection = evaluation.to(u.dtype), projection.to(u.dtype)
    if activation is None:
        out = torch.matmul(projection @ evaluation, u)
        return out if bias is None else out + projection.sum(dim=1)[:, None] * bias
    if not _recomputable(activation):
        values = torch.matmul(evaluation, u)
        return torch.matmul(projection, activation(values if bias is None else values + bias))
    return _Project.apply(u, evaluation, projection, activation, bias)  # type: ignore[no-untyped-call, no-any-return]


def _recomputable(activation: Activation) -> bool:
    """Whether running it again in the backward pass is sure to give the same values and lose no gradient.

    Anything else (one that learns, draws at random, or is a stranger's function) goes over autograd's tape.
    """
    kinds = (nn.ReLU, nn.Tanh, nn.GELU, nn.ELU, nn.SiLU, nn.LeakyReLU, nn.Softplus, nn.Sigmoid)
    plain = isinstance(activation, kinds) and not getattr(activation, "inplace", False)
    return plain or activation in ACTIVATIONS.values()


def reset_activation(activation: Activation | None) -> None:
    """Start an activation that learns again."""
    if isinstance(activation, nn.Module) and hasattr(activation, "reset_parameters"):
        activation.reset_parameters()  # type: ignore[operator]


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(
        u: Tensor, evaluation: Tensor, projection: Tensor, activation: Activation, bias: Tensor | None
    ) -> Tensor:
        values = torch.matmul(evaluation, u)  # [N, S, d]
        if bias is not None:
            values += bias
        return torch.matmul(projection, activation(values))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        u, evaluation, projection, ctx.activation, bias = inputs
        ctx.save_for_backward(u, evaluation, projection, *(() if bias is None else (bias,)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, evaluation, projection, *rest = ctx.saved_tensors
        grad = grad.to(u.dtype)  # autocast may have made the output narrower than the input
        values = torch.matmul(evaluation, u)
        if rest:
            values += rest[0]
        with torch.enable_grad():
            values.requires_grad_()
            activated = ctx.activation(values)
        (slope,) = torch.autograd.grad(activated, values, torch.matmul(projection.T, grad))  # [N, S, d]
        want_u, want_evaluation = ctx.needs_input_grad[:2]
        grad_u = torch.matmul(evaluation.T, slope) if want_u else None
        grad_evaluation = torch.matmul(slope, u.transpose(1, 2)).sum(dim=0) if want_evaluation else None
        grad_bias = slope.sum(dim=(0, 1)) if rest else None
        return grad_u, grad_evaluation, None, None, grad_bias
