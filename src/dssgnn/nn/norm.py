"""Batch norm of a chaos state: order by order, or of the random variables that the orders make up."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError

__all__ = ["NORMS", "JointNorm", "Norm", "SeparateNorm", "make_norm"]

Norm = Literal["batch", "joint"]
NORMS: tuple[Norm, ...] = get_args(Norm)


def make_norm(kind: Norm, channels: int, chaos_order: int) -> "SeparateNorm | JointNorm":
    """The norm of that name, of states ``[N, P+1, channels]``."""
    return SeparateNorm(channels, chaos_order) if kind == "batch" else JointNorm(channels)


class SeparateNorm(nn.BatchNorm1d):
    """A `BatchNorm1d` an order: every coefficient is brought to unit variance, however small it was."""

    def __init__(self, channels: int, chaos_order: int) -> None:
        super().__init__((chaos_order + 1) * channels)  # one over all orders at once is one an order

    def forward(self, h: Tensor) -> Tensor:
        """Normalise ``h [N, P+1, d]``."""
        return super().forward(h.flatten(1)).view_as(h)


class JointNorm(nn.Module):
    r"""Batch norm of random variables: one mean and one deviation a channel, over nodes and the factor together.

    .. math::
        \mu = \mathrm{mean}_i H_{i,0}, \qquad
        \sigma^2 = \mathrm{mean}_i \Big[(H_{i,0} - \mu)^2 + \sum_{n \ge 1} H_{i,n}^2\Big], \qquad
        H'_n = \gamma\, \frac{H_n - \delta_{n0}\,\mu}{\sqrt{\sigma^2 + \epsilon}} + \delta_{n0}\,\beta

    The basis is orthonormal, so this is the variance of a node and a factor drawn at random. All orders are divided by
    the same number: what is small stays small. At order 0 it is `BatchNorm1d`.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.empty(channels))
        self.bias = nn.Parameter(torch.empty(channels))
        self.register_buffer("running_mean", torch.empty(channels))
        self.register_buffer("running_var", torch.empty(channels))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again."""
        for ones in (self.weight, self.running_var):
            ones.fill_(1)
        for zeros in (self.bias, self.running_mean):
            zeros.zero_()

    def forward(self, h: Tensor) -> Tensor:
        """Normalise ``h [N, P+1, d]``: by its own moments while training, by the running ones after."""
        mean, var = self._moments(h) if self.training else (self.running_mean, self.running_var)
        scale = self.weight * (var + self.eps).rsqrt()
        first = h[:, :1] * scale + (self.bias - mean * scale)
        return torch.cat([first, h[:, 1:] * scale], dim=1).to(h.dtype)

    def _moments(self, h: Tensor) -> tuple[Tensor, Tensor]:
        nodes = h.size(0)
        if nodes < 2:
            raise InputError(f"norm='joint' needs two nodes or more to train on, got {nodes}")
        h = h.to(self.weight.dtype)
        mean = h[:, 0].mean(dim=0)
        var = (h[:, 0] - mean).square().mean(dim=0) + h[:, 1:].square().mean(dim=0).sum(dim=0)
        with (
            torch.no_grad()
        ):  # the variance unbiased, as torch's; not by lerp_, which a population cannot batch
            self.running_mean += self.momentum * (mean - self.running_mean)
            self.running_var += self.momentum * (var * (nodes / (nodes - 1)) - self.running_var)
        return mean, var
