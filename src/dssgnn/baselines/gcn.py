"""`GCN`: first-order propagation and a matrix a layer."""

from itertools import pairwise
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

__all__ = ["GCN"]


class GCN(nn.Module):
    r"""Graph convolutional network (Kipf and Welling, ICLR 2017).

    .. math:: H^{(l+1)} = \mathrm{relu}(\hat A H^{(l)} W_l + b_l), \qquad \hat A = D^{-1/2} (A + I) D^{-1/2}

    PyG's ``GCN`` on every graph, directed ones and loops included. The defaults are those of the paper's
    comparison, which trains with Adam at 0.01 and weight decay 5e-4.

    Args:
        in_channels: features a node.
        hidden_channels: width.
        out_channels: classes ``C``.
        num_layers: depth.
        dropout: on every hidden state.
        input_dropout: on the features.
        norm: ``"batch"`` normalises every hidden state before the ReLU; those layers then have no bias.

    Example:
        >>> GCN(5, 16, 3)(torch.randn(2, 5), torch.tensor([[0], [1]])).shape
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
        norm: Literal["batch"] | None = None,
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        check_rates(dropout=dropout, input_dropout=input_dropout)
        check_choice(norm, Literal[None, "batch"], "norm")
        self.in_channels, self.dropout, self.input_dropout = in_channels, dropout, input_dropout
        hidden = [hidden_channels] * (num_layers - 1)
        widths = [in_channels, *hidden, out_channels]
        self.weights = nn.ParameterList(torch.empty(a, b) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(torch.empty(b) for b in ([out_channels] if norm else widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in (hidden if norm else ()))
        self._propagation = EdgeCache(renormalized)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        for weight in self.weights:
            init_weight(weight, "glorot")
        for bias in self.biases:
            bias.zero_()
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        check_inputs(x, self.in_channels)
        ahat = self._propagation(edge_index, x)
        h = ahat @ linear_features(drop_features(x, self.input_dropout, self.training), self.weights[0])
        for i in range(len(self.weights) - 1):
            h = self.norms[i](h) if len(self.norms) else h + self.biases[i]
            h = ahat @ linear(dropout(torch.relu(h), self.dropout, self.training), self.weights[i + 1])
        logits: Tensor = h + self.biases[-1]
        return logits
