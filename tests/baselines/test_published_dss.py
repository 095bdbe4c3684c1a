"""The authors' channelwise models against a dense float64 reference, and each departure from the paper by name."""

import gc
import math
import weakref
from dataclasses import replace

import pytest
import torch

from dssgnn.baselines.published_dss import PublishedDSS
from dssgnn.errors import InputError
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.graph.pair import published_operators
from dssgnn.training import (
    NodeTask,
    ParameterGroup,
    Part,
    TrainingConfig,
    fit,
    fit_population,
    seeded,
    training_loss,
)

N, F, C = 9, 6, 3
# Directed, with a listed loop at 2 and node 8 without neighbours; the identity comes on top.
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 0], [1, 2, 3, 2, 0, 4, 1, 6, 5, 3, 7]])
WITH_IDENTITY = torch.cat([EDGES, torch.arange(N).expand(2, -1)], dim=1)
EVERY = {"propagation": "every", "num_layers": 3}
SUM = {"propagation": "first", "branches": "sum"}
CONCAT = {"propagation": "first", "branches": "concat", "num_layers": 3}
KINDS = pytest.mark.parametrize("kind", [EVERY, SUM, CONCAT], ids=["every", "sum", "concat"])


def features(seed=0, width=F):
    x = torch.randn(N, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x * (x > -0.3)


def operator(direction="out"):
    return GraphOperator.from_edge_index(
        WITH_IDENTITY,
        N,
        direction=direction,
        self_loops="keep",
        dtype=torch.float64,
    )


def model(seed=0, moved=True, in_channels=F, **options):
    """With weights of mean 0, as those of the start leave so small a network dead; the rest is moved off its start."""
    with seeded(seed):
        made = PublishedDSS(in_channels, 5, C, **{"filter_orders": (3, 2), "dropout": 0.0} | options).double()
        with torch.no_grad():
            for name, parameter in made.layers.named_parameters():
                if name.endswith("weight"):
                    parameter.normal_()
                elif moved:
                    parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def dense_adjacency():
    a = torch.zeros(N, N, dtype=torch.float64)
    for source, target in WITH_IDENTITY.T.tolist():
        a[source, target] += 1
    return a


def dense_operators(normalization, eta=-0.3):
    """Low and high, entry by entry as the notes have them: the sums of columns stand left, those of rows right."""
    a = dense_adjacency()
    low, high = torch.zeros_like(a), torch.eye(N, dtype=torch.float64)
    for i in range(N):
        for j in range(N):
            column, row = a[:, i].sum(), a[j].sum()
            if normalization == "rw":
                low[i, j] = a[i, j] / row
                high[i, j] -= a[i, j] / row
            else:
                low[i, j] = column**-0.5 * a[i, j] * row**-0.5
                high[i, j] -= column**eta * a[i, j] * row**eta
    return low, high


def polynomial(matrix, coefficients, x):
    total, power = x, x
    for c in coefficients:
        power = matrix @ power
        total = total + c * power
    return total


def reference(made, x, normalization):
    """Order after order, nothing shared, nothing commuted."""
    p = dict(made.named_parameters())
    low, high = dense_operators(normalization, made.eta)
    depth = len(made.layers)
    out = []
    for n in range(made.chaos_order + 1):
        h = x
        for i in range(depth):
            own = {k.split(".")[-1]: v for k, v in p.items() if k.startswith(f"layers.{i}.")}
            if "low_gates" in own:
                smooth = own["low_gates"][n] * polynomial(low, own["low_coefficients"], h)
                rough = own["high_gates"][n] * polynomial(high, own["high_coefficients"], h)
                wide = own["weight"].size(0) == 2 * h.size(1)
                h = torch.cat([smooth, rough], dim=1) if wide else smooth + rough
            h = h @ own["weight"]
            if i < depth - 1:
                h = h.clamp_min(0)
        out.append(h)
    return torch.stack(out, dim=1)


@KINDS
@pytest.mark.parametrize("normalization", ["sym", "rw"])
@pytest.mark.parametrize("width", [F, 3], ids=["narrowing", "widening"])
def test_forward_and_gradients_against_the_reference(kind, normalization, width):
    made, x = model(in_channels=width, normalization=normalization, **kind), features(width=width)
    got, want = made(x, operator()).coefficients, reference(made, x, normalization)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    weight = torch.randn_like(want)
    parameters = list(made.parameters())
    ours = torch.autograd.grad((got * weight).sum(), parameters)
    theirs = torch.autograd.grad((want * weight).sum(), parameters)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@KINDS
def test_sparse_features_give_the_same(kind):
    made, x = model(**kind), features()
    want = made(x, operator()).coefficients
    got = made(SparseFeatures.from_dense(x), operator()).coefficients
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_loops_that_were_listed_weigh_two_and_the_branches_differ():
    a = dense_adjacency()
    assert a[2, 2] == 2
    assert a[0, 0] == 1
    eye = torch.eye(N, dtype=torch.float64)[:, None]
    one = torch.tensor([[[0.0, 1.0]]], dtype=torch.float64)
    for normalization in ("sym", "rw"):
        made = published_operators(operator(), normalization)
        for each, dense in zip(made, dense_operators(normalization), strict=True):
            torch.testing.assert_close(each.filter(eye, one, "monomial")[:, 0, 0], dense, rtol=0, atol=1e-14)
    low, high = dense_operators("sym")
    assert (low + high - torch.eye(N)).abs().max() > 0.1  # not complementary: eta is not -1/2
    torch.testing.assert_close(sum(dense_operators("sym", -0.5)), torch.eye(N, dtype=torch.float64))


def test_operators_are_made_once_and_forgotten_with_their_graph():
    graph = operator()
    assert published_operators(graph) is published_operators(graph)
    assert published_operators(graph, eta=-0.5) is not published_operators(graph)
    seen = weakref.ref(graph)
    del graph
    gc.collect()
    assert seen() is None


def test_the_coefficient_of_order_zero_is_one_and_not_learned():
    made, x = model(num_layers=1, **SUM), features()
    layer = made.layers[0]
    assert [len(layer.low_coefficients), len(layer.high_coefficients)] == [3, 2]
    with torch.no_grad():
        layer.low_coefficients.zero_()
        layer.high_coefficients.zero_()
    gates = (layer.low_gates + layer.high_gates)[:, None]
    want = gates * (x @ layer.weight)[:, None]
    torch.testing.assert_close(made(x, operator()).coefficients, want, rtol=0, atol=1e-12)


def test_start():
    with seeded(0):
        made = PublishedDSS(400, 300, C, propagation="first", branches="concat")
    first, second = made.layers
    assert torch.equal(first.low_coefficients, torch.full((6,), 0.5))
    assert torch.equal(first.high_coefficients, torch.full((5,), 0.5))
    assert torch.equal(first.low_gates, torch.full((3,), 0.7))
    assert torch.equal(first.high_gates, torch.full((3,), 0.3))
    for weight, fan_in in ((first.weight, 800), (second.weight, 300)):
        assert weight.size(0) == fan_in
        scale = 1 / math.sqrt(fan_in)
        error = 4 * scale / math.sqrt(weight.numel())
        assert weight.mean().item() == pytest.approx(-scale, abs=error)
        assert weight.std().item() == pytest.approx(scale, abs=error)


def test_reset_draws_again():
    made, other = model(0, **EVERY), model(1, **EVERY)
    for each in (made, other):
        with seeded(3):
            each.reset_parameters()
    assert made.layers[1].low_gates.tolist() == pytest.approx([0.7] * 3)
    assert made.layers[1].low_coefficients.tolist() == [0.5] * 3
    for ours, theirs in zip(made.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@KINDS
def test_higher_orders_never_touch_the_mean_logit(kind):
    made, x = model(**kind), features()
    before = made(x, operator())
    with torch.no_grad():
        for layer in made.layers:
            for name in ("low_gates", "high_gates"):
                if hasattr(layer, name):
                    getattr(layer, name)[1:] *= -3
    after = made(x, operator())
    assert torch.equal(before.mean, after.mean)
    assert not torch.allclose(before.coefficients[:, 1:], after.coefficients[:, 1:])


@KINDS
def test_without_the_regulariser_the_loss_moves_no_gate_of_higher_order(kind):
    made = model(**kind)
    y, part = torch.arange(N) % C, Part.of(torch.arange(N) < 5)
    for weight, moves in ((0.0, False), (0.1, True)):
        config = TrainingConfig(chaos_weight=weight, chaos_nodes="all")
        made.zero_grad(set_to_none=False)
        training_loss(made(features(), operator()), y, part, config).backward()
        for name, parameter in made.named_parameters():
            if name.endswith("gates"):
                assert bool(parameter.grad[0] != 0)
                assert bool((parameter.grad[1:] != 0).any()) == moves
            else:
                assert bool((parameter.grad != 0).any()), name


@KINDS
def test_the_regulariser_starts_as_a_penalty_on_squared_logits_over_all_nodes(kind):
    made = model(moved=False, **kind)
    z = made(features(), operator())
    y, part = torch.arange(N) % C, Part.of(torch.arange(N) < 5)
    plain, penalized = (
        training_loss(z, y, part, TrainingConfig(chaos_weight=weight, chaos_nodes="all"))
        for weight in (0.0, 0.1)
    )
    squared = z.mean.square().sum(dim=1).mean()
    torch.testing.assert_close(penalized - plain, 0.1 * 2 * squared, rtol=1e-12, atol=0)


def test_the_quadrature_size_enters_the_readouts_alone():
    four, eight = model(quadrature_size=4, **CONCAT), model(quadrature_size=8, **CONCAT)
    a, b = four(features(), operator()), eight(features(), operator())
    assert torch.equal(a.coefficients, b.coefficients)
    assert (a.predictive() - b.predictive()).abs().max() > 1e-8


def test_dropout_is_one_mask_before_propagating_once_and_a_mask_an_order_before_every_layer():
    x, graph = features(), operator()
    for kind, alike in ((SUM, True), (EVERY, False)):
        made = model(moved=False, dropout=0.5, **kind)  # all gates alike
        with seeded(0):
            z = made(x, graph).coefficients
        assert torch.allclose(z[:, 0], z[:, 1]) == alike
        assert not torch.allclose(z[:, 0], made.eval()(x, graph).mean)


def test_dropout_acts_on_the_features():
    made, x = model(dropout=0.5, **SUM), features()
    with seeded(7):
        got = made(x, operator()).coefficients
    with seeded(7):
        mask = torch.empty_like(x).bernoulli_(0.5) / 0.5
    want = made.eval()(x * mask, operator()).coefficients
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_propagating_once_the_chaos_order_changes_no_mask_and_so_nothing_of_the_mean():
    means = []
    for order in (0, 1, 3):
        made = model(moved=False, chaos_order=order, dropout=0.5, **CONCAT)
        with seeded(0):
            means.append(made(features(), operator()).mean)
    for mean in means[1:]:
        torch.testing.assert_close(mean, means[0], rtol=0, atol=1e-12)


def test_batch_norm_after_the_activation_for_every_order():
    made = model(norm="batch", **SUM)
    x = features()
    hidden = reference_hidden(made, x)
    normed = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(
        made(x, operator()).coefficients, normed @ made.layers[1].weight, rtol=0, atol=1e-10
    )


def reference_hidden(made, x):
    low, high = dense_operators("sym")
    layer = made.layers[0]
    smooth, rough = polynomial(low, layer.low_coefficients, x), polynomial(high, layer.high_coefficients, x)
    mixed = layer.low_gates[:, None] * smooth[:, None] + layer.high_gates[:, None] * rough[:, None]
    return (mixed @ layer.weight).clamp_min(0)


@pytest.fixture(scope="module")
def task():
    y = torch.arange(N) % C
    train = torch.arange(N) < 4
    return NodeTask(features(), operator(), y, train, ~train, C)


GROUPED = TrainingConfig(
    epochs=20,
    patience=None,
    lr=0.005,
    weight_decay=0.0,
    chaos_nodes="all",
    groups=(ParameterGroup("*coefficients", 0.1, 0.05), ParameterGroup("*gates", 0.1, 0.05)),
)


@KINDS
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_a_population_is_its_members_alone(kind, sparse, optimizer, task):
    if sparse:
        task = replace(task, x=SparseFeatures.from_dense(task.x))
    other = torch.arange(N) % 2 == 0
    tasks = [task, replace(task, train_mask=other, val_mask=~other)]
    configs = [
        replace(GROUPED, optimizer=optimizer, seed=seed, chaos_weight=0.1 * (seed + 1)) for seed in (0, 1)
    ]
    alone = [model(seed, dropout=0.4, **kind) for seed in (0, 1)]
    expected = [fit(*each) for each in zip(alone, tasks, configs, strict=True)]
    for way in ("threads", "block"):
        together = [model(seed, dropout=0.4, **kind) for seed in (0, 1)]
        results = fit_population(together, tasks, configs, way=way)
        for want, got, one, member in zip(expected, results, alone, together, strict=True):
            assert got.best_epoch == want.best_epoch
            for ours, theirs in zip(got.history, want.history, strict=True):
                assert ours == pytest.approx(theirs, abs=1e-8)
            for name, value in one.state_dict().items():
                torch.testing.assert_close(member.state_dict()[name], value, rtol=0, atol=1e-8, msg=name)


def test_an_edge_list_is_made_undirected_with_loops():
    made, x = model(**SUM), features()
    graph = GraphOperator.from_edge_index(EDGES, N, self_loops=True, dtype=torch.float64)
    assert torch.equal(made(x, EDGES).coefficients, made(x, graph).coefficients)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"branches": "concat"}, "goes with propagation='first'"),
        ({"dropout": 1.0}, "dropout must be in"),
        ({"num_layers": 0}, "num_layers"),
        ({"filter_orders": (-1, 2)}, "filter_orders"),
        ({"propagation": "last"}, "propagation"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        PublishedDSS(F, 5, C, **options)
