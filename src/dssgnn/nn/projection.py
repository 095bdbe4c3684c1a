r"""Evaluate, activate, project: a pointwise nonlinearity on a chaos state.

.. math::
    V_s = \sum_m E_{s,m} U_m + b, \qquad H'_n = \sum_s \Phi_{n,s}\, \sigma(V_s)

is eqs. sample_preact and dss_projection_update with the filters already applied. For the activations known by
name only the input ``U`` is kept for the backward pass: the ``S`` node values are computed again there.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dssgnn.errors import InputError
from dssgnn.kernels import usable

__all__ = ["ACTIVATIONS", "Activation", "evaluate_activate_project", "reset_activation", "resolve_activation"]

Activation = Callable[[Tensor], Tensor]

_CACHED = 2**18  # numbers that stay in a core's cache

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
    name = _fused_name(u, evaluation, projection, activation)
    if name is not None:
        return _FusedProject.apply(u, evaluation, projection, name, bias)  # type: ignore[no-untyped-call, no-any-return]
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
        blocks = _row_blocks(u, evaluation.size(0))
        out: Tensor | None = None
        for rows in blocks:
            part = torch.matmul(projection, activation(_node_values(u[rows], evaluation, bias)))
            if len(blocks) == 1:
                return part
            if out is None:  # only now is its type known: autocast may narrow it
                out = part.new_empty(u.size(0), *part.shape[1:])
            out[rows] = part
        return cast(Tensor, out)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        return _map_members(_Project, info.batch_size, in_dims, inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        u, evaluation, projection, ctx.activation, bias = inputs
        ctx.save_for_backward(u, evaluation, projection, *(() if bias is None else (bias,)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, evaluation, projection, *rest = ctx.saved_tensors
        grad = grad.to(u.dtype)  # autocast may have made the output narrower than the input
        want_u, want_evaluation = ctx.needs_input_grad[:2]
        grad_u = torch.empty_like(u) if want_u else None
        grad_evaluation = torch.zeros_like(evaluation) if want_evaluation else None
        grad_bias = torch.zeros_like(rest[0]) if rest else None
        for rows in _row_blocks(u, evaluation.size(0)):
            values = _node_values(u[rows], evaluation, *rest)
            with torch.enable_grad():
                values.requires_grad_()
                activated = ctx.activation(values)
            outer = torch.matmul(projection.T, grad[rows])
            (slope,) = torch.autograd.grad(activated, values, outer)  # [n, S, d]
            if grad_u is not None:
                grad_u[rows] = torch.matmul(evaluation.T, slope)
            if grad_evaluation is not None:
                grad_evaluation += torch.matmul(slope, u[rows].transpose(1, 2)).sum(dim=0)
            if grad_bias is not None:
                grad_bias += slope.sum(dim=(0, 1))
        return grad_u, grad_evaluation, None, None, grad_bias


class _FusedProject(torch.autograd.Function):
    """`_Project` with constant gates in one kernel a direction; sums in float32 where ``u`` is in half precision."""

    @staticmethod
    def forward(u: Tensor, evaluation: Tensor, projection: Tensor, name: str, bias: Tensor | None) -> Tensor:
        from dssgnn.kernels.projecting import project

        return project(u, evaluation, projection, name, bias)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        return _map_members(_FusedProject, info.batch_size, in_dims, inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        u, evaluation, projection, ctx.name, bias = inputs
        ctx.save_for_backward(u, evaluation, projection, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from dssgnn.kernels.projecting import project_adjoint

        u, evaluation, projection, bias = ctx.saved_tensors
        grad_u = project_adjoint(u, evaluation, projection, ctx.name, bias, grad)
        # Psi_0 = 1: what reaches order 0 is the sum over the nodes of what reaches each of them.
        grad_bias = None if bias is None else grad_u[:, 0].sum(dim=0, dtype=bias.dtype)
        return grad_u, None, None, None, grad_bias


def _fused_name(
    u: Tensor, evaluation: Tensor, projection: Tensor, activation: Activation | None
) -> str | None:
    """The kernels' name of the activation, where they can be used; random gates need gradients they do not give."""
    if not usable(u) or evaluation.requires_grad or u.size(-2) != projection.size(0):
        return None
    return next((name for name, known in ACTIVATIONS.items() if known is activation), None)


def _map_members(
    function: Any, size: int, in_dims: tuple[int | None, ...], inputs: tuple[Any, ...]
) -> tuple[Tensor, int]:
    """A population is more nodes, unless its members have tables or biases of their own."""
    if in_dims[1:] == (None,) * 4:
        u = inputs[0].movedim(in_dims[0], 1)
        out: Tensor = function.apply(u.flatten(0, 1), *inputs[1:])
        return out.view(*u.shape[:2], *out.shape[1:]), 1
    members = [
        function.apply(
            *(v if dim is None else v.select(dim, i) for v, dim in zip(inputs, in_dims, strict=True))
        )
        for i in range(size)
    ]
    return torch.stack(members, dim=1), 1


def _node_values(u: Tensor, evaluation: Tensor, bias: Tensor | None = None) -> Tensor:
    """The state at the quadrature nodes, ``[n, S, d]``."""
    values = torch.matmul(evaluation, u)
    return values if bias is None else values.add_(bias)


def _row_blocks(u: Tensor, nodes: int) -> list[slice]:
    """Rows to evaluate at ``nodes`` quadrature nodes together: all, or on a CPU so few that they stay in its cache."""
    rows = u.size(0)
    size = rows if u.is_cuda else _CACHED * torch.get_num_threads() // max(1, nodes * u.size(2))
    size = max(1, size)
    return [slice(start, min(start + size, rows)) for start in range(0, max(1, rows), size)]
