"""G-DeltaUQ: the spread of an anchored network over its anchors."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from dssgnn.baselines.gaussian_product import gaussian_product
from dssgnn.baselines.inputs import check_sizes
from dssgnn.baselines.propagation import EdgeCache, Propagation, renormalized
from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion, LogitDistribution, LogitSamples
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.nn.dropout import dropout, normal
from dssgnn.nn.features import linear_features
from dssgnn.nn.init import init_weight
from dssgnn.nn.linear import linear
from dssgnn.validation import FeatureCheck, check_choice, check_count, check_rates

__all__ = ["GDeltaUQ", "anchor_spread", "calibrated_logits"]

Level = Literal["input", "layer", "hidden"]
AnchorMode = Literal["random", "shared", "shuffle"]


class GDeltaUQ(nn.Module):
    r"""A GCN that is told how its state differs from an anchor, and the anchor (Trivedi et al., 2024).

    .. math:: z^{(m)} = f([h - c_m,\; c_m]), \qquad m = 1..M

    One network is so a family of functions, and the logits' spread over anchors is the uncertainty. Layers are
    convolution, batch norm, ReLU (not after the last convolution), dropout; then a linear classifier. The layer
    that reads the anchored state has the doubled width. In training mode the answer is the mean of the logits over
    ``M`` anchors that are drawn anew, and without gradients, at every pass. In eval mode it is, by ``fresh`` and
    ``calibrated``:

    - official: the same ``M`` anchors for all nodes and calls, mean logits divided by ``1 + exp(u)``;
    - the runner of the DSS-GNN paper (``num_anchors=5, fresh=True, calibrated=False``): anchors drawn as in
      training; its reported probabilities are the softmax of the mean logits (``*_mean`` of the metrics).

    Of anchors that are drawn for every node and are wider than the network only the product with the weights is
    made, in the same law (`gaussian_product`).

    Training draws come from where dropout's do. Those of ``fresh`` in eval mode come from ``seed`` and are the same
    at every call, except inside a CUDA graph, which draws from the training run's generators.

    Args:
        in_channels: features a node.
        hidden_channels: width.
        out_channels: classes.
        num_layers: convolutions.
        dropout: after every convolution.
        level: what is anchored: the ``"input"`` (call `fit_anchors` before training), what convolution
            ``anchor_layer`` reads (``"layer"``), or what the classifier reads (``"hidden"``).
        anchor_layer: from 1, for ``level="layer"``.
        num_anchors: ``M``.
        anchor_mode: ``"random"`` draws from a Gaussian for every node, ``"shared"`` one vector a pass for all
            nodes, ``"shuffle"`` takes the state of another node. (The authors say ``"batch"`` for ``"shared"`` at
            the input and for ``"shuffle"`` elsewhere.) At the input the Gaussian is that of the training features,
            elsewhere that of the state itself.
        fresh: draw anchors in eval mode too. Otherwise they are ``M`` draws kept with the model at the input, and
            the first ``M`` rows of the state elsewhere.
        calibrated: divide by the spread and return an expansion of order 0; otherwise `LogitSamples`.
        seed: of what is drawn once, or in eval mode.

    Example:
        >>> x, edges = torch.randn(2, 5), torch.tensor([[0, 1], [1, 0]])
        >>> model = GDeltaUQ(5, 16, 3, num_anchors=4, calibrated=False)
        >>> model.fit_anchors(x)
        >>> model(x, edges)
        ChaosExpansion(num_nodes=2, chaos_order=0, num_classes=3, quadrature_size=4)
        >>> model.eval()(x, edges)
        LogitSamples(num_nodes=2, num_samples=4, num_classes=3)
    """

    sparse_features = True  # also takes `SparseFeatures`
    mean: Tensor
    deviation: Tensor
    anchors: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        dropout: float = 0.5,
        level: Level = "input",
        anchor_layer: int = 1,
        num_anchors: int = 10,
        anchor_mode: AnchorMode = "random",
        fresh: bool = False,
        calibrated: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_choice(level, Level, "level")
        check_choice(anchor_mode, AnchorMode, "anchor_mode")
        check_sizes(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        check_rates(dropout=dropout)
        if level == "layer" and not 1 <= anchor_layer < num_layers:
            raise InputError(
                f"anchor_layer must be in 1..{num_layers - 1} for {num_layers} layers, got {anchor_layer!r}"
            )
        self.level, self.anchor_mode, self.dropout = level, anchor_mode, dropout
        self.num_anchors = check_count(num_anchors, "num_anchors", minimum=2 if calibrated else 1)
        self.fresh, self.calibrated, self.seed = fresh, calibrated, check_count(seed, "seed")
        # Which of the products, the classifier's being the last, reads [h - c, c].
        self.anchored = {"input": 0, "layer": anchor_layer, "hidden": num_layers}[level]
        widths = [in_channels, *[hidden_channels] * num_layers, out_channels]
        self.weights = nn.ParameterList(
            torch.empty(a * (2 if i == self.anchored else 1), b) for i, (a, b) in enumerate(pairwise(widths))
        )
        # A convolution's own bias would be taken off again by its norm.
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden_channels) for _ in range(num_layers))
        self.bias = nn.Parameter(torch.empty(out_channels))
        width = in_channels if level == "input" else 0
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))
        self.register_buffer("anchors", torch.zeros(self.num_anchors, width))
        self._fitted = level != "input"
        self.register_load_state_dict_post_hook(GDeltaUQ._loaded)  # type: ignore[no-untyped-call]
        self._propagation = EdgeCache(renormalized)
        self._check = FeatureCheck(in_channels)
        self.reset_parameters()

    def _loaded(self, _: object) -> None:
        self._fitted = True

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again; the anchors stay."""
        for weight in self.weights:
            init_weight(weight, "glorot")
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]
        self.bias.zero_()

    @torch.no_grad()
    def fit_anchors(self, x: Tensor | SparseFeatures) -> None:
        """Take mean and deviation of every feature from training nodes ``x [n, F]``, and draw the fixed anchors.

        A feature that does not vary gets the deviation 0.001.
        """
        if self.level != "input":
            raise InputError(
                f"anchors are fitted to features for level='input', this model has {self.level!r}"
            )
        self._check(x)
        x = x.dense() if isinstance(x, SparseFeatures) else x
        self.mean.copy_(x.mean(dim=0))
        deviation = x.std(dim=0) if len(x) > 1 else torch.zeros_like(self.deviation)
        self.deviation.copy_(torch.where(deviation > 0, deviation, 1e-3))
        noise = torch.randn(self.anchors.shape, generator=torch.Generator().manual_seed(self.seed))
        self.anchors.copy_(self.mean + self.deviation * noise.to(self.anchors))
        self._fitted = True

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> LogitDistribution:
        """Logits averaged over anchors (training, calibrated), or those of every anchor."""
        logits = self.samples(x, graph)
        if self.training:
            return ChaosExpansion(logits.mean(dim=1)[:, None])
        return ChaosExpansion(calibrated_logits(logits)[:, None]) if self.calibrated else LogitSamples(logits)

    def spread(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> Tensor:
        """The out-of-distribution score ``u [N]``; see `anchor_spread`."""
        return anchor_spread(self.samples(x, graph))

    def samples(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> Tensor:
        """The logits of every anchor, ``[N, M, C]``."""
        self._check(x)
        if self.training and not self._fitted:
            raise InputError("the anchors are not fitted; call fit_anchors with the training nodes' features")
        if isinstance(graph, GraphOperator):
            graph = graph.edge_index
        ahat = self._propagation(graph, x)
        h, at = x, self.anchored
        for i in range(at):
            h = self._finish(i, linear_features(h, self.weights[i]), ahat)
        # [h - c, c] W = h W_1 + c (W_2 - W_1): the first is the same for all anchors.
        own, other = self.weights[at].chunk(2)
        start, turn = linear_features(h, own), other - own
        logits = []
        for product in self._products(h, turn):
            z = self._finish(at, start + product, ahat)
            for i in range(at + 1, len(self.weights)):
                z = self._finish(i, linear(z, self.weights[i]), ahat)
            logits.append(z)
        return torch.stack(logits, dim=1)

    def _finish(self, i: int, h: Tensor, ahat: Propagation) -> Tensor:
        """What follows the product of layer ``i``."""
        if i == len(self.norms):
            return h + self.bias
        h = self.norms[i](ahat @ h)
        if i + 1 < len(self.norms):
            h = h.relu()
        return dropout(h, self.dropout, self.training)

    def _products(self, h: Tensor | SparseFeatures, weight: Tensor) -> Iterator[Tensor]:
        """One anchor's product with ``weight [d, k]`` after the other, ``[N, k]`` or ``[1, k]``."""
        width, narrow = weight.shape
        drawn = self.anchor_mode == "random" and (self.training or self.fresh)
        if self.level != "input" or not drawn or width <= narrow:
            yield from (linear(anchor, weight) for anchor in self._anchors(h))
            return
        # Anchors of N wide rows would be the largest thing by far, and only their product is wanted.
        generator, rows = self._generator(h), self.num_anchors * h.size(0)
        near = normal((rows, narrow), h.dtype, h.device, generator)
        far = normal((width, narrow), h.dtype, h.device, generator)
        products = gaussian_product(weight, self.deviation, near, far) + linear(self.mean[None], weight)
        yield from products.view(self.num_anchors, -1, narrow)

    def _generator(self, h: Tensor | SparseFeatures) -> torch.Generator | None:
        """Of anchors; ``None`` is where dropout draws."""
        if self.training or (h.is_cuda and torch.cuda.is_current_stream_capturing()):
            return None
        return torch.Generator(h.device).manual_seed(self.seed)

    def _anchors(self, h: Tensor | SparseFeatures) -> Iterator[Tensor]:
        """One anchor after the other, ``[N, d]`` or ``[1, d]``, for a state ``h [N, d]``."""
        rows, width = h.shape
        if not self.training and not self.fresh:
            fixed = self.anchors if isinstance(h, SparseFeatures) or self.level == "input" else h.detach()
            yield from (fixed[j % len(fixed)][None] for j in range(self.num_anchors))
            return
        generator = self._generator(h)
        if self.anchor_mode == "shuffle":
            state = h.dense() if isinstance(h, SparseFeatures) else h.detach()
            for _ in range(self.num_anchors):
                yield state.index_select(0, normal((rows,), h.dtype, h.device, generator).argsort())
            return
        mean, deviation = self.mean, self.deviation
        if isinstance(h, Tensor) and self.level != "input":
            mean, deviation = h.detach().mean(dim=0), h.detach().std(dim=0)
            deviation = torch.where(deviation > 0, deviation, deviation.mean())
        shape = (rows if self.anchor_mode == "random" else 1, width)
        for _ in range(self.num_anchors):
            yield mean + deviation * normal(shape, h.dtype, h.device, generator)


def anchor_spread(logits: Tensor) -> Tensor:
    r""":math:`u_i = \mathrm{mean}_c\,\mathrm{std}_m\,\sigma(z^{(m)}_{ic})`, ``[N]``, of logits ``[N, M, C]``.

    A sigmoid a class, also where classes exclude each other, and the unbiased deviation over anchors.

    Example:
        >>> anchor_spread(torch.tensor([[[0.0, 0.0], [torch.inf, 0.0]]]))
        tensor([0.1768])
    """
    return logits.sigmoid().std(dim=1).mean(dim=-1)


def calibrated_logits(logits: Tensor) -> Tensor:
    r""":math:`\bar z_i / (1 + e^{u_i})`, ``[N, C]``, of logits ``[N, M, C]``; the divisor is at least 2."""
    return logits.mean(dim=1) / (1 + anchor_spread(logits).exp())[:, None]
