"""What every system returns and every readout reads: a distribution over each node's logits."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import Self

from dssgnn.errors import InputError
from dssgnn.spectral import hermite_basis, projection_tables, resolve_size

__all__ = ["ChaosExpansion", "LogitDistribution", "LogitSamples"]


class LogitDistribution(ABC):
    """Logits as random variables; the readouts that every system shares.

    A kind of distribution says what its `mean` is and which weighted logits it is averaged over; scores, metrics,
    the page and the benchmarks ask for no more.
    """

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """The mean logit ``[N, C]``."""

    @property
    @abstractmethod
    def chaos_energy(self) -> Tensor:
        """The trace of the logits' covariance, ``[N]``."""

    @abstractmethod
    def log_softmax(self) -> tuple[Tensor, Tensor]:
        """Log-probabilities ``[S, N, C]`` at points of the distribution, and the points' log-weights ``[S]``."""

    @abstractmethod
    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """The same with ``function`` applied to its numbers ``[N, ...]`` (a cast, a move, a choice of rows)."""

    @property
    def num_nodes(self) -> int:
        """``N``."""
        return self.mean.size(0)

    @property
    def num_classes(self) -> int:
        """``C``."""
        return self.mean.size(1)

    @property
    def chaos_order(self) -> int:
        """``P``; 0 where there is no chaos axis."""
        return 0

    @property
    def penalized_energy(self) -> Tensor:
        """The energy ``[N]`` that the regulariser of eq. loss_base acts on."""
        return self.chaos_energy

    def log_predictive(self) -> Tensor:
        """The logarithm of `predictive`, ``[N, C]``, exact where a probability is too small to hold."""
        values, log_weights = self.log_softmax()
        return torch.logsumexp(values + log_weights[:, None, None], dim=0)

    def predictive(self) -> Tensor:
        r"""The distribution that users see: :math:`\bar p_i = \sum_s \mu_s\,\mathrm{softmax}(z_i^{(s)})`.

        Eq. predictive_average; ``[N, C]``, on the simplex because the weights are positive.
        """
        values, log_weights = self.log_softmax()
        return torch.einsum("s,snc->nc", log_weights.exp(), values.exp())

    def energy(self, temperature: float = 1.0) -> Tensor:
        r"""The out-of-distribution score :math:`-T \log\sum_c \exp(Z_{i,0,c}/T)` (eq. energy_score), ``[N]``."""
        if not temperature > 0:
            raise InputError(f"temperature must be positive, got {temperature!r}")
        return -temperature * torch.logsumexp(self.mean / temperature, dim=-1)

    def entropy(self) -> Tensor:
        """The entropy of the predictive distribution in nats, ``[N]``."""
        return _entropy(self.log_predictive()).clamp_min(0)

    def mutual_information(self) -> Tensor:
        """Entropy of the mean minus mean of the entropies over the points, ``[N]``, never negative."""
        values, log_weights = self.log_softmax()
        within = torch.einsum("s,sn->n", log_weights.exp(), _entropy(values))
        mean = torch.logsumexp(values + log_weights[:, None, None], dim=0)
        return (_entropy(mean) - within).clamp_min(0)

    def __getitem__(self, nodes: Tensor | slice | int) -> Self:
        """The distribution of some nodes, by a mask, indices, a slice or one index."""
        return self.map(lambda z: z[[nodes]] if isinstance(nodes, int) else z[nodes])

    def __len__(self) -> int:
        return self.num_nodes

    def detach(self) -> Self:
        """The same without its gradients."""
        return self.map(Tensor.detach)

    def cpu(self) -> Self:
        """The same in the computer's own memory."""
        return self.map(Tensor.cpu)


class ChaosExpansion(LogitDistribution):
    r"""Logits as random variables, :math:`z_i(\omega) = \sum_{n=0}^P Z_{i,n} \Psi_n(\omega)`.

    The one representation that every readout of the paper's section 3.2 is taken from. A deterministic
    classifier is the expansion of order 0. Every readout is deterministic and differentiable, and finite for
    logits up to a tenth of what their type can hold (second moments up to its square root).

    Args:
        coefficients: ``Z [N, P+1, C]``.
        quadrature_size: nodes ``S`` of the rule that the readouts average over; ``max(4, P+1)`` where it is
            not given.

    Raises:
        InputError: if the coefficients are not ``[N, P+1, C]``.

    Example:
        >>> z = ChaosExpansion(torch.tensor([[[2.0, 0.0], [1.0, 0.0]]]))
        >>> z
        ChaosExpansion(num_nodes=1, chaos_order=1, num_classes=2, quadrature_size=4)
        >>> z.mean, z.variance
        (tensor([[2., 0.]]), tensor([[1., 0.]]))
        >>> z.predictive()
        tensor([[0.8447, 0.1553]])
    """

    def __init__(self, coefficients: Tensor, quadrature_size: int | None = None) -> None:
        if not isinstance(coefficients, Tensor):
            raise InputError(
                f"coefficients must be a tensor of shape [N, P+1, C], got {type(coefficients).__name__}"
            )
        if not coefficients.is_floating_point():
            raise InputError(f"coefficients must be floating point, got {coefficients.dtype}")
        if coefficients.dim() != 3 or coefficients.size(1) < 1 or coefficients.size(2) < 1:
            raise InputError(f"coefficients must have shape [N, P+1, C], got {list(coefficients.shape)}")
        # Layers may run in half precision; what is read from their output must not.
        half = coefficients.dtype in (torch.bfloat16, torch.float16)
        self.coefficients = coefficients.float() if half else coefficients
        # A model with a small rule has warned once; its expansions, one an epoch, do not.
        self.quadrature_size = resolve_size(quadrature_size, self.chaos_order, warn=False)

    @property
    def chaos_order(self) -> int:
        """``P``."""
        return self.coefficients.size(1) - 1

    @property
    def mean(self) -> Tensor:
        """The mean logit ``Z_0 [N, C]``."""
        return self.coefficients[:, 0]

    @property
    def variance(self) -> Tensor:
        """The variance of each logit ``[N, C]``, the diagonal of the covariance."""
        return self.coefficients[:, 1:].square().sum(dim=1)

    @property
    def covariance(self) -> Tensor:
        r""":math:`\Sigma_{z_i} = \sum_{n \ge 1} Z_{i,n} Z_{i,n}^T` (eq. logit_covariance), ``[N, C, C]``."""
        higher = self.coefficients[:, 1:]
        return higher.transpose(1, 2) @ higher

    @property
    def chaos_energy(self) -> Tensor:
        r""":math:`\mathcal{E}_i = \mathrm{tr}\,\Sigma_{z_i}` (eq. logit_covariance), ``[N]``."""
        return self.coefficients[:, 1:].square().sum(dim=(1, 2))

    def at(self, omega: Tensor) -> Tensor:
        """The logits ``[len(omega), N, C]`` at points of the Gaussian factor."""
        basis = hermite_basis(omega.to(self.coefficients), self.chaos_order)  # [W, P+1]
        return self._combine(basis)

    def _combine(self, basis: Tensor) -> Tensor:
        n, q, c = self.coefficients.shape
        flat = self.coefficients.transpose(0, 1).reshape(q, n * c)
        return (basis @ flat).view(*basis.shape[:-1], n, c)

    def log_softmax(self) -> tuple[Tensor, Tensor]:
        """Log-probabilities ``[S, N, C]`` at the quadrature nodes, and the rule's log-weights ``[S]``."""
        z, size = self.coefficients, self.quadrature_size
        evaluation, _ = projection_tables(self.chaos_order, size, z.dtype, z.device)
        # In float64 a weight of a large rule does not underflow, as it would in float32.
        _, weights = projection_tables(0, size, torch.float64, z.device)
        return self._combine(evaluation).log_softmax(dim=-1), weights[0].log().to(z.dtype)

    def map(self, function: Callable[[Tensor], Tensor]) -> "ChaosExpansion":
        """The expansion with ``function`` applied to its coefficients (a cast, a move, a choice of rows)."""
        return ChaosExpansion(function(self.coefficients), self.quadrature_size)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_nodes={self.num_nodes}, chaos_order={self.chaos_order}, "
            f"num_classes={self.num_classes}, quadrature_size={self.quadrature_size})"
        )


class LogitSamples(LogitDistribution):
    """Logits as equally likely samples: Monte-Carlo dropout, ensembles, anchors.

    Args:
        logits: ``[N, S, C]``.

    Example:
        >>> z = LogitSamples(torch.tensor([[[2.0, 0.0], [0.0, 0.0]]]))
        >>> z
        LogitSamples(num_nodes=1, num_samples=2, num_classes=2)
        >>> z.mean, z.chaos_energy
        (tensor([[1., 0.]]), tensor([1.]))
        >>> z.predictive()
        tensor([[0.6904, 0.3096]])
    """

    def __init__(self, logits: Tensor) -> None:
        if not isinstance(logits, Tensor) or logits.dim() != 3 or 0 in logits.shape[1:]:
            got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError(f"sampled logits must be a tensor of shape [N, S, C], got {got}")
        if not logits.is_floating_point():
            raise InputError(f"sampled logits must be floating point, got {logits.dtype}")
        half = logits.dtype in (torch.bfloat16, torch.float16)
        self.logits = logits.float() if half else logits

    @property
    def num_samples(self) -> int:
        """``S``."""
        return self.logits.size(1)

    @property
    def mean(self) -> Tensor:
        """The mean of the sampled logits ``[N, C]``."""
        return self.logits.mean(dim=1)

    @property
    def chaos_energy(self) -> Tensor:
        """The trace of the samples' covariance, ``[N]``."""
        return self.logits.var(dim=1, correction=0).sum(dim=-1)

    def log_softmax(self) -> tuple[Tensor, Tensor]:
        """Log-probabilities ``[S, N, C]`` of the samples, and their equal log-weights ``[S]``."""
        weights = self.logits.new_full((self.num_samples,), -math.log(self.num_samples))
        return self.logits.transpose(0, 1).log_softmax(dim=-1), weights

    def map(self, function: Callable[[Tensor], Tensor]) -> "LogitSamples":
        """The samples with ``function`` applied to them ``[N, S, C]``."""
        return LogitSamples(function(self.logits))

    def __repr__(self) -> str:
        n, s, c = self.logits.shape
        return f"{type(self).__name__}(num_nodes={n}, num_samples={s}, num_classes={c})"


def _entropy(log_probabilities: Tensor) -> Tensor:
    # From logarithms: p log p and its slope are 0 where p underflows; entr(p) has slope infinity there.
    finite = log_probabilities.clamp_min(torch.finfo(log_probabilities.dtype).min)
    return -(finite.exp() * finite).sum(dim=-1)
