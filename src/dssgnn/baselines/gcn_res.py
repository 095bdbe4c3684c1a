"""`ResidualGCN`: what people tune today instead of a new method."""

from typing import Literal

import torch
from torch import Tensor, nn

from dssgnn.baselines.inputs import check_inputs, check_sizes
from dssgnn.baselines.propagation import EdgeCache, renormalized
from dssgnn.graph import SparseFeatures
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import drop_features, linear_features
from dssgnn.nn.init import init_weight
from dssgnn.nn.linear import linear
from dssgnn.validation import check_choice, check_rates

__all__ = ["ResidualGCN"]


class ResidualGCN(nn.Module):
    r"""GCN with linear residual connections and normalisation (Luo, Shi and Wu, NeurIPS 2024).

    .. math::
        H^{(0)} = X W_{in} + b_{in}, \qquad
        H^{(l+1)} = \mathrm{dropout}\big(\mathrm{relu}(\mathrm{norm}(\hat A H^{(l)} W_l + H^{(l)} R_l))\big), \qquad
        Z = H^{(L)} W_{out} + b_{out}

    Args:
        in_channels: features a node.
        hidden_channels: width.
        out_channels: classes ``C``.
        num_layers: ``L``.
        dropout: on every hidden state.
        input_dropout: on the features.
        norm: ``"layer"``, ``"batch"`` or ``None``, with which a layer has a bias instead.

    Example:
        >>> ResidualGCN(5, 16, 3, num_layers=6)(torch.randn(2, 5), torch.tensor([[0], [1]])).shape
        torch.Size([2, 3])
    """

    sparse_features = True  # also takes `SparseFeatures`

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        norm: Literal["layer", "batch"] | None = "layer",
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        check_rates(dropout=dropout, input_dropout=input_dropout)
        check_choice(norm, Literal[None, "layer", "batch"], "norm")
        self.in_channels, self.dropout, self.input_dropout = in_channels, dropout, input_dropout
        width, layers = hidden_channels, range(num_layers)
        self.lift = nn.Parameter(torch.empty(in_channels, width))
        self.lift_bias = nn.Parameter(torch.empty(width))
        self.weights = nn.ParameterList(torch.empty(width, width) for _ in layers)
        self.residual_weights = nn.ParameterList(torch.empty(width, width) for _ in layers)
        kinds = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d, None: _Bias}
        self.norms = nn.ModuleList(kinds[norm](width) for _ in layers)
        self.readout = nn.Parameter(torch.empty(width, out_channels))
        self.readout_bias = nn.Parameter(torch.empty(out_channels))
        self._propagation = EdgeCache(renormalized)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        for weight in (self.lift, *self.weights, *self.residual_weights, self.readout):
            init_weight(weight, "glorot")
        for bias in (self.lift_bias, self.readout_bias):
            bias.zero_()
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        check_inputs(x, self.in_channels)
        ahat = self._propagation(edge_index, x)
        h = linear_features(drop_features(x, self.input_dropout, self.training), self.lift) + self.lift_bias
        for weight, residual, norm in zip(self.weights, self.residual_weights, self.norms, strict=True):
            h = norm(ahat @ linear(h, weight) + linear(h, residual))
            h = dropout(torch.relu(h), self.dropout, self.training)
        return linear(h, self.readout) + self.readout_bias


class _Bias(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.bias.zero_()

    def forward(self, h: Tensor) -> Tensor:
        return h + self.bias
