"""Ordinary encoders, ready to stand alone or as the base of a hybrid."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import models

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.nn.features import suited_features
from dssgnn.validation import FeatureCheck

__all__ = ["ENCODERS", "Deterministic", "make_encoder"]


def _baseline(name: str) -> Callable[..., nn.Module]:
    def make(*sizes: int, **options: Any) -> nn.Module:
        from dssgnn import baselines  # they are built from the parts of this package

        module: nn.Module = getattr(baselines, name)(*sizes, **options)
        return module

    return make


def _sage(in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> nn.Module:
    options = {"num_layers": 2, "dropout": 0.5} | options
    module: nn.Module = models.GraphSAGE(in_channels, hidden_channels, out_channels=out_channels, **options)
    return module


ENCODERS: dict[str, Callable[..., nn.Module]] = {
    "gcn": _baseline("GCN"),
    "gcn-res": _baseline("ResidualGCN"),
    "gat": _baseline("GAT"),
    "sage": _sage,
    "chebnet": _baseline("ChebNet"),
    "gpr-gnn": _baseline("GPRGNN"),
    "bernnet": _baseline("BernNet"),
    "tfe-gnn": _baseline("TFEGNN"),
}


def make_encoder(
    name: str, in_channels: int, hidden_channels: int, out_channels: int, **options: Any
) -> nn.Module:
    """An encoder by name: one of `dssgnn.baselines`, or PyG's ``"sage"``.

    Args:
        name: which one of `ENCODERS`.
        in_channels: features a node.
        hidden_channels: width.
        out_channels: classes.
        options: passed on (``dropout=0.5`` and so on).

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

    @property
    def sparse_features(self) -> bool:
        """Whether the encoder also takes `SparseFeatures`; one that does not is given them dense."""
        return getattr(self.encoder, "sparse_features", False)

    def reset_parameters(self) -> None:
        """Start again."""
        self.encoder.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> ChaosExpansion:
        """The encoder's logits, run on the edges as they were read."""
        if isinstance(graph, GraphOperator):
            self._check(x, graph.num_nodes)
            graph = graph.edge_index
        else:
            self._check(x)
        logits: Tensor = self.encoder(suited_features(self.encoder, x), graph)
        return ChaosExpansion(logits[:, None])
