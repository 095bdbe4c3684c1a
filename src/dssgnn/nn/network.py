"""`DSSGNN`: lift, doubly-spectral layers, readout."""

import copy
from typing import Literal, TypedDict, cast

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator, OperatorCache, SparseFeatures
from dssgnn.graph.pair import check_eta, published_operators
from dssgnn.nn.chaos_linear import ChaosLinear
from dssgnn.nn.conv import Branches, DSSConv, Operators
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import drop_features
from dssgnn.nn.init import WeightInit, init_weight
from dssgnn.nn.lift import ChaosLift, Lift
from dssgnn.nn.linear import linear
from dssgnn.nn.norm import NORMS, Norm, make_norm
from dssgnn.nn.projection import Activation, resolve_activation
from dssgnn.spectral import resolve_size
from dssgnn.spectral.chebyshev import Basis, FilterInit
from dssgnn.validation import FeatureCheck, check_choice, check_count, check_rates

__all__ = ["DSSGNN"]

Propagation = Literal["every", "first", "last"]
Readout = Literal["linear", "filtered"]


class DSSGNN(nn.Module):
    r"""The network of the paper's section 3: features in, a chaos expansion of every node's logits out.

    .. math::
        H_n^{(0)} = X W_{in}^{(n)}, \qquad H^{(l+1)} = \mathrm{DSSConv}(H^{(l)}), \qquad
        Z_n = H_n^{(L)} W_{out}

    Args:
        in_channels: features a node.
        hidden_channels: width of every layer.
        out_channels: classes ``C``.
        num_layers: ``L`` activated layers; with ``readout="filtered"`` the last of them is the output.
        chaos_order: ``P``; 0 is a deterministic spectral network.
        filter_orders: degrees ``(K_lp, K_hp)``.
        gate_order: ``P_g``.
        quadrature_size: ``S``, of the layers and of the readouts.
        propagation: filter in ``"every"`` layer, or in the ``"first"`` or ``"last"`` alone (the rest evaluate,
            activate and project without the graph).
        readout: ``"linear"`` (the paper), or ``"filtered"``: the last layer is linear, filters, and maps to
            ``C`` (the authors' code).
        residual: ``True`` adds :math:`H_m R` with a learned ``R`` to every activated layer, ``"identity"``
            adds :math:`H_m`; ``"inner"`` adds :math:`H_m R` before the activation.
        norm: of every activated layer; ``"batch"`` normalises every order on its own, ``"joint"`` the random
            variables that the orders make up (`JointNorm`). After the projection, or before the activation
            where the residual connection is there.
        dropout: between layers, on what a layer reads; a residual connection around the layer goes around it too.
        joint_dropout: that dropout zeroes a channel's orders together: the random variable, not its coefficients.
        input_dropout: on ``x``.
        lift_dropout: on the lifted channels.
        activation: a name or any pointwise function.
        bias: biases in the layers and the readout.
        lift: ``"separate"`` matrices an order, or one ``"shared"`` with a learned gain an order (1, then 0.1).
        filter_init: the response that the filters start from, in either basis.
        weight_init: ``"glorot"``, or ``"published"`` for the authors' non-zero mean.
        branches: ``"sum"`` or ``"concat"`` in the first layer of ``propagation="first"``.
        filter_basis: of the polynomials, ``"chebyshev"`` (the paper) or ``"monomial"``.
        eta: gives the branches the authors' two operators in place of the graph's one: ``"sym"`` of
            `published_operators`, with this exponent of the degrees in the high-pass branch.

    Example:
        >>> model = DSSGNN(5, 16, 3)
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> model(torch.randn(2, 5), edges)
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
        filter_orders: tuple[int, int] = (4, 4),
        gate_order: int = 0,
        quadrature_size: int | None = None,
        propagation: Propagation = "every",
        readout: Readout = "linear",
        residual: bool | Literal["identity", "inner"] = False,
        norm: Norm | None = None,
        dropout: float = 0.5,
        joint_dropout: bool = False,
        input_dropout: float = 0.0,
        lift_dropout: float = 0.0,
        activation: str | Activation = "relu",
        bias: bool = False,
        lift: Lift = "separate",
        filter_init: FilterInit = "lowpass",
        weight_init: WeightInit = "glorot",
        branches: Branches = "sum",
        filter_basis: Basis = "chebyshev",
        eta: float | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = check_count(in_channels, "in_channels", minimum=1)
        check_count(hidden_channels, "hidden_channels", minimum=1)
        self.out_channels = check_count(out_channels, "out_channels", minimum=1)
        check_count(num_layers, "num_layers", minimum=1)
        self.chaos_order = check_count(chaos_order, "chaos_order")
        check_choice(propagation, Propagation, "propagation")
        check_choice(readout, Readout, "readout")
        check_choice(lift, Lift, "lift")
        check_choice(norm, (None, *NORMS), "norm")
        check_choice(residual, Literal[True, False, "identity", "inner"], "residual")
        if residual == "inner" and gate_order:
            raise InputError(f"residual='inner' goes with constant gates, got gate_order={gate_order}")
        if branches == "concat" and propagation != "first":
            raise InputError(
                f"branches='concat' goes with propagation='first', got propagation={propagation!r}"
            )
        check_rates(dropout=dropout, input_dropout=input_dropout, lift_dropout=lift_dropout)
        check_choice(joint_dropout, (True, False), "joint_dropout")
        check_choice(bias, (True, False), "bias")
        self.quadrature_size = resolve_size(quadrature_size, chaos_order, gate_order)
        if resolve_activation(activation) is None:
            raise InputError(
                "activation=None is for a single DSSConv; the network's layers need an activation"
            )
        self.dropout, self.input_dropout, self.lift_dropout = dropout, input_dropout, lift_dropout
        self.joint_dropout = joint_dropout
        if eta is not None:
            check_eta(eta)
        self.eta = eta

        layer: _LayerOptions = {
            "quadrature_size": self.quadrature_size,
            "bias": bias,
            "weight_init": weight_init,
        }
        spectral: _SpectralOptions = {
            "filter_orders": filter_orders,
            "gate_order": gate_order,
            "filter_init": filter_init,
            "filter_basis": filter_basis,
        }
        self.lift = ChaosLift(in_channels, hidden_channels, chaos_order, lift, weight_init)
        activated = num_layers - 1 if readout == "filtered" else num_layers
        widths = [hidden_channels] * num_layers + [out_channels]
        if readout == "linear":
            widths[num_layers] = hidden_channels
        layers: list[DSSConv | ChaosLinear] = []
        filtering = {"every": range(num_layers), "first": (0,), "last": (num_layers - 1,)}[propagation]
        for i in range(num_layers):
            # A module that learns (PReLU) is learned in every layer on its own.
            sigma = copy.deepcopy(activation) if i < activated else None
            if i in filtering:
                layers.append(
                    DSSConv(
                        widths[i],
                        widths[i + 1],
                        chaos_order,
                        activation=sigma,
                        branches=branches if i == 0 else "sum",
                        **layer,
                        **spectral,
                    )
                )
            else:
                layers.append(ChaosLinear(widths[i], widths[i + 1], chaos_order, activation=sigma, **layer))
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(
            make_norm(norm, hidden_channels, chaos_order) for _ in range(activated) if norm
        )
        self.residual = residual
        self.residual_weights = nn.ParameterList(
            torch.empty(hidden_channels, hidden_channels)
            for _ in range(activated if residual in (True, "inner") else 0)
        )
        self.weight_init: WeightInit = weight_init
        self.readout_weight: nn.Parameter | None = None
        self.readout_bias: nn.Parameter | None = None
        if readout == "linear":
            self.readout_weight = nn.Parameter(torch.empty(hidden_channels, out_channels))
            self.readout_bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self._operator = OperatorCache()
        self._check = FeatureCheck(in_channels)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        for module in (self.lift, *self.layers, *self.norms):
            module.reset_parameters()
        for weight in self.residual_weights:
            init_weight(weight, "glorot")
        if self.readout_weight is not None:
            init_weight(self.readout_weight, self.weight_init)
        if self.readout_bias is not None:
            self.readout_bias.zero_()

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> ChaosExpansion:
        """Expand the logits of every node.

        Args:
            x: features ``[N, in_channels]``, finite.
            graph: a `GraphOperator`, or ``edge_index [2, E]``.

        Returns:
            A `ChaosExpansion` with coefficients ``[N, P+1, C]``.
        """
        self._check(x)
        expected = self.lift.weight.dtype
        if x.dtype != expected and not torch.is_autocast_enabled(x.device.type):
            raise InputError(f"x is {x.dtype}, but the model is {expected}; use x.to({expected})")
        one = self._operator(graph, x)
        operator: Operators = one if self.eta is None else self._pair(one, self.eta)
        x = drop_features(x, self.input_dropout, self.training)
        first = cast(DSSConv | ChaosLinear, self.layers[0])
        # Nothing stands between the lift and the first W: their product is taken once, on the weights.
        folded = not (self.training and self.lift_dropout) and not self.residual and first.weight_first
        h = self.lift(x, first.weight if folded else None)
        h = dropout(h, self.lift_dropout, self.training)
        for i, layer in enumerate(self.layers):
            layer = cast(DSSConv | ChaosLinear, layer)
            inner = self._drop(h) if i > 0 else h
            # Around a layer goes the state itself: dropped at every layer, little of it would reach the end.
            skip = self._skip(i, inner if self.residual == "inner" else h)
            norm = self.norms[i] if i < len(self.norms) else None
            if layer.weight_first and not (folded and i == 0):
                inner = linear(inner, layer.weight)
            u = layer.filter(inner, operator)
            if self.residual == "inner" and skip is not None:
                u = u + skip
                h = layer.activate(u if norm is None else norm(u))
                continue
            h = layer.activate(u)
            h = h if norm is None else norm(h)
            h = h if skip is None else h + skip
        if self.readout_weight is not None:
            h = linear(self._drop(h), self.readout_weight)
            if self.readout_bias is not None:
                h = torch.cat([h[:, :1] + self.readout_bias, h[:, 1:]], dim=1)
        return ChaosExpansion(h, self.quadrature_size)

    @staticmethod
    def _pair(graph: GraphOperator, eta: float) -> tuple[GraphOperator, GraphOperator]:
        options = graph.options["normalization"], graph.options["lambda_max"]
        if options != ("sym", 2.0):
            got = "{!r} and {!r}".format(*options)
            raise InputError(
                f"eta goes with an operator of normalization='sym' and lambda_max=2.0, got {got}"
            )
        return published_operators(graph, "sym", eta)

    def _skip(self, i: int, h: Tensor) -> Tensor | None:
        """What goes around layer ``i``: nothing where it gives the logits."""
        if not self.residual or (i + 1 == len(self.layers) and self.readout_weight is None):
            return None
        return h if self.residual == "identity" else linear(h, self.residual_weights[i])

    def _drop(self, h: Tensor) -> Tensor:
        return dropout(h, self.dropout, self.training, self.joint_dropout)


class _LayerOptions(TypedDict):
    quadrature_size: int
    bias: bool
    weight_init: WeightInit


class _SpectralOptions(TypedDict):
    filter_orders: tuple[int, int]
    gate_order: int
    filter_init: FilterInit
    filter_basis: Basis
