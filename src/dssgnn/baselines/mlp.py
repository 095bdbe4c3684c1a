"""The perceptron that stands before or behind the filter of a decoupled network."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from dssgnn.graph import SparseFeatures
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import linear_features
from dssgnn.nn.init import WeightInit, init_weight

__all__ = ["MLP"]


class MLP(nn.Module):
    """Linear maps with ReLU and dropout between them.

    Args:
        widths: from the features to the output, ``L + 1`` of them.
        dropout: on every hidden state.
        bias: of every map.
        weight_init: how weights start; biases start at 0.
    """

    def __init__(
        self, widths: Sequence[int], dropout: float, bias: bool = True, weight_init: WeightInit = "glorot"
    ) -> None:
        super().__init__()
        self.dropout, self.weight_init = dropout, weight_init
        self.weights = nn.ParameterList(torch.empty(a, b) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(torch.empty(b) for b in (widths[1:] if bias else ()))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        for weight in self.weights:
            init_weight(weight, self.weight_init)
        for bias in self.biases:
            bias.zero_()

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:
        """``[N, d]`` to ``[N, d']``."""
        return self.after_first(linear_features(x, self.weights[0]))

    def after_first(self, h: Tensor) -> Tensor:
        """Everything but the first product, for ``h = x W_1 [N, d_1]``."""
        for i in range(len(self.weights)):
            if i > 0:
                h = linear_features(dropout(torch.relu(h), self.dropout, self.training), self.weights[i])
            if len(self.biases):
                h = h + self.biases[i]
        return h
