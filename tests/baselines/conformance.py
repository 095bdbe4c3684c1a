"""What every encoder must do, whatever its equation; a test class inherits `Conformance` and names its encoder."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.graph import SparseFeatures
from dssgnn.nn import Deterministic
from dssgnn.training import NodeTask, ParameterGroup, TrainingConfig, fit, fit_population, seeded

F64 = torch.float64
NODES, FEATURES, CLASSES = 12, 5, 3


def edges(kind: str = "directed", seed: int = 0) -> Tensor:
    """Edges among the first ten of twelve nodes: the last two are isolated, and some loops are listed."""
    rng = torch.Generator().manual_seed(seed)
    adjacency = torch.rand(10, 10, generator=rng) < 0.25
    adjacency.fill_diagonal_(False)
    adjacency[[0, 3], [0, 3]] = True
    if kind == "undirected":
        adjacency |= adjacency.T.clone()
    return adjacency.nonzero().T.contiguous()


def features(seed: int = 1, nodes: int = NODES, channels: int = FEATURES) -> Tensor:
    return torch.randn(nodes, channels, generator=torch.Generator().manual_seed(seed), dtype=F64)


@torch.no_grad()
def randomize(module: nn.Module, seed: int = 0) -> nn.Module:
    """Draw every parameter anew: none is at a special value."""
    rng = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.copy_(0.5 * torch.randn(parameter.shape, generator=rng, dtype=F64))
    return module


def outer(output: Tensor) -> Tensor:
    """Something to contract an output with that treats no two entries alike."""
    return torch.linspace(-1, 2, output.numel(), dtype=output.dtype).view_as(output).cos()


class Conformance:
    """Shapes, symmetries, types, gradients, seeds, sparse features and populations."""

    encoder: ClassVar[Callable[..., nn.Module]]
    options: ClassVar[dict[str, Any]] = {}
    rates: ClassVar[tuple[str, ...]] = ("dropout",)
    optimizer: ClassVar[str] = "adam"  # sgd where a norm leaves directions that only rounding moves

    def make(self, seed: int = 0, rate: float = 0.0, channels: int = FEATURES) -> nn.Module:
        with seeded(seed):
            dropped = dict.fromkeys(self.rates, rate)
            return type(self).encoder(channels, 8, CLASSES, **dropped, **self.options).double()

    def random(self) -> nn.Module:
        return randomize(self.make()).eval()

    @pytest.mark.parametrize("kind", ["directed", "undirected"])
    def test_shape_and_permutation(self, kind):
        model, x, edge_index = self.random(), features(), edges(kind)
        logits = model(x, edge_index)
        assert logits.shape == (NODES, CLASSES)
        assert logits.dtype == F64
        order = torch.randperm(NODES, generator=torch.Generator().manual_seed(2))
        place = torch.argsort(order)  # where every node went
        torch.testing.assert_close(model(x[order], place[edge_index]), logits[order], rtol=0, atol=1e-11)
        shuffled = edge_index[:, torch.randperm(edge_index.size(1))]
        torch.testing.assert_close(model(x, shuffled), logits, rtol=0, atol=1e-11)

    def test_the_graph_matters(self):
        model, x = self.random(), features()
        assert (model(x, edges()) - model(x, edges(seed=5))).abs().max() > 1e-3

    def test_isolated_nodes_see_themselves_alone(self):
        """They answer as they would on a graph without edges, and others' features do not reach them."""
        model, x = self.random(), features()
        logits = model(x, edges())
        none = torch.empty(2, 0, dtype=torch.int64)
        torch.testing.assert_close(logits[10:], model(x, none)[10:], rtol=0, atol=1e-11)
        torch.testing.assert_close(logits[10:], model(x[10:], none), rtol=0, atol=1e-11)
        assert logits.isfinite().all()

    def test_disjoint_unions(self):
        model, x, other = self.random(), features(), features(seed=4)
        both = torch.cat([edges(), edges(seed=3) + NODES], dim=1)
        together = model(torch.cat([x, other]), both)
        apart = torch.cat([model(x, edges()), model(other, edges(seed=3))])
        torch.testing.assert_close(together, apart, rtol=0, atol=1e-11)

    def test_gradients_reach_every_parameter(self):
        model = self.random().train()
        logits = model(features(), edges())
        (logits * outer(logits)).sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name

    def test_gradients_are_the_slopes(self):
        model, x = self.random(), features().requires_grad_()
        small = edges()[:, ::3].contiguous()
        names = [name for name, _ in model.named_parameters()]

        def function(x, *parameters):
            return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x, small))

        torch.autograd.gradcheck(function, (x, *model.parameters()), fast_mode=True)

    def test_single_precision(self):
        model, x = self.random(), features()
        expected = model(x, edges())
        got = model.float()(x.float(), edges())
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)

    def test_seeds(self):
        first, same, other = (self.make(seed).state_dict() for seed in (0, 0, 1))
        assert all(torch.equal(first[name], same[name]) for name in first)
        assert any(not torch.equal(first[name], other[name]) for name in first)
        states = []
        for model in (randomize(self.make()), self.make(seed=1)):
            with seeded(0):
                model.reset_parameters()
            states.append(model.state_dict())
        assert all(torch.equal(states[0][name], states[1][name]) for name in first)

    def test_evaluation_is_deterministic_and_training_is_not(self):
        model, x = randomize(self.make(rate=0.5)).eval(), features()
        assert torch.equal(model(x, edges()), model(x, edges()))
        model.train()
        assert not torch.equal(model(x, edges()), model(x, edges()))
        with seeded(3):
            first = model(x, edges())
        with seeded(3):
            assert torch.equal(model(x, edges()), first)

    def test_a_modified_edge_list_is_read_again(self):
        model, x, edge_index = self.random(), features(), edges()
        before = model(x, edge_index)
        edge_index[0] = edge_index[0].roll(1)
        assert (model(x, edge_index) - before).abs().max() > 1e-3
        assert torch.equal(model(x, edge_index), model(x, edge_index.clone()))

    def test_sparse_features(self):
        model = self.random().train()
        x = torch.where(features(seed=6) > 0.5, features(), 0.0)
        results = []
        for given in (x, SparseFeatures.from_dense(x)):
            logits = model(given, edges())
            grads = torch.autograd.grad(logits, list(model.parameters()), outer(logits))
            results.append([logits, *grads])
        for want, got in zip(*results, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)

    @pytest.mark.parametrize(
        ("way", "rate", "sparse"),
        [("block", 0.0, False), ("block", 0.4, False), ("block", 0.4, True), ("threads", 0.4, False)],
    )
    def test_a_population_is_its_members(self, way, rate, sparse):
        data = minesweeper(5, 5, seed=1)
        data.x = data.x.double()
        task = NodeTask.from_data(data, CLASSES)
        if sparse:
            task = replace(task, x=SparseFeatures.from_dense(task.x))
        config = TrainingConfig(epochs=5, patience=None, lr=0.02, optimizer=self.optimizer)
        configs = [replace(config, seed=seed) for seed in range(3)]

        def members():
            return [Deterministic(self.make(seed, rate, channels=7)) for seed in range(3)]

        alone, together = members(), members()
        expected = [fit(model, task, c) for model, c in zip(alone, configs, strict=True)]
        results = fit_population(together, [task] * 3, configs, way=way)
        for want, got, model, member in zip(expected, results, alone, together, strict=True):
            assert got.history[-1] == pytest.approx(want.history[-1], abs=1e-8)
            for name, value in model.state_dict().items():
                torch.testing.assert_close(member.state_dict()[name], value, rtol=0, atol=1e-8, msg=name)
        assert results[0].history[-1] != results[1].history[-1]

    def test_bad_arguments(self):
        make = type(self).encoder
        for sizes in ((0, 8, 3), (5, 0, 3), (5, 8, 0), (5, 8.0, 3)):
            with pytest.raises(InputError, match="must be an integer >= 1"):
                make(*sizes, **self.options)
        for name in self.rates:
            with pytest.raises(InputError, match=rf"{name} must be in \[0, 1\), got 1.5"):
                make(5, 8, 3, **{name: 1.5}, **self.options)
        model = self.make()
        with pytest.raises(InputError, match="x has 4 features, but the model was made for 5"):
            model(features(channels=4), edges())
        with pytest.raises(InputError, match=r"x must have shape \[N, features\], got \[5\]"):
            model(features()[0], edges())
        with pytest.raises(InputError, match="edge_index names node 9, but there are 4 nodes"):
            model(features(nodes=4), edges())

    def groups(self, *patterns: str) -> None:
        """Check that each pattern finds a parameter of its own."""
        task = NodeTask.from_data(minesweeper(4, 4))
        groups = tuple(ParameterGroup(pattern, 0.0) for pattern in patterns)
        with seeded(0):
            model = Deterministic(type(self).encoder(7, 8, 2, **self.options))
        before = {name: value.clone() for name, value in model.state_dict().items()}
        fit(model, task, TrainingConfig(epochs=2, monitor="nll", groups=groups, lr=0.1))
        moved = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
        assert moved
        still = before.keys() - moved
        for pattern in patterns:
            assert any(name.endswith(pattern.lstrip("*")) for name in still), pattern
