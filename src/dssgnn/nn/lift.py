"""The lift: from features to the chaos coefficients of a first state."""

from typing import Literal

import torch
from torch import Tensor, nn

from dssgnn.graph import SparseFeatures
from dssgnn.nn.features import linear_features
from dssgnn.nn.init import WeightInit, init_weight
from dssgnn.nn.linear import linear

__all__ = ["ChaosLift", "Lift"]

Lift = Literal["separate", "shared"]


class ChaosLift(nn.Module):
    """``H_n = X W_in^(n)``, or ``H_n = g_n X W_in`` with one matrix and a gain an order."""

    def __init__(
        self, in_channels: int, out_channels: int, chaos_order: int, kind: Lift, weight_init: WeightInit
    ) -> None:
        super().__init__()
        self.weight_init: WeightInit = weight_init
        matrices = 1 if kind == "shared" else chaos_order + 1
        self.weight = nn.Parameter(torch.empty(matrices, in_channels, out_channels))
        self.gains = nn.Parameter(torch.empty(chaos_order + 1)) if kind == "shared" else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again; shared gains are 1, then 0.1."""
        init_weight(self.weight, self.weight_init)
        if self.gains is not None:
            self.gains.fill_(0.1)
            self.gains[0] = 1.0

    def forward(self, x: Tensor | SparseFeatures, following: Tensor | None = None) -> Tensor:
        """``x [N, in]`` to ``[N, P+1, out]``; a ``W`` that comes right after is multiplied onto the weights."""
        weight = self.weight if following is None else linear(self.weight, following)
        matrices, _, width = weight.shape
        weight = weight.transpose(0, 1).flatten(1)
        h = linear_features(x, weight)
        h = h.view(-1, matrices, width)
        return h if self.gains is None else h * self.gains[:, None]
