"""`BernNet`: a perceptron, then a filter whose response is learned value by value."""

from functools import cache

import torch
from torch import Tensor, nn

from dssgnn.baselines.inputs import check_inputs, check_sizes
from dssgnn.baselines.mlp import MLP
from dssgnn.graph import OperatorCache, SparseFeatures
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import drop_features
from dssgnn.spectral import bernstein_to_chebyshev
from dssgnn.validation import check_count, check_rates

__all__ = ["BernNet"]


class BernNet(nn.Module):
    r"""BernNet (He et al., NeurIPS 2021).

    .. math::
        Z = \sum_{k=0}^K \mathrm{relu}(\theta_k)\, 2^{-K} \binom{K}{k} (2I - L)^{K-k} L^k\, \mathrm{MLP}(X)

    :math:`\theta` starts at 1, which passes everything: the basis sums to 1. The polynomial is applied in its
    Chebyshev form, which costs ``K`` sparse products instead of :math:`K(K+3)/2`. The graph is made undirected.

    :math:`\theta` has a learning rate of its own in the original: ``ParameterGroup("*theta", lr=0.01)``.

    Args:
        in_channels: features a node.
        hidden_channels: width of the MLP.
        out_channels: classes ``C``.
        num_layers: of the MLP.
        dropout: in the MLP.
        degree: ``K``.
        input_dropout: on the features.
        propagation_dropout: on the MLP's output.

    Example:
        >>> BernNet(5, 16, 3)(torch.randn(2, 5), torch.tensor([[0], [1]])).shape
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
        degree: int = 10,
        input_dropout: float = 0.0,
        propagation_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        self.degree = check_count(degree, "degree")
        check_rates(dropout=dropout, input_dropout=input_dropout, propagation_dropout=propagation_dropout)
        self.in_channels = in_channels
        self.input_dropout, self.propagation_dropout = input_dropout, propagation_dropout
        self.mlp = MLP([in_channels, *[hidden_channels] * (num_layers - 1), out_channels], dropout)
        self.theta = nn.Parameter(torch.empty(degree + 1))
        self._operator = OperatorCache()
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        self.mlp.reset_parameters()
        self.theta.fill_(1)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        check_inputs(x, self.in_channels)
        z = self.mlp(drop_features(x, self.input_dropout, self.training))
        z = dropout(z, self.propagation_dropout, self.training)
        table = _conversion(self.degree, self.theta.dtype, self.theta.device)
        coefficients = torch.relu(self.theta) @ table
        return self._operator(edge_index, x).filter(z[:, None], coefficients[None, None])[:, 0, 0]


@cache
def _conversion(degree: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Row ``k`` has the Chebyshev coefficients of the ``k``-th Bernstein polynomial, ``[K+1, K+1]``."""
    with torch.inference_mode(False):
        units = torch.eye(degree + 1, dtype=torch.float64)
        return torch.stack([bernstein_to_chebyshev(unit) for unit in units]).to(device, dtype)
