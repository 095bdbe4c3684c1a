"""Some nodes of a graph, as integers: what a mask is turned into once a run."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Part"]


class Part(NamedTuple):
    """Nodes to read. A boolean mask would let a GPU wait at every use, and no two of a population's are as long.

    Attributes:
        nodes: their numbers ``[n]``; ``[B, n]`` for a population, shorter parts padded with their own first node.
        weight: ``[n]``, 1, and 0 for padding.
    """

    nodes: Tensor
    weight: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> "Part":
        """The nodes of one mask ``[N]``."""
        nodes = mask.nonzero()[:, 0]
        return cls(nodes, torch.ones_like(nodes, dtype=torch.get_default_dtype()))

    @classmethod
    def stack(cls, masks: Sequence[Tensor]) -> "Part":
        """The nodes of every member's mask, ``[B, n]``."""
        parts = [cls.of(mask) for mask in masks]
        longest = max(len(part.nodes) for part in parts)
        nodes = torch.stack([torch.cat([n, n[:1].expand(longest - len(n))]) for n, _ in parts])
        weight = torch.stack([torch.nn.functional.pad(w, (0, longest - len(w))) for _, w in parts])
        return cls(nodes, weight)

    def mean(self, values: Tensor) -> Tensor:
        """The mean of ``values [n]`` over the nodes that count."""
        weight = self.weight.to(values.dtype)
        return (values * weight).sum() / weight.sum()
