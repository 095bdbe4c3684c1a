"""The adjacency ("TFE-adj") and propagate-first models of the paper as its authors' code effectively runs them."""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator, OperatorCache, SparseFeatures
from dssgnn.graph.pair import PublishedNormalization, published_operators
from dssgnn.nn.conv import Branches
from dssgnn.nn.features import drop_features, linear_features
from dssgnn.nn.init import init_weight
from dssgnn.nn.linear import linear
from dssgnn.spectral import resolve_size
from dssgnn.validation import FeatureCheck, check_choice, check_count, check_rates

__all__ = ["PublishedDSS"]

Propagation = Literal["every", "first"]


class PublishedDSS(nn.Module):
    r"""Channelwise DSS-GNN: every chaos order goes through the same weights and the activation alone.

    With the two operators ``M`` and ``B`` of `published_operators`, a layer that propagates is

    .. math::
        H'_n = \sigma\big(\alpha_n\, p(M) H_n W + \beta_n\, q(B) H_n W\big), \qquad
        p(M) = I + \sum_{k \ge 1} c_k M^k ,

    and so is :math:`q`; one that does not is :math:`H'_n = \sigma(H_n W)`. The last layer maps to the classes and
    is not activated. This is not the layer of the paper (`dssgnn.nn.DSSConv`), from which it departs so:

    - there is neither quadrature nor projection: :math:`Z_0` never sees an order above 0, and ``quadrature_size``
      enters the readouts alone;
    - there is no lift: every order starts as ``x`` (``"every"``: under a dropout mask of its own; ``"first"``: under
      one mask), so that the regulariser is a penalty on squared logits of the shared weights;
    - the coefficients of order 0 are 1 and not learned; the two branches have different operators;
    - weights start from a normal with mean ``-1/sqrt(fan_in)``, coefficients from 0.5, gates from 0.7 and 0.3.

    Of ``graph`` the adjacency is taken (edges, direction, self-loops), not its normalisation. The authors add the
    identity to it: use ``self_loops=True``, or ``"keep"`` on edges that had a loop added to every node (one that was
    listed then weighs 2). Their optional dropout between layers is 0 in every configuration they publish, and is
    left out.

    Args:
        in_channels: features a node.
        hidden_channels: width of every hidden layer.
        out_channels: classes ``C``.
        num_layers: ``L``, the output included.
        chaos_order: ``P``.
        filter_orders: degrees ``(K_lp, K_hp)``.
        quadrature_size: ``S`` of the readouts.
        propagation: filter in ``"every"`` layer (TFE-adj), or once before a plain MLP, ``"first"``.
        branches: ``"sum"``; or ``"concat"`` with ``"first"``, where low and high have their own half of ``W``.
        normalization: ``"sym"`` or ``"rw"``, as `published_operators` has them.
        eta: the exponent of the degrees in the high branch of ``"sym"``.
        dropout: on ``x``.
        norm: ``"batch"`` normalises every order of every hidden layer after its activation.

    Example:
        >>> model = PublishedDSS(5, 16, 3, propagation="first", branches="concat")
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> model(torch.randn(2, 5), GraphOperator.from_edge_index(edges, self_loops=True))
        ChaosExpansion(num_nodes=2, chaos_order=2, num_classes=3, quadrature_size=4)
    """

    sparse_features = True  # also takes `SparseFeatures`

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        chaos_order: int = 2,
        filter_orders: tuple[int, int] = (6, 5),
        quadrature_size: int | None = None,
        propagation: Propagation = "every",
        branches: Branches = "sum",
        normalization: PublishedNormalization = "sym",
        eta: float = -0.3,
        dropout: float = 0.6,
        norm: Literal["batch"] | None = None,
    ) -> None:
        super().__init__()
        check_count(num_layers, "num_layers", minimum=1)
        self.chaos_order = check_count(chaos_order, "chaos_order")
        check_choice(propagation, Propagation, "propagation")
        check_choice(branches, Branches, "branches")
        check_choice(normalization, PublishedNormalization, "normalization")
        check_choice(norm, Literal[None, "batch"], "norm")
        if branches == "concat" and propagation != "first":
            raise InputError("branches='concat' goes with propagation='first', got propagation='every'")
        check_rates(dropout=dropout)
        self.quadrature_size = resolve_size(quadrature_size, chaos_order)
        self.propagation, self.normalization, self.eta = propagation, normalization, eta
        self.dropout = dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        for width in widths:
            check_count(width, "channels", minimum=1)
        layers: list[nn.Module] = []
        for i in range(num_layers):
            if i == 0 or propagation == "every":
                layers.append(_Filtered(widths[i], widths[i + 1], chaos_order, filter_orders, branches))
            else:
                layers.append(_Plain(widths[i], widths[i + 1]))
        self.layers = nn.ModuleList(layers)
        # One BatchNorm1d over all orders at once is one BatchNorm1d an order.
        width = (chaos_order + 1) * hidden_channels
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(num_layers - 1 if norm else 0))
        self._operator = OperatorCache(self_loops=True)
        self._check = FeatureCheck(in_channels)

    def reset_parameters(self) -> None:
        """Start again."""
        for module in (*self.layers, *self.norms):
            module.reset_parameters()

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> ChaosExpansion:
        """Expand the logits of every node.

        Args:
            x: features ``[N, in_channels]``, finite.
            graph: a `GraphOperator`; ``edge_index [2, E]`` is made undirected, with self-loops.
        """
        self._check(x)
        low, high = published_operators(self._operator(graph, x), self.normalization, self.eta)
        masks = self.chaos_order + 1 if self.propagation == "every" and self.training and self.dropout else 1
        dropped = [drop_features(x, self.dropout, self.training) for _ in range(masks)]
        h = cast(_Filtered, self.layers[0])(dropped, low, high)
        for i, layer in enumerate(self.layers[1:]):
            h = torch.relu(h)
            if self.norms:
                h = self.norms[i](h.flatten(1)).view_as(h)
            h = layer(h.unbind(1), low, high) if isinstance(layer, _Filtered) else layer(h)
        return ChaosExpansion(h, self.quadrature_size)


class _Plain(nn.Module):
    """``H_n W``."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        init_weight(self.weight, "published")

    def forward(self, h: Tensor) -> Tensor:
        return linear(h, self.weight)


class _Filtered(nn.Module):
    """``alpha_n p(M) H_n W + beta_n q(B) H_n W``; ``W`` has two halves where the branches are concatenated."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        chaos_order: int,
        degrees: tuple[int, int],
        branches: Branches,
    ) -> None:
        super().__init__()
        low, high = (check_count(k, "filter_orders") for k in degrees)
        self.low_coefficients = nn.Parameter(torch.empty(low))  # from k = 1: that of k = 0 is 1
        self.high_coefficients = nn.Parameter(torch.empty(high))
        self.low_gates = nn.Parameter(torch.empty(chaos_order + 1))
        self.high_gates = nn.Parameter(torch.empty(chaos_order + 1))
        self.branches = branches
        self.weight = nn.Parameter(
            torch.empty((2 if branches == "concat" else 1) * in_channels, out_channels)
        )
        self.narrowing = out_channels <= in_channels
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.low_coefficients.fill_(0.5)
        self.high_coefficients.fill_(0.5)
        self.low_gates.fill_(0.7)
        self.high_gates.fill_(0.3)
        init_weight(self.weight, "published")

    def forward(
        self, orders: Sequence[Tensor | SparseFeatures], low: GraphOperator, high: GraphOperator
    ) -> Tensor:
        """The orders ``[N, in]``, or one for all of them, to ``[N, P+1, out]``."""
        weights = self.weight.chunk(2) if self.branches == "concat" else (self.weight,)
        # W commutes with the filters and the gates, and is applied on the narrower side.
        first = self.narrowing or isinstance(orders[0], SparseFeatures)
        states = [_product(orders, weight) for weight in weights] if first else [torch.stack(orders, dim=1)]  # type: ignore[arg-type]
        total: Tensor | None = None
        for operator, state, coefficients, gates, weight in (
            (low, states[0], self.low_coefficients, self.low_gates, weights[0]),
            (high, states[-1], self.high_coefficients, self.high_gates, weights[-1]),
        ):
            theta = torch.cat([coefficients.new_ones(1), coefficients]).expand(1, state.size(1), -1)
            u = operator.filter(state, theta, "monomial")[:, 0]  # [N, Q, d]
            u = gates[:, None] * (u if first else linear(u, weight))  # [N, P+1, out]
            total = u if total is None else total + u
        return cast(Tensor, total)


def _product(orders: Sequence[Tensor | SparseFeatures], weight: Tensor) -> Tensor:
    """``[N, Q, out]``."""
    return torch.stack([linear_features(h, weight) for h in orders], dim=1)
