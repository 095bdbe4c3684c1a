"""Models on `SparseFeatures`: the same answers, gradients and masks as on the dense matrix."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.nn import DSSGNN, Deterministic, DSSHybrid, make_encoder
from dssgnn.nn.dropout import drawing_from
from dssgnn.training import NodeTask, seeded

NODES, WORDS = 40, 30


@pytest.fixture
def graph() -> GraphOperator:
    generator = torch.Generator().manual_seed(1)
    return GraphOperator.from_edge_index(
        torch.randint(NODES, (2, 90), generator=generator), NODES, dtype=torch.float64
    )


@pytest.fixture
def x() -> Tensor:
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(NODES, WORDS, generator=generator, dtype=torch.float64)
    return torch.where(torch.rand(NODES, WORDS, generator=generator) < 0.1, x, 0.0)


def network(**options: Any) -> DSSGNN:
    with seeded(0):
        return DSSGNN(WORDS, 8, 3, **({"dropout": 0.0} | options)).double()


def hybrid() -> DSSHybrid:
    with seeded(0):
        base = make_encoder("gcn", WORDS, 8, 3, dropout=0.0)
        model = DSSHybrid(base, DSSGNN(WORDS, 8, 3, dropout=0.0), warmup_epochs=1).double()
    model.start_epoch(1)
    return model


def encoder(name: str) -> Deterministic:
    with seeded(0):
        return Deterministic(make_encoder(name, WORDS, 8, 3, dropout=0.0)).double()


MODELS = {
    "separate lift": network,
    "shared lift": lambda: network(lift="shared"),
    "residual": lambda: network(residual=True),
    "first": lambda: network(propagation="first", branches="concat"),
    "hybrid": hybrid,
    "gcn": lambda: encoder("gcn"),
    "sage": lambda: encoder("sage"),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_output_and_gradients_are_the_dense_ones(
    name: str, training: bool, x: Tensor, graph: GraphOperator
) -> None:
    model = MODELS[name]().train(training)
    results = []
    for features in (x, SparseFeatures.from_dense(x)):
        coefficients = model(features, graph).coefficients
        outer = torch.linspace(-1, 1, coefficients.numel(), dtype=torch.float64).view_as(coefficients)
        grads = torch.autograd.grad(coefficients, list(model.parameters()), outer, allow_unused=True)
        results.append([coefficients, *(g for g in grads if g is not None)])
    assert len(results[0]) == len(results[1])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("base", "taken"), [("gcn", SparseFeatures), ("sage", Tensor)])
def test_a_hybrid_gives_its_base_what_it_takes(
    base: str, taken: type, x: Tensor, graph: GraphOperator
) -> None:
    model = DSSHybrid(make_encoder(base, WORDS, 8, 3).double(), network())
    seen: list[object] = []
    model.base.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model(SparseFeatures.from_dense(x), graph)
    assert isinstance(seen[0], taken)


def test_input_dropout_keeps_zeros_and_scales_the_rest(x: Tensor, graph: GraphOperator) -> None:
    model = network(input_dropout=0.25).train()
    seen: list[SparseFeatures] = []
    model.lift.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    features = SparseFeatures.from_dense(x)
    with seeded(0), torch.no_grad():
        for _ in range(200):
            model(features, graph)
    masks = torch.stack([s.values for s in seen]) / features.values
    assert all(s.pattern is features.pattern for s in seen)
    kept = masks > 0
    torch.testing.assert_close(masks[kept], torch.full_like(masks[kept], 1 / 0.75))
    assert not masks[~kept].any()
    # 200 draws of some 120 values: the share kept is 0.75 with a standard error of 0.003, and so the mean is 1.
    assert float(kept.double().mean()) == pytest.approx(0.75, abs=0.012)
    assert float(masks.mean()) == pytest.approx(1.0, abs=0.016)
    assert float(masks.var()) == pytest.approx(0.25 / 0.75, abs=0.016)


def test_the_same_seed_gives_the_same_bits(x: Tensor, graph: GraphOperator) -> None:
    model, features = network(input_dropout=0.5, dropout=0.5).train(), SparseFeatures.from_dense(x)
    runs = []
    for _ in range(2):
        with seeded(3):
            runs.append(model(features, graph).coefficients)
    assert torch.equal(*runs)


def test_bad_features_are_one_sentence(x: Tensor, graph: GraphOperator) -> None:
    model = network()
    bad = x.clone()
    bad[7, 4] = float("nan")
    with pytest.raises(InputError, match=r"x\[7, 4\] is nan, expected finite features"):
        model(SparseFeatures.from_dense(bad), graph)
    with pytest.raises(InputError, match="x has 29 features, but the model was made for 30"):
        model(SparseFeatures.from_dense(x[:, 1:]), graph)
    with pytest.raises(InputError, match=r"x is torch\.float32, but the model is torch\.float64"):
        model(SparseFeatures.from_dense(x.float()), graph)


def task(x: Tensor | SparseFeatures, graph: GraphOperator) -> NodeTask:
    train = torch.arange(NODES) < 20
    return NodeTask(x, graph, torch.arange(NODES) % 3, train, ~train, 3)


def test_a_task_holds_them(x: Tensor, graph: GraphOperator) -> None:
    sparse = task(SparseFeatures.from_dense(x), graph)
    assert sparse.to("cpu").fingerprint() == sparse.fingerprint()
    other = x.clone()
    other[x.nonzero()[0, 0], x.nonzero()[0, 1]] += 1
    assert task(SparseFeatures.from_dense(other), graph).fingerprint() != sparse.fingerprint()
    with pytest.raises(InputError, match="x has 39 rows, but the graph has 40 nodes"):
        dataclasses.replace(sparse, x=SparseFeatures.from_dense(x[1:]))


def test_a_task_suits_itself_to_the_model(x: Tensor, graph: GraphOperator) -> None:
    few = torch.where(torch.arange(WORDS) == 0, x, 0.0)
    assert isinstance(task(few, graph).suited_to(network()).x, SparseFeatures)
    assert isinstance(task(few, graph).suited_to(hybrid()).x, SparseFeatures)
    for name, taken in (("gcn", True), ("sage", False)):
        encoder = Deterministic(make_encoder(name, WORDS, 8, 3))
        assert isinstance(task(few, graph).suited_to(encoder).x, SparseFeatures) == taken
    dense = x + 1
    assert task(dense, graph).suited_to(network()).x is dense


def test_a_population_draws_the_masks_of_its_members(x: Tensor, graph: GraphOperator) -> None:
    models = [network(input_dropout=0.5).train() for _ in range(3)]
    for i, model in enumerate(models):
        with seeded(i):
            model.reset_parameters()
    features = SparseFeatures.from_dense(x)
    parameters, buffers = torch.func.stack_module_state(models)
    generators = [torch.Generator().manual_seed(i) for i in range(3)]
    numbers = torch.arange(3)

    def member(own: dict[str, Tensor], number: Tensor) -> Tensor:
        with drawing_from(generators, number):
            return torch.func.functional_call(models[0], (own, buffers), (features, graph)).coefficients

    together = torch.vmap(member)(parameters, numbers)
    together.square().sum().backward()
    for i, model in enumerate(models):
        with seeded(i):
            alone = model(features, graph).coefficients
        torch.testing.assert_close(together[i], alone, rtol=1e-11, atol=1e-11)
        (want,) = torch.autograd.grad(alone.square().sum(), model.lift.weight)
        torch.testing.assert_close(parameters["lift.weight"].grad[i], want, rtol=1e-11, atol=1e-11)
