"""MC-dropout: the spread of a network over the masks that it was trained with."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from dssgnn.baselines.wrapper import Wrapper
from dssgnn.expansion import LogitDistribution, LogitSamples
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.nn.dropout import drawing_alone
from dssgnn.nn.norm import JointNorm
from dssgnn.training.seeding import seeded
from dssgnn.validation import check_count

__all__ = ["MCDropout"]


class MCDropout(Wrapper):
    r"""A trained model, asked :math:`M` times with dropout active (Gal and Ghahramani, 2016).

    .. math:: z^{(m)} = f(x; \text{mask}_m), \qquad \bar p = \frac1M \sum_m \mathrm{softmax}(z^{(m)})

    In training mode it is the model. In eval mode everything that depends on the mode behaves as in training,
    except norms, which keep their running statistics. The masks are the same at every call: they come from
    ``seed``, and nobody else's generator is drawn from. Train the model first and wrap it then: the epochs of a
    run are chosen by the plain model, and each costs one pass.

    Args:
        model: ``model(x, graph) -> LogitDistribution``; of each pass the mean logits are kept.
        samples: ``M``.
        seed: of the masks.

    Example:
        >>> from dssgnn import DSSGNN
        >>> model = MCDropout(DSSGNN(5, 16, 3), samples=4).eval()
        >>> x, edges = torch.randn(2, 5), torch.tensor([[0, 1], [1, 0]])
        >>> model(x, edges)
        LogitSamples(num_nodes=2, num_samples=4, num_classes=3)
    """

    def __init__(self, model: nn.Module, samples: int = 20, seed: int = 0) -> None:
        super().__init__(model)
        self.samples = check_count(samples, "samples", minimum=1)
        self.seed = check_count(seed, "seed")

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> LogitDistribution:
        """The model's answer in training mode, `LogitSamples` of its passes in eval mode."""
        if self.training:
            answer: LogitDistribution = self.model(x, graph)
            return answer
        own = torch.Generator(x.device).manual_seed(self.seed)
        # This package's layers draw from `own`, everybody else's from torch's default generator.
        with _dropping(self.model), drawing_alone(own), seeded(self.seed):
            before = _states(own)
            logits = [self.model(x, graph).mean for _ in range(self.samples)]
            drawn = any(not torch.equal(*pair) for pair in zip(before, _states(own), strict=True))
        if not drawn:
            warnings.warn("no dropout is active, so every pass of MC-dropout is the same", stacklevel=2)
        return LogitSamples(torch.stack(logits, dim=1))


@contextmanager
def _dropping(model: nn.Module) -> Iterator[None]:
    """Training mode for all of ``model`` but its norms."""
    before = {module: module.training for module in model.modules()}
    try:
        for module in before:
            module.training = not isinstance(module, (_NormBase, JointNorm))
        yield
    finally:
        for module, training in before.items():
            module.training = training


def _states(own: torch.Generator) -> list[Tensor]:
    """What changes when something is drawn; it lies on the host, also that of a GPU's generator."""
    default = torch.cuda.get_rng_state(own.device) if own.device.type == "cuda" else torch.get_rng_state()
    return [own.get_state(), default]
