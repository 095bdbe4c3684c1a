"""`GPRGNN`: a perceptron, then learned PageRank."""

import torch
from torch import Tensor, nn

from dssgnn.baselines.inputs import check_inputs, check_sizes
from dssgnn.baselines.mlp import MLP
from dssgnn.baselines.propagation import EdgeCache, renormalized
from dssgnn.graph import SparseFeatures
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import drop_features
from dssgnn.validation import check_count, check_rates, check_share

__all__ = ["GPRGNN"]


class GPRGNN(nn.Module):
    r"""GPR-GNN (Chien et al., ICLR 2021).

    .. math:: Z = \sum_{k=0}^K \gamma_k \hat A^k\, \mathrm{MLP}(X), \qquad \hat A = D^{-1/2} (A + I) D^{-1/2}

    The weights start as personalised PageRank, :math:`\gamma_k = \alpha (1-\alpha)^k` and
    :math:`\gamma_K = (1-\alpha)^K`: APPNP.

    Args:
        in_channels: features a node.
        hidden_channels: width of the MLP.
        out_channels: classes ``C``.
        num_layers: of the MLP.
        dropout: in the MLP.
        degree: ``K``.
        alpha: where the weights start; up to 0.9 under heterophily.
        input_dropout: on the features.
        propagation_dropout: on the MLP's output.

    Example:
        >>> GPRGNN(5, 16, 3)(torch.randn(2, 5), torch.tensor([[0], [1]])).shape
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
        alpha: float = 0.1,
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
        check_count(degree, "degree")
        check_rates(dropout=dropout, input_dropout=input_dropout, propagation_dropout=propagation_dropout)
        check_share(alpha, "alpha")
        self.in_channels, self.alpha = in_channels, alpha
        self.input_dropout, self.propagation_dropout = input_dropout, propagation_dropout
        self.mlp = MLP([in_channels, *[hidden_channels] * (num_layers - 1), out_channels], dropout)
        self.weights = nn.Parameter(torch.empty(degree + 1))
        self._propagation = EdgeCache(renormalized)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        self.mlp.reset_parameters()
        powers = (1 - self.alpha) ** torch.arange(self.weights.numel(), dtype=torch.float64)
        powers[:-1] *= self.alpha
        self.weights.copy_(powers)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        check_inputs(x, self.in_channels)
        z = self.mlp(drop_features(x, self.input_dropout, self.training))
        z = dropout(z, self.propagation_dropout, self.training)
        return self._propagation(edge_index, x).filter(z, self.weights)
