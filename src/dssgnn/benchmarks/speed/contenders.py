"""The training steps that are compared: the published order of operations, PyG's networks, ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, models

from dssgnn.benchmarks.speed.published import published_forward
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator, sparse_where_faster
from dssgnn.nn import DSSGNN, Deterministic
from dssgnn.training import Part, TrainingConfig, seeded, training_loss

__all__ = ["CONTENDERS", "Contender", "Network", "Problem", "make_step", "paper_loss"]

TRAIN_SHARE = 0.54
_LOSS = TrainingConfig(objective="mean", chaos_weight=0.01)


@dataclass(frozen=True)
class Problem:
    """What every contender trains: data on a device, and the size of the network.

    Attributes:
        x: features ``[N, F]``.
        operator: the graph.
        y: labels ``[N]``.
        train: the training nodes.
        classes: ``C``.
        chaos_order: ``P``.
        degree: ``K`` of both filters.
        hidden: width.
    """

    x: Tensor
    operator: GraphOperator
    y: Tensor
    train: Part
    classes: int
    chaos_order: int = 2
    degree: int = 4
    hidden: int = 64

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.x.device

    @property
    def config(self) -> dict[str, Any]:
        """What a record needs to repeat it."""
        return {
            "nodes": self.operator.num_nodes,
            "entries": self.operator.matrix.values().numel(),
            "features": self.x.size(1),
            "classes": self.classes,
            "chaos_order": self.chaos_order,
            "degree": self.degree,
            "hidden": self.hidden,
            "num_layers": 2,
            "train_share": TRAIN_SHARE,
        }

    def model(self) -> DSSGNN:
        """The network with the parameters that all its contenders start from; ``S = max(4, P + 1)``."""
        with seeded(0):
            model = DSSGNN(
                self.x.size(1),
                self.hidden,
                self.classes,
                chaos_order=self.chaos_order,
                filter_orders=(self.degree, self.degree),
                readout="filtered",
                dropout=0.0,
            )
        return model.to(self.device)


@dataclass(frozen=True)
class Network:
    """A contender set up on a problem."""

    module: nn.Module
    forward: Callable[[], ChaosExpansion]


@dataclass(frozen=True)
class Contender:
    """How to set up a contender, and what can be asked of it.

    Attributes:
        method: its name in the results file.
        make: sets it up.
        chaotic: whether it is the doubly-spectral network, so that its output can be compared with ours.
        exact: whether that output must agree to rounding.
        capturable: whether a step of it can be recorded as a CUDA graph: nothing is read back from the device.
        cuda_only: whether it makes no sense on a CPU.
    """

    method: str
    make: Callable[[Problem], Network]
    chaotic: bool = True
    exact: bool = True
    capturable: bool = True
    cuda_only: bool = False


def _ours(problem: Problem) -> Network:
    model = problem.model()
    x = sparse_where_faster(problem.x)  # as `DSSClassifier` does
    return Network(model, lambda: model(x, problem.operator))


def _ours_bf16(problem: Problem) -> Network:
    full = _ours(problem)

    def forward() -> ChaosExpansion:
        with torch.autocast(problem.device.type, dtype=torch.bfloat16):
            return full.forward()

    return Network(full.module, forward)


def _published(problem: Problem) -> Network:
    model = problem.model()
    csr = problem.operator.matrix
    rows = torch.arange(csr.size(0), device=csr.device).repeat_interleave(csr.crow_indices().diff())
    indices = torch.stack([rows, csr.col_indices().long()])
    coo = torch.sparse_coo_tensor(indices, csr.values(), csr.shape, is_coalesced=True, check_invariants=False)
    return Network(model, lambda: published_forward(model, problem.x, _Symmetric(coo)))


class _Symmetric:
    """A symmetric sparse matrix. Torch's own backward pass would sort its transpose anew at every product."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    def __matmul__(self, h: Tensor) -> Tensor:
        return _SymmetricProduct.apply(self.matrix, h)  # type: ignore[no-untyped-call, no-any-return]


class _SymmetricProduct(torch.autograd.Function):
    @staticmethod
    def forward(matrix: Tensor, h: Tensor) -> Tensor:
        out: Tensor = torch.sparse.mm(matrix, h)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.matrix = inputs[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, torch.sparse.mm(ctx.matrix, grad)


def _published_csr(problem: Problem) -> Network:
    model = problem.model()
    return Network(model, lambda: published_forward(model, problem.x, problem.operator))


class _ChebStack(nn.Module):
    """Two ``ChebConv`` with a relu between them."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, terms: int) -> None:
        super().__init__()
        self.first = ChebConv(in_channels, hidden, terms, normalization="sym")
        self.second = ChebConv(hidden, out_channels, terms, normalization="sym")
        self.register_buffer("lambda_max", torch.tensor(2.0))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index, lambda_max=self.lambda_max).relu()
        logits: Tensor = self.second(h, edge_index, lambda_max=self.lambda_max)
        return logits


def _pyg(make: Callable[[Problem], nn.Module]) -> Callable[[Problem], Network]:
    def network(problem: Problem) -> Network:
        with seeded(0):
            module = Deterministic(make(problem)).to(problem.device)
        return Network(module, lambda: module(problem.x, problem.operator))

    return network


# PyG's layers look for self-loops with a boolean mask in every call: that reads a size back from the device, which no
# CUDA graph can hold.
CONTENDERS = {
    "published": Contender("dss-gnn", _published),
    "published-csr": Contender("dss-gnn", _published_csr),
    "chebconv": Contender(
        "chebnet",
        _pyg(lambda p: _ChebStack(p.x.size(1), p.hidden, p.classes, p.degree + 1)),
        chaotic=False,
        capturable=False,
    ),
    "gcn": Contender(
        "gcn",
        _pyg(lambda p: models.GCN(p.x.size(1), p.hidden, 2, p.classes)),
        chaotic=False,
        capturable=False,
    ),
    "ours": Contender("dss-gnn", _ours),
    "ours-bf16": Contender("dss-gnn", _ours_bf16, exact=False, cuda_only=True),
}


def paper_loss(expansion: ChaosExpansion, problem: Problem) -> Tensor:
    """Eq. loss_base: cross-entropy of the mean and 0.01 of the chaos energy, on the training nodes."""
    return training_loss(expansion, problem.y, problem.train, _LOSS)


def make_step(network: Network, problem: Problem) -> Callable[[], None]:
    """One training step: forward, loss, backward, Adam."""
    cuda = problem.device.type == "cuda"
    optimizer = torch.optim.Adam(network.module.parameters(), lr=1e-3, fused=True, capturable=cuda)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        paper_loss(network.forward(), problem).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step
