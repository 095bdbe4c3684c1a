"""Temperature scaling: one number, fitted on validation nodes, that every logit is divided by."""

import math

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from dssgnn.baselines.wrapper import Wrapper
from dssgnn.errors import InputError
from dssgnn.expansion import LogitDistribution
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.metrics import nll
from dssgnn.training.task import NodeTask

__all__ = ["TemperatureScaled", "fit_temperature"]

_LIMIT = 20.0


class TemperatureScaled(Wrapper):
    r"""A system with all its logits divided by a temperature (Guo et al., 2017): :math:`z \mapsto z / T`.

    Whatever kind of distribution the model returns is scaled as a whole, so that its predictive distribution
    changes and its kind does not.

    Args:
        model: ``model(x, graph) -> LogitDistribution``.
        temperature: ``T``; see `fitted` for the one of validation nodes.

    Example:
        >>> from dssgnn import DSSGNN
        >>> model, x, edges = DSSGNN(5, 16, 3).eval(), torch.randn(2, 5), torch.tensor([[0, 1], [1, 0]])
        >>> torch.equal(TemperatureScaled(model, 2.0)(x, edges).mean, model(x, edges).mean / 2)
        True
    """

    temperature: Tensor

    def __init__(self, model: nn.Module, temperature: float = 1.0) -> None:
        super().__init__(model)
        if not 0 < temperature < math.inf:
            raise InputError(f"temperature must be positive and finite, got {temperature!r}")
        self.register_buffer("temperature", torch.tensor(float(temperature), dtype=torch.float64))

    @classmethod
    @torch.no_grad()
    def fitted(cls, model: nn.Module, task: NodeTask) -> "TemperatureScaled":
        """Wrap a trained model, in eval mode, with the temperature of the task's validation nodes."""
        answer: LogitDistribution = model.eval()(task.x, task.graph)
        scaled = cls(model, fit_temperature(answer[task.val_mask], task.y[task.val_mask])).eval()
        return scaled.to(task.x.device)

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> LogitDistribution:
        """The model's answer, scaled."""
        answer: LogitDistribution = self.model(x, graph)
        return answer.map(lambda z: z / self.temperature)


@torch.no_grad()
def fit_temperature(distribution: LogitDistribution, y: Tensor) -> float:
    """The temperature in 1/20..20 with the lowest NLL of the predictive distribution.

    For a single logit vector a node the NLL is convex in ``1/T``; over samples it need not be, so that the whole
    range is looked at before the best of it is refined.

    Args:
        distribution: of the validation nodes.
        y: their labels.
    """
    exact = distribution.map(lambda z: z.detach().double())

    def value(log_temperature: float) -> float:
        scale = math.exp(-log_temperature)
        return float(nll(exact.map(lambda z: z * scale).log_predictive(), y))

    grid = [math.log(_LIMIT) * i / 20 for i in range(-20, 21)]
    best = min(range(len(grid)), key=lambda i: value(grid[i]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return math.exp(minimize_scalar(value, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)
