"""`DSSConv`: one layer on both spectral axes."""

from typing import Literal

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.graph import GraphOperator, OperatorCache
from dssgnn.nn.init import WeightInit, init_weight
from dssgnn.nn.linear import linear
from dssgnn.nn.projection import Activation, evaluate_activate_project, reset_activation, resolve_activation
from dssgnn.spectral import exact_size, initial_filters, projection_tables, resolve_size
from dssgnn.spectral.chebyshev import Basis, FilterInit
from dssgnn.validation import check_choice, check_count

__all__ = ["Branches", "DSSConv", "Operators"]

Branches = Literal["sum", "concat"]
Operators = GraphOperator | tuple[GraphOperator, GraphOperator]


class DSSConv(nn.Module):
    r"""The doubly-spectral layer of `A Unified Uncertainty Representation for Graph Neural Networks`.

    A state :math:`H(\omega) = \sum_{n \le P} H_n \Psi_n(\omega)` (eq. pce_state) is filtered along the graph
    by two Chebyshev polynomials (eq. cheby_filters), mixed along the chaos axis by gates (eq. random_gates),
    evaluated at ``S`` Gauss-Hermite nodes (eq. sample_preact), activated, and projected back
    (eq. dss_projection_update):

    .. math::
        V_s &= \Big[ \sum_n \Psi_n(\omega_s) \big( \alpha_n(\omega_s)\, G_{lp} H_n
               + \beta_n(\omega_s)\, G_{hp} H_n \big) \Big] W + b \\
        H'_m &= \sum_s \mu_s\, \sigma(V_s)\, \Psi_m(\omega_s)

    With constant gates both branches fold into one polynomial an order,
    :math:`\theta_{n,k} = a_n c^{lp}_k + b_n c^{hp}_k`, so a layer costs ``max(K_lp, K_hp)`` sparse products
    whatever the chaos order. ``W`` commutes with the filter and is applied on its narrower side.

    Args:
        in_channels: ``d``.
        out_channels: ``d'``.
        chaos_order: ``P``.
        filter_orders: degrees ``(K_lp, K_hp)``.
        gate_order: ``P_g``.
        quadrature_size: ``S``; ``max(4, ceil((P_g + 2P + 1)/2))`` where it is not given.
        activation: a name, any pointwise function, or ``None`` for a linear layer.
        bias: add ``b`` before the activation.
        filter_init: the response that the filters start from (`dssgnn.spectral.initial_filters`).
        weight_init: ``"glorot"``, or ``"published"`` for the authors' non-zero mean.
        branches: ``"sum"``, or ``"concat"`` to keep low and high apart through ``W``, then ``[2d, d']``.
        filter_basis: ``"chebyshev"`` (the paper), or ``"monomial"`` for powers of :math:`\hat A`.

    Shapes:
        - input: ``h [N, P+1, d]`` and a `GraphOperator` (or ``edge_index [2, E]``, ``edge_weight [E]``); a network also
          gives its layers a pair of them, for the low-pass and for the high-pass branch
        - output: ``[N, P+1, d']``

    Example:
        >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> conv = DSSConv(8, 4, chaos_order=2)
        >>> conv(torch.randn(3, 3, 8), edges).shape
        torch.Size([3, 3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        chaos_order: int,
        *,
        filter_orders: tuple[int, int] = (4, 4),
        gate_order: int = 0,
        quadrature_size: int | None = None,
        activation: str | Activation | None = "relu",
        bias: bool = False,
        filter_init: FilterInit = "lowpass",
        weight_init: WeightInit = "glorot",
        branches: Branches = "sum",
        filter_basis: Basis = "chebyshev",
    ) -> None:
        super().__init__()
        self.in_channels = check_count(in_channels, "in_channels", minimum=1)
        self.out_channels = check_count(out_channels, "out_channels", minimum=1)
        self.chaos_order = check_count(chaos_order, "chaos_order")
        self.gate_order = check_count(gate_order, "gate_order")
        if not isinstance(filter_orders, (tuple, list)) or len(filter_orders) != 2:
            raise InputError(f"filter_orders must be two degrees (K_lp, K_hp), got {filter_orders!r}")
        low, high = (check_count(k, "filter_orders") for k in filter_orders)
        check_choice(branches, Branches, "branches")
        check_choice(filter_basis, Basis, "filter_basis")
        check_choice(bias, (True, False), "bias")
        self.filter_basis: Basis = filter_basis
        self.filter_orders = (low, high)
        self.quadrature_size = resolve_size(quadrature_size, chaos_order, gate_order)
        self.activation = resolve_activation(activation)
        self.filter_init, self.weight_init, self.branches = filter_init, weight_init, branches

        self.low_coefficients = nn.Parameter(torch.empty(low + 1))  # c^(lp)
        self.high_coefficients = nn.Parameter(torch.empty(high + 1))  # c^(hp)
        self.low_gates = nn.Parameter(torch.empty(chaos_order + 1, gate_order + 1))  # a
        self.high_gates = nn.Parameter(torch.empty(chaos_order + 1, gate_order + 1))  # b
        self.weight = nn.Parameter(
            torch.empty(in_channels * (2 if branches == "concat" else 1), out_channels)
        )
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self._operator = OperatorCache()
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again: filters by name, gates 0.7 and 0.3, weights drawn, bias zero."""
        low, high = initial_filters(self.filter_init, self.filter_orders, self.filter_basis)
        self.low_coefficients.copy_(low)
        self.high_coefficients.copy_(high)
        for gates, start in ((self.low_gates, 0.7), (self.high_gates, 0.3)):
            gates.zero_()
            gates[:, 0] = start
        init_weight(self.weight, self.weight_init)
        if self.bias is not None:
            self.bias.zero_()
        reset_activation(self.activation)

    def forward(self, h: Tensor, graph: GraphOperator | Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Update the state ``h [N, P+1, in]`` to ``[N, P+1, out]``."""
        if h.dim() != 3 or h.size(1) != self.chaos_order + 1 or h.size(2) != self.in_channels:
            expected = f"[N, {self.chaos_order + 1}, {self.in_channels}]"
            raise InputError(f"the state must have shape {expected}, got {list(h.shape)}")
        operator = self._operator(graph, h, edge_weight)
        if self.weight_first:
            return self.propagate(linear(h, self.weight), operator)
        return self.propagate(h, operator)

    @property
    def weight_first(self) -> bool:
        """Whether ``W`` is applied before the filter, which it commutes with: on the narrower side."""
        return self.branches == "sum" and self.out_channels <= self.in_channels

    def propagate(self, h: Tensor, operator: Operators) -> Tensor:
        """Everything of the layer but a ``W`` that comes first; ``h`` is ``[N, P+1, out]`` then, else ``in``."""
        return self.activate(self.filter(h, operator))

    def filter(self, h: Tensor, operator: Operators) -> Tensor:
        """The graph axis, and a ``W`` that comes after it: ``U [N, M, out]``, with random gates both branches apart."""
        u = self._filtered(h, operator)  # [N, R, P+1, d]
        if u.dtype == torch.float64:
            u = u.to(self.weight.dtype)  # a float64 operator (weights from numpy, say) serves a float32 model
        if self.branches == "concat":
            low, high = u.unbind(1)
            low_weight, high_weight = self.weight.chunk(2)
            u = torch.stack([linear(low, low_weight), linear(high, high_weight)], dim=1)
            return u.sum(dim=1) if self.gate_order == 0 else u.flatten(1, 2)
        return u.flatten(1, 2) if self.weight_first else linear(u.flatten(1, 2), self.weight)

    def activate(self, u: Tensor) -> Tensor:
        """The chaos axis: gates, activation at the quadrature nodes, projection, ``[N, P+1, out]``."""
        exact = self.quadrature_size >= exact_size(self.chaos_order)
        if self.activation is None and self.bias is None and self.gate_order == 0 and exact:
            return u  # evaluating and projecting a polynomial that the rule integrates gives it back
        return evaluate_activate_project(u, *self._tables(u.device), self.activation, self.bias)

    def _filtered(self, h: Tensor, operator: Operators) -> Tensor:
        """Both branches, ``R = 2``, or their sum: one recurrence for both where they share an operator."""
        apart, basis = self.gate_order > 0 or self.branches == "concat", self.filter_basis
        coefficients = self._coefficients()  # [2, P+1, K+1]
        if isinstance(operator, GraphOperator):
            return operator.filter(h, coefficients if apart else coefficients.sum(dim=0, keepdim=True), basis)
        u = torch.cat(
            [op.filter(h, c[None], basis) for op, c in zip(operator, coefficients, strict=True)], dim=1
        )
        return u if apart else u.sum(dim=1, keepdim=True)

    def _coefficients(self) -> Tensor:
        """Filter coefficients of both branches, ``[2, P+1, K+1]``; constant gates are folded into them."""
        terms = max(self.filter_orders) + 1
        low = nn.functional.pad(self.low_coefficients, (0, terms - self.low_coefficients.numel()))
        high = nn.functional.pad(self.high_coefficients, (0, terms - self.high_coefficients.numel()))
        if self.gate_order:
            return torch.stack([low, high])[:, None].expand(2, self.chaos_order + 1, terms)
        return torch.stack([self.low_gates * low, self.high_gates * high])

    def _tables(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Evaluation ``[S, M]``, random gates in it, and projection ``[P+1, S]``."""
        order, highest = self.chaos_order, max(self.chaos_order, self.gate_order)
        basis, projection = projection_tables(highest, self.quadrature_size, self.weight.dtype, device)
        evaluation, projection = basis[:, : order + 1], projection[: order + 1]
        if self.gate_order:
            gates = basis[:, : self.gate_order + 1]  # Psi_r(omega_s)
            alpha, beta = gates @ self.low_gates.T, gates @ self.high_gates.T  # [S, P+1]
            evaluation = torch.cat([evaluation * alpha, evaluation * beta], dim=1)
        return evaluation, projection

    def __repr__(self) -> str:
        basis = "" if self.filter_basis == "chebyshev" else f", filter_basis={self.filter_basis!r}"
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, chaos_order={self.chaos_order}, "
            f"filter_orders={self.filter_orders}, gate_order={self.gate_order}, "
            f"quadrature_size={self.quadrature_size}{basis})"
        )
