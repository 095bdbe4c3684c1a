"""`ChaosLinear`: a layer of the network that does not touch the graph."""

import torch
from torch import Tensor, nn

from dssgnn.nn.conv import Operators
from dssgnn.nn.init import WeightInit, init_weight
from dssgnn.nn.projection import Activation, evaluate_activate_project, reset_activation, resolve_activation
from dssgnn.spectral import projection_tables

__all__ = ["ChaosLinear"]


class ChaosLinear(nn.Module):
    """A `DSSConv` without a graph: ``G_lp = I``, ``G_hp = 0``, gates 1."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        chaos_order: int,
        *,
        quadrature_size: int,
        activation: str | Activation | None,
        bias: bool,
        weight_init: WeightInit,
    ) -> None:
        super().__init__()
        self.chaos_order, self.quadrature_size = chaos_order, quadrature_size
        self.activation = resolve_activation(activation)
        self.weight_init: WeightInit = weight_init
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        init_weight(self.weight, self.weight_init)
        if self.bias is not None:
            self.bias.zero_()
        reset_activation(self.activation)

    weight_first = True  # as in `DSSConv`: nothing has to come before ``W``

    def filter(self, h: Tensor, graph: Operators) -> Tensor:
        """Nothing to do on a graph."""
        return h

    def activate(self, u: Tensor) -> Tensor:
        """The layer after ``W``."""
        tables = projection_tables(self.chaos_order, self.quadrature_size, self.weight.dtype, u.device)
        return evaluate_activate_project(u, *tables, self.activation, self.bias)
