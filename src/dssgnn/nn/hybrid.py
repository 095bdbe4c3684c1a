"""`DSSHybrid`: a doubly-spectral residual beside any encoder."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator, OperatorCache, SparseFeatures
from dssgnn.nn.features import suited_features
from dssgnn.nn.network import DSSGNN
from dssgnn.validation import FeatureCheck, check_choice, check_count

__all__ = ["DSSHybrid", "HybridExpansion"]

Regularized = Literal["branch", "output"]


class HybridExpansion(ChaosExpansion):
    """The combined logits of a hybrid; remembers its branch, which alone is regularised."""

    def __init__(self, coefficients: Tensor, branch: ChaosExpansion) -> None:
        super().__init__(coefficients, branch.quadrature_size)
        self.branch = branch

    @property
    def penalized_energy(self) -> Tensor:
        """The chaos energy ``[N]`` of the branch's own coefficients ``Z_n``, not of ``g Z_n``."""
        return self.branch.chaos_energy

    def map(self, function: Callable[[Tensor], Tensor]) -> "HybridExpansion":
        """Apply ``function`` to the combined and to the branch's coefficients."""
        return HybridExpansion(function(self.coefficients), self.branch.map(function))


class DSSHybrid(nn.Module):
    r"""Any encoder with a doubly-spectral residual branch (section 3.4).

    .. math:: z_0 = \mathrm{base}(x, E) + g\, Z_0, \qquad z_n = g\, Z_n \quad (n \ge 1)

    For the first ``warmup_epochs`` epochs the branch is not evaluated and neither its parameters nor ``g``
    receive a gradient; the output is then the base's, an expansion of order 0. So is a new model's: the
    training loop announces each epoch with `start_epoch`, and a loop of your own must. The epoch is a buffer, so
    a checkpoint knows its phase.

    Args:
        base: ``base(x, edge_index) -> logits [N, C]``.
        branch: a `DSSGNN` with the same classes.
        residual_scale: where ``g`` starts.
        warmup_epochs: how long the base trains alone.
        regularize: the energy of the ``"branch"`` (the paper), or of the ``"output"``, which is the branch's times
            :math:`g^2` (the authors' code): much the weaker where ``g`` is small.

    Example:
        >>> from dssgnn.nn import make_encoder
        >>> hybrid = DSSHybrid(make_encoder("gcn", 5, 16, 3), DSSGNN(5, 16, 3), warmup_epochs=1)
        >>> x, edges = torch.randn(2, 5), torch.tensor([[0, 1], [1, 0]])
        >>> hybrid(x, edges).chaos_order
        0
        >>> hybrid.start_epoch(1)
        >>> hybrid(x, edges).chaos_order
        2
    """

    sparse_features = True  # also takes `SparseFeatures`; a base that does not is given them dense
    epoch: Tensor

    def __init__(
        self,
        base: nn.Module,
        branch: DSSGNN,
        *,
        residual_scale: float = 0.1,
        warmup_epochs: int = 50,
        regularize: Regularized = "branch",
    ) -> None:
        super().__init__()
        check_choice(regularize, Regularized, "regularize")
        self.regularize = regularize
        self.base = base
        self.branch = branch
        self._residual_start = residual_scale
        self.residual_scale = nn.Parameter(torch.tensor(float(residual_scale)))
        self.warmup_epochs = check_count(warmup_epochs, "warmup_epochs")
        self.register_buffer("epoch", torch.zeros((), dtype=torch.int64))
        self._now = 0  # the buffer's value: reading it from a GPU would wait for the GPU
        self.register_load_state_dict_post_hook(DSSHybrid._read_epoch)  # type: ignore[no-untyped-call]
        self._operator = OperatorCache()
        self._check = FeatureCheck(branch.in_channels)

    @property
    def warming_up(self) -> bool:
        """Whether the base still trains alone."""
        return self._now < self.warmup_epochs

    def _read_epoch(self, _: object) -> None:
        self._now = int(self.epoch)

    @torch.no_grad()
    def start_epoch(self, epoch: int) -> None:
        """Tell the model which epoch (from 0) begins."""
        self._now = epoch
        self.epoch.fill_(epoch)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Start again, in the warm-up phase."""
        self.base.reset_parameters()  # type: ignore[operator]
        self.branch.reset_parameters()
        self.residual_scale.fill_(self._residual_start)
        self.start_epoch(0)

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> ChaosExpansion:
        """Expand the combined logits; the base is given the graph's edges as they were read."""
        operator = self._operator(graph, x)
        self._check(x, operator.num_nodes)
        logits = self.base(suited_features(self.base, x), operator.edge_index)
        if self.warming_up:
            return ChaosExpansion(logits[:, None], self.branch.quadrature_size)
        branch = self.branch(x, operator)
        if branch.mean.shape != logits.shape:
            got, want = list(logits.shape), list(branch.mean.shape)
            raise InputError(f"the base returned logits {got}, the branch expects {want}")
        scaled = self.residual_scale * branch.coefficients
        combined = torch.cat([logits[:, None] + scaled[:, :1], scaled[:, 1:]], dim=1)
        if self.regularize == "output":
            return ChaosExpansion(combined, branch.quadrature_size)
        return HybridExpansion(combined, branch)
