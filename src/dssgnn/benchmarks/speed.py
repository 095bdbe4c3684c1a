"""`dssgnn bench speed`: a training step of ours against the published order of operations, in one run."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dssgnn.benchmarks.published import published_forward
from dssgnn.benchmarks.records import Record, device_name
from dssgnn.expansion import ChaosExpansion
from dssgnn.graph import GraphOperator
from dssgnn.nn import DSSGNN
from dssgnn.training import seeded

__all__ = ["SHAPES", "Shape", "run"]


@dataclass(frozen=True)
class Shape:
    """The size of a graph; its edges are drawn at random with these counts."""

    nodes: int
    edges: int
    features: int
    classes: int

    def draw(self, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Features, undirected edges in both directions, and labels of such a graph."""
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(self.nodes, self.features, generator=generator)
        pairs = torch.randint(self.nodes, (2, self.edges), generator=generator)
        y = torch.randint(self.classes, (self.nodes,), generator=generator)
        return x, torch.cat([pairs, pairs.flip(0)], dim=1), y


# Nodes, undirected edges, features and classes of the graphs that the paper times.
SHAPES = {
    "cora": Shape(2708, 5278, 1433, 7),
    "amazon-ratings": Shape(24492, 93050, 300, 5),
    "ogbn-arxiv": Shape(169343, 1166243, 128, 40),
}

Forward = Callable[[DSSGNN, Tensor, GraphOperator], ChaosExpansion]
FORWARDS: dict[str, Forward] = {"ours": lambda model, x, op: model(x, op), "published": published_forward}


def run(
    shapes: tuple[str, ...] = ("amazon-ratings",),
    orders: tuple[int, ...] = (0, 1, 2, 3),
    device: str = "cpu",
    repeats: int = 5,
) -> Iterator[Record]:
    """Time one full-graph training step (forward, loss, backward, Adam) of both, alternating.

    Hidden 64, two layers, filtered readout, ``K = 4``, ``S = 4``; the two agree in their output before they are
    timed. Yields a record for each shape, order and algorithm: median and fastest step in milliseconds, and the
    MiB kept for the backward pass.
    """
    target = torch.device(device)
    for name in shapes:
        x, edge_index, y = (t.to(target) for t in SHAPES[name].draw())
        operator = GraphOperator.from_edge_index(edge_index, x.size(0))
        for order in orders:
            config = {"hidden": 64, "num_layers": 2, "filter_orders": [4, 4], "chaos_order": order, "S": 4}
            with seeded(0):
                model = DSSGNN(
                    x.size(1),
                    64,
                    SHAPES[name].classes,
                    chaos_order=order,
                    quadrature_size=4,
                    readout="filtered",
                    dropout=0.0,
                ).to(target)
            _check_equal(model, x, operator)
            steps = {k: _make_step(model, forward, x, operator, y) for k, forward in FORWARDS.items()}
            times: dict[str, list[float]] = {k: [] for k in steps}
            for repeat in range(repeats + 1):  # the first of each is a warm-up
                for k, step in steps.items():
                    seconds = _timed(step, target)
                    if repeat:
                        times[k].append(1e3 * seconds)
            for k, forward in FORWARDS.items():
                metrics = {
                    "step_ms": statistics.median(times[k]),
                    "step_ms_best": min(times[k]),
                    "saved_mib": saved_bytes(partial(forward, model, x, operator)) / 2**20,
                }
                yield Record(
                    benchmark="speed",
                    setting=f"{name}, P={order}",
                    method="dss-gnn",
                    variant=k,
                    metrics=metrics,
                    config=config | {"shape": asdict(SHAPES[name]), "repeats": repeats},
                    device=device_name(target),
                    seed=0,
                )


def saved_bytes(forward: Callable[[], object]) -> int:
    """The bytes that autograd keeps for the backward pass of ``forward``, each tensor counted once."""
    seen: dict[tuple[int, int], int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if not isinstance(tensor, nn.Parameter):
            seen[(storage.data_ptr(), storage.nbytes())] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    del result
    return sum(seen.values())


def _make_step(
    model: DSSGNN, forward: Forward, x: Tensor, operator: GraphOperator, y: Tensor
) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(forward(model, x, operator).mean, y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def _timed(step: Callable[[], None], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


@torch.no_grad()
def _check_equal(model: DSSGNN, x: Tensor, operator: GraphOperator) -> None:
    ours, theirs = (forward(model, x, operator).coefficients for forward in FORWARDS.values())
    error = float((ours - theirs).norm() / theirs.norm())
    if not error < 1e-4:
        raise RuntimeError(f"the two algorithms disagree by {error:.2g}; their times cannot be compared")
