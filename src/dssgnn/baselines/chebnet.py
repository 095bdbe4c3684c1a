"""`ChebNet`: a Chebyshev polynomial of the Laplacian a layer."""

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from dssgnn.baselines.inputs import check_inputs, check_sizes
from dssgnn.graph import GraphOperator, OperatorCache, SparseFeatures
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import drop_features, linear_features
from dssgnn.nn.init import init_weight
from dssgnn.spectral import initial_filters
from dssgnn.spectral.chebyshev import FilterInit
from dssgnn.validation import check_choice, check_count, check_rates

__all__ = ["ChebNet", "ChebWeights"]

ChebWeights = Literal["scalar", "full"]


class ChebNet(nn.Module):
    r"""ChebNet (Defferrard, Bresson and Vandergheynst, NeurIPS 2016).

    .. math::
        H' = \mathrm{relu}\Big(\sum_{k=0}^K c_k T_k(\tilde L) H W + b\Big) \ \text{(scalar)}, \qquad
        H' = \mathrm{relu}\Big(\sum_{k=0}^K T_k(\tilde L) H W_k + b\Big) \ \text{(full)}

    ``"scalar"`` is `DSSGNN` of chaos order 0 with one branch; the paper's decomposition table has it. ``"full"`` is
    PyG's ``ChebConv`` with ``lambda_max=2``. The graph is made undirected.

    Args:
        in_channels: features a node.
        hidden_channels: width.
        out_channels: classes ``C``.
        num_layers: depth; the last layer has no ReLU.
        degree: ``K``.
        coefficients: ``"scalar"`` or ``"full"``.
        dropout: on every hidden state.
        input_dropout: on the features.
        filter_init: the response that ``"scalar"`` starts from.

    Example:
        >>> ChebNet(5, 16, 3, coefficients="full")(torch.randn(2, 5), torch.tensor([[0], [1]])).shape
        torch.Size([2, 3])
    """

    sparse_features = True  # also takes `SparseFeatures`

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        degree: int = 4,
        coefficients: ChebWeights = "scalar",
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        filter_init: FilterInit = "lowpass",
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        check_count(degree, "degree")
        check_rates(dropout=dropout, input_dropout=input_dropout)
        check_choice(coefficients, ChebWeights, "coefficients")
        self.in_channels, self.dropout, self.input_dropout = in_channels, dropout, input_dropout
        self.degree, self.filter_init = degree, filter_init
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        scalar = coefficients == "scalar"
        self.coefficients = nn.ParameterList(torch.empty(degree + 1) for _ in widths[1:] if scalar)
        self.weights = nn.ParameterList(
            torch.empty(1 if scalar else degree + 1, a, b) for a, b in pairwise(widths)
        )
        self.biases = nn.ParameterList(torch.empty(b) for b in widths[1:])
        self._operator = OperatorCache()
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        for c in self.coefficients:
            c.copy_(initial_filters(self.filter_init, (self.degree, 0))[0])
        for weight in self.weights:
            init_weight(weight, "glorot")
        for bias in self.biases:
            bias.zero_()

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        check_inputs(x, self.in_channels)
        operator = self._operator(edge_index, x)
        h = self._layer(0, drop_features(x, self.input_dropout, self.training), operator)
        for i in range(1, len(self.weights)):
            h = self._layer(i, dropout(torch.relu(h), self.dropout, self.training), operator)
        return h

    def _layer(self, i: int, h: Tensor | SparseFeatures, operator: GraphOperator) -> Tensor:
        weight = self.weights[i]  # [1 or K+1, d, d']
        terms = linear_features(h, weight.transpose(0, 1).flatten(1)).view(-1, len(weight), weight.size(2))
        if len(self.coefficients):
            filtered = operator.filter(terms, self.coefficients[i][None, None])[:, 0, 0]
        else:
            filtered = _clenshaw(operator, terms)
        out: Tensor = filtered + self.biases[i]
        return out


def _clenshaw(operator: GraphOperator, terms: Tensor) -> Tensor:
    r""":math:`\sum_k T_k(\tilde L) Y_k` for ``Y [N, K+1, d]`` by ``K`` products, from the highest order down."""
    first, *higher = terms.unbind(1)
    if not higher:
        return first
    current, before = higher[-1], torch.zeros_like(first)
    for term in reversed(higher[:-1]):
        current, before = term + 2 * (operator @ current) - before, current
    return first + operator @ current - before
