"""Ordinary encoders, ready to stand alone or as the base of a hybrid."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, models

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator, OperatorCache
from dssgnn.validation import FeatureCheck

__all__ = ["ENCODERS", "GAT", "GPRGNN", "Deterministic", "make_encoder"]


class GPRGNN(nn.Module):
    r"""GPR-GNN (Chien et al., 2021): an MLP, then :math:`\sum_k \gamma_k \hat A^k` with learned weights.

    Args:
        in_channels: features a node.
        hidden_channels: width of the MLP.
        out_channels: classes.
        num_layers: of the MLP.
        dropout: in the MLP.
        degree: ``K``.
        alpha: of the personalised PageRank that the weights start from.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        degree: int = 10,
        alpha: float = 0.1,
    ) -> None:
        super().__init__()
        self.mlp = models.MLP(
            [in_channels, *[hidden_channels] * (num_layers - 1), out_channels],
            dropout=float(dropout),
            norm=None,
        )
        self.alpha = alpha
        self.weights = nn.Parameter(torch.empty(degree + 1))
        self._operator = OperatorCache(self_loops=True)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again: PageRank weights ``alpha (1 - alpha)^k``, the last ``(1 - alpha)^K``."""
        self.mlp.reset_parameters()
        powers = (1 - self.alpha) ** torch.arange(self.weights.numel(), dtype=torch.float64)
        powers[:-1] *= self.alpha
        self.weights.copy_(powers)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        z = self.mlp(x)
        return self._operator(edge_index, z).filter(z[:, None], self.weights[None, None], "monomial")[:, 0, 0]


class GAT(nn.Module):
    """The two-layer graph attention network of the paper's comparison: 8 heads, ELU, one output head.

    Args:
        in_channels: features a node.
        hidden_channels: width of the hidden layer, over all heads.
        out_channels: classes.
        heads: attention heads of the hidden layer.
        dropout: on the attention weights and on the hidden state.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, heads: int = 8, dropout: float = 0.5
    ) -> None:
        super().__init__()
        if hidden_channels % heads:
            raise InputError(f"hidden_channels must be a multiple of {heads} heads, got {hidden_channels}")
        self.first = GATConv(in_channels, hidden_channels // heads, heads, dropout=dropout)
        self.second = GATConv(hidden_channels, out_channels, dropout=dropout)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Start again."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        h = nn.functional.elu(self.first(x, edge_index))
        logits: Tensor = self.second(nn.functional.dropout(h, self.dropout, self.training), edge_index)
        return logits


def _from_pyg(name: str) -> Callable[..., nn.Module]:
    def make(in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> nn.Module:
        options = {"num_layers": 2, "dropout": 0.5} | options
        module: nn.Module = getattr(models, name)(
            in_channels, hidden_channels, out_channels=out_channels, **options
        )
        return module

    return make


ENCODERS: dict[str, Callable[..., nn.Module]] = {
    "gat": GAT,
    "gcn": _from_pyg("GCN"),
    "sage": _from_pyg("GraphSAGE"),
    "gpr-gnn": GPRGNN,
}


def make_encoder(
    name: str, in_channels: int, hidden_channels: int, out_channels: int, **options: Any
) -> nn.Module:
    """An encoder by name: ``"gat"``, ``"gcn"``, ``"sage"`` or ``"gpr-gnn"``.

    Args:
        name: which one.
        in_channels: features a node.
        hidden_channels: width.
        out_channels: classes.
        options: passed on (``dropout=0.5`` and so on; those of PyG's models for ``"gcn"`` and ``"sage"``).

    Returns:
        A module ``encoder(x, edge_index) -> logits [N, C]``.
    """
    if name not in ENCODERS:
        raise InputError(f"encoder must be one of {', '.join(ENCODERS)}, got {name!r}")
    return ENCODERS[name](in_channels, hidden_channels, out_channels, **options)


class Deterministic(nn.Module):
    """Gives an ordinary encoder the interface of every system: its logits as an expansion of order 0."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self._check = FeatureCheck()

    def reset_parameters(self) -> None:
        """Start again."""
        self.encoder.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, graph: GraphOperator | Tensor) -> ChaosExpansion:
        """The encoder's logits, run on the edges as they were read."""
        if isinstance(graph, GraphOperator):
            self._check(x, graph.num_nodes)
            graph = graph.edge_index
        else:
            self._check(x)
        logits: Tensor = self.encoder(x, graph)
        return ChaosExpansion(logits[:, None])
