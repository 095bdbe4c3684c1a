"""`GAT`: neighbours weighted by attention."""

from typing import Any

import torch
from torch import Tensor, nn

from dssgnn.baselines.inputs import check_inputs, check_sizes
from dssgnn.baselines.propagation import EdgeCache
from dssgnn.errors import InputError
from dssgnn.graph import SparseFeatures
from dssgnn.graph.product import Pattern
from dssgnn.nn.dropout import dropout
from dssgnn.nn.features import drop_features, linear_features
from dssgnn.nn.init import init_weight
from dssgnn.validation import check_rates

__all__ = ["GAT"]


class GAT(nn.Module):
    r"""Graph attention network (Velickovic et al., ICLR 2018), two layers as in the paper's comparison.

    With a loop at every node, and in each head of a layer

    .. math::
        h'_i = \sum_{j \to i} \alpha_{ij} W h_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\, \mathrm{leaky}_{0.2}(a_{src}^T W h_j + a_{dst}^T W h_i)

    The hidden layer concatenates its heads and applies ELU, the output layer has one head. PyG's ``GATConv``, but
    no sum depends on the order in which a GPU adds, and `torch.func.vmap` runs a population.

    Args:
        in_channels: features a node.
        hidden_channels: width of the hidden layer, over all heads.
        out_channels: classes ``C``.
        heads: attention heads of the hidden layer.
        dropout: on the attention weights and on the hidden state.
        input_dropout: on the features.

    Example:
        >>> GAT(5, 16, 3)(torch.randn(2, 5), torch.tensor([[0], [1]])).shape
        torch.Size([2, 3])
    """

    sparse_features = True  # also takes `SparseFeatures`

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        heads: int = 8,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels, heads=heads
        )
        check_rates(dropout=dropout, input_dropout=input_dropout)
        if hidden_channels % heads:
            raise InputError(f"hidden_channels must be a multiple of {heads} heads, got {hidden_channels}")
        self.in_channels, self.dropout, self.input_dropout = in_channels, dropout, input_dropout
        self.first = _Attention(in_channels, hidden_channels // heads, heads, dropout)
        self.second = _Attention(hidden_channels, out_channels, 1, dropout)
        self._ends = EdgeCache(_both_ends)

    def reset_parameters(self) -> None:
        """Start again."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        """Logits ``[N, C]``."""
        check_inputs(x, self.in_channels)
        source, target = self._ends(edge_index, x)
        x = drop_features(x, self.input_dropout, self.training)
        h = nn.functional.elu(self.first(x, source, target))
        logits: Tensor = self.second(dropout(h, self.dropout, self.training), source, target)
        return logits


class _Attention(nn.Module):
    """One layer; its heads ``[N, heads, out]`` side by side."""

    def __init__(self, in_channels: int, out_channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(in_channels, heads * out_channels))
        self.source = nn.Parameter(torch.empty(heads, out_channels))  # a_src
        self.target = nn.Parameter(torch.empty(heads, out_channels))  # a_dst
        self.bias = nn.Parameter(torch.empty(heads * out_channels))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for weight in (self.weight, self.source, self.target):
            init_weight(weight, "glorot")
        self.bias.zero_()

    def forward(self, x: Tensor | SparseFeatures, source: "_Ends", target: "_Ends") -> Tensor:
        h = linear_features(x, self.weight).view(-1, *self.source.shape)  # [N, heads, out]
        from_source, from_target = (h * self.source).sum(dim=-1), (h * self.target).sum(dim=-1)
        score = nn.functional.leaky_relu(source.gather(from_source) + target.gather(from_target), 0.2)
        score = (score - target.gather(target.largest(score))).exp()  # [E, heads]
        alpha = dropout(score / target.gather(target.sum(score)), self.dropout, self.training)
        return target.sum(source.gather(h) * alpha[..., None]).flatten(1) + self.bias


class _Ends:
    """The node at one end of every edge ``[E]``: what nodes have can be gathered by edges, and summed back."""

    def __init__(self, nodes: Tensor, num_nodes: int, dtype: torch.dtype) -> None:
        starts = nn.functional.pad(torch.bincount(nodes, minlength=num_nodes).cumsum(0), (1, 0))
        self.nodes, self.num_nodes = nodes, num_nodes
        self.pattern = Pattern(starts.int(), torch.argsort(nodes, stable=True).int())  # [N, E]
        self.ones = torch.ones(nodes.numel(), dtype=dtype, device=nodes.device)

    def gather(self, h: Tensor) -> Tensor:
        """``[N, ...]`` to ``[E, ...]``."""
        return _Gather.apply(self, h)  # type: ignore[no-untyped-call, no-any-return]

    def sum(self, values: Tensor) -> Tensor:
        """``[E, ...]`` to ``[N, ...]``, in the same order every time."""
        return _Sum.apply(self, values.to(self.ones.dtype))  # type: ignore[no-untyped-call, no-any-return]

    def largest(self, values: Tensor) -> Tensor:
        """``[E, ...]`` to ``[N, ...]``; a constant to autograd."""
        return _Largest.apply(self, values.detach())  # type: ignore[no-untyped-call, no-any-return]


def _both_ends(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> tuple[_Ends, _Ends]:
    """Sources and targets, with exactly one loop at every node."""
    edges = edge_index.detach().long()
    loops = torch.arange(num_nodes, device=edges.device).expand(2, -1)
    source, target = torch.cat([edges[:, edges[0] != edges[1]], loops], dim=1)
    return _Ends(source.contiguous(), num_nodes, dtype), _Ends(target.contiguous(), num_nodes, dtype)


class _OnEdges(torch.autograd.Function):
    """A population's states stand side by side: the batch is one more dimension behind the first."""

    @classmethod
    def vmap(
        cls, info: Any, in_dims: tuple[int | None, ...], ends: _Ends, value: Tensor
    ) -> tuple[Tensor, int]:
        return cls.apply(ends, value.movedim(in_dims[1] or 0, 1)), 1  # type: ignore[no-untyped-call]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[_Ends, Tensor], output: Tensor) -> None:
        ctx.ends = inputs[0]


class _Gather(_OnEdges):
    @staticmethod
    def forward(ends: _Ends, h: Tensor) -> Tensor:
        return h.index_select(0, ends.nodes)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.ends.sum(grad)


class _Sum(_OnEdges):
    @staticmethod
    def forward(ends: _Ends, values: Tensor) -> Tensor:
        flat = ends.pattern.product(ends.ones, values.flatten(1))
        return flat.view(-1, *values.shape[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.ends.gather(grad)


class _Largest(_OnEdges):
    @staticmethod
    def forward(ends: _Ends, values: Tensor) -> Tensor:
        index = ends.nodes.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        start = values.new_full((ends.num_nodes, *values.shape[1:]), -torch.inf)
        return start.scatter_reduce(0, index, values, "amax")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[_Ends, Tensor], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)
