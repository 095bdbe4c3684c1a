"""What must hold on every graph: symmetries of the network, and the manners of its modules."""

import copy
import io
import pickle
from functools import lru_cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dssgnn import DSSGNN, ChaosExpansion, DSSConv, DSSHybrid, GraphOperator
from dssgnn.errors import InputError
from dssgnn.nn import make_encoder
from dssgnn.nn.norm import NORMS
from dssgnn.nn.projection import evaluate_activate_project
from dssgnn.spectral import projection_tables
from dssgnn.training import seeded

F64 = torch.float64
VARIANTS = {
    "paper": {},
    "gates": {"gate_order": 1, "chaos_order": 1, "bias": True},
    "filtered": {"readout": "filtered", "residual": True},
    "first": {"propagation": "first", "branches": "concat", "lift": "shared", "bias": True},
    "deterministic": {"chaos_order": 0, "residual": "identity"},
    "inner": {"residual": "inner", "joint_dropout": True},
}
GRAPH_OPTIONS = {
    "default": {},
    "directed": {"direction": "in", "normalization": "rw"},
    "gcn": {"self_loops": True},
}


@lru_cache
def a_model(variant: str, norm: str | None = None) -> DSSGNN:
    torch.manual_seed(3)
    return DSSGNN(3, 4, 2, filter_orders=(3, 2), norm=norm, **VARIANTS[variant]).double().eval()


@st.composite
def weighted_graphs(draw: st.DrawFn, smallest: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Features, edges and weights; loops, duplicates and isolated nodes among them."""
    nodes = draw(st.integers(smallest, 9))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=24))
    seed = draw(st.integers(0, 2**31))
    g = torch.Generator().manual_seed(seed)
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T.contiguous()
    return (
        torch.randn(nodes, 3, generator=g, dtype=F64),
        edges,
        torch.rand(len(pairs), generator=g, dtype=F64) + 0.1,
    )


def expand(model: nn.Module, x: Tensor, edges: Tensor, weights: Tensor | None, **options) -> Tensor:
    op = GraphOperator.from_edge_index(edges, x.shape[0], weights, dtype=x.dtype, **options)
    with torch.no_grad():
        return model(x, op).coefficients


variants = st.sampled_from(sorted(VARIANTS))
graph_options = st.sampled_from(sorted(GRAPH_OPTIONS))


@settings(max_examples=60, deadline=None)
@given(weighted_graphs(), variants, graph_options, st.randoms(use_true_random=False))
def test_permuting_nodes_permutes_the_output(graph: tuple, variant: str, options: str, random) -> None:
    x, edges, weights = graph
    order = list(range(x.shape[0]))
    random.shuffle(order)
    permutation = torch.tensor(order)  # new node i was permutation[i]
    shuffle = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(order[0]))
    renamed = torch.argsort(permutation)[edges][:, shuffle]
    model = a_model(variant)
    before = expand(model, x, edges, weights, **GRAPH_OPTIONS[options])
    after = expand(model, x[permutation], renamed, weights[shuffle], **GRAPH_OPTIONS[options])
    assert (after - before[permutation]).abs().max() < 1e-12 * max(1.0, float(before.abs().max()))


@settings(max_examples=40, deadline=None)
@given(weighted_graphs(smallest=2), variants, st.sampled_from(NORMS), st.randoms(use_true_random=False))
def test_norms_in_training_do_not_depend_on_the_order_of_nodes(
    graph: tuple, variant: str, norm: str, random
) -> None:
    x, edges, weights = graph
    order = list(range(x.shape[0]))
    random.shuffle(order)
    permutation = torch.tensor(order)
    model = copy.deepcopy(a_model(variant, norm)).train()
    model.dropout = 0.0
    before = expand(model, x, edges, weights)
    after = expand(model, x[permutation], torch.argsort(permutation)[edges], weights)
    # A channel that hardly varies is divided by sqrt(eps), in both layers, and its rounding with it.
    assert (after - before[permutation]).abs().max() < 1e-9 * max(1.0, float(before.abs().max()))


def test_the_permutation_check_can_fail() -> None:
    """The negative twin: features permuted without the edges is another graph."""
    x = torch.randn(5, 3, dtype=F64)
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    permutation = torch.tensor([4, 3, 2, 1, 0])
    model = a_model("paper")
    before = expand(model, x, edges, None)
    after = expand(model, x[permutation], edges, None)
    assert (after - before[permutation]).abs().max() > 1e-3


@settings(max_examples=40, deadline=None)
@given(weighted_graphs(), weighted_graphs(), variants, graph_options)
def test_a_disjoint_union_gives_the_union(one: tuple, two: tuple, variant: str, options: str) -> None:
    model = a_model(variant)
    apart = [expand(model, *graph, **GRAPH_OPTIONS[options]) for graph in (one, two)]
    together = expand(
        model,
        torch.cat([one[0], two[0]]),
        torch.cat([one[1], two[1] + one[0].shape[0]], dim=1),
        torch.cat([one[2], two[2]]),
        **GRAPH_OPTIONS[options],
    )
    expected = torch.cat(apart)
    assert (together - expected).abs().max() < 1e-12 * max(1.0, float(expected.abs().max()))


@settings(max_examples=40, deadline=None)
@given(weighted_graphs(), variants, graph_options)
def test_duplicates_are_their_sum(graph: tuple, variant: str, options: str) -> None:
    x, edges, weights = graph
    split = torch.cat([edges, edges], dim=1), torch.cat([0.25 * weights, 0.75 * weights])
    model = a_model(variant)
    once = expand(model, x, edges, weights, **GRAPH_OPTIONS[options])
    twice = expand(model, x, *split, **GRAPH_OPTIONS[options])
    assert (once - twice).abs().max() < 1e-12 * max(1.0, float(once.abs().max()))


@settings(max_examples=25, deadline=None)
@given(weighted_graphs(), graph_options)
def test_order_zero_is_deterministic(graph: tuple, options: str) -> None:
    """P = 0 has one coefficient, no spread, and its predictive is the softmax of its logits."""
    x, edges, weights = graph
    op = GraphOperator.from_edge_index(edges, x.shape[0], weights, **GRAPH_OPTIONS[options])
    with torch.no_grad():
        z = a_model("deterministic")(x, op)
    assert z.coefficients.shape == (x.shape[0], 1, 2)
    assert torch.equal(z.chaos_energy, torch.zeros(x.shape[0], dtype=F64))
    assert (z.predictive() - z.mean.softmax(-1)).abs().max() < 1e-14
    assert z.mutual_information().abs().max() < 1e-12
    assert torch.equal(z.at(torch.tensor([-2.0, 1.0]))[0], z.at(torch.tensor([-2.0, 1.0]))[1])


def a_batch(nodes: int = 40) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(nodes, 3, generator=g), torch.randint(0, nodes, (2, 120), generator=g)


@pytest.mark.parametrize("norm", [None, *NORMS])
@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_autocast_runs_and_stays_close(variant: str, norm: str | None) -> None:
    x, edges = a_batch()
    torch.manual_seed(0)
    model = DSSGNN(3, 16, 4, dropout=0.0, norm=norm, **VARIANTS[variant])
    exact = model(x, edges).coefficients
    exact.square().mean().backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        close = model(x, edges).coefficients
        loss = close.square().mean()
    loss.backward()
    assert close.dtype == torch.float32
    assert (close - exact).abs().max() < 0.05 * exact.abs().max()
    total = torch.sqrt(sum(g.square().sum() for g in wanted.values()))
    error = torch.sqrt(sum((p.grad - wanted[name]).square().sum() for name, p in model.named_parameters()))
    assert error < 0.1 * total
    assert all(p.grad.dtype == p.dtype for p in model.parameters())


@pytest.mark.parametrize("place", ["dropout", "input_dropout", "lift_dropout"])
def test_dropout_acts_in_training_alone(place: str) -> None:
    x, edges = a_batch()
    rates = {"dropout": 0.0, "input_dropout": 0.0, "lift_dropout": 0.0, place: 0.5}
    torch.manual_seed(0)
    model = DSSGNN(3, 8, 2, **rates)
    still = DSSGNN(3, 8, 2, dropout=0.0)
    still.load_state_dict(model.state_dict())
    expected = still(x, edges).coefficients
    model.eval()
    assert torch.equal(model(x, edges).coefficients, expected)
    model.train()
    torch.manual_seed(1)
    first = model(x, edges).coefficients
    second = model(x, edges).coefficients
    torch.manual_seed(1)
    assert torch.equal(model(x, edges).coefficients, first)
    assert not torch.equal(first, second)
    assert not torch.equal(first, expected)


def modules() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    made: dict[str, nn.Module] = {
        name: DSSGNN(3, 4, 2, norm="batch", **options) for name, options in VARIANTS.items()
    }
    made["hybrid"] = DSSHybrid(make_encoder("gcn", 3, 4, 2), DSSGNN(3, 4, 2), warmup_epochs=0)
    made["joint"] = DSSGNN(3, 4, 2, norm="joint", residual=True)
    made["inner joint"] = DSSGNN(3, 4, 2, norm="joint", **VARIANTS["inner"])
    made["prelu"] = DSSGNN(3, 4, 2, activation=nn.PReLU())
    return made


@pytest.mark.parametrize("name", sorted(modules()))
def test_state_dict_copies_and_pickles(name: str) -> None:
    x, edges = a_batch()
    module = modules()[name]
    module(x, edges)  # running statistics and cached operators are there to be copied
    module.eval()
    expected = module(x, edges).coefficients.detach()

    stream = io.BytesIO()
    torch.save(module.state_dict(), stream)
    stream.seek(0)
    torch.manual_seed(99)
    other = modules()[name].eval()
    with torch.no_grad():
        for p in other.parameters():
            p.add_(1.0)
    assert not torch.allclose(other(x, edges).coefficients, expected, atol=1e-3)
    other.load_state_dict(torch.load(stream, weights_only=True))
    assert torch.equal(other(x, edges).coefficients, expected)

    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(copied(x, edges).coefficients, expected)
        with torch.no_grad():
            next(copied.parameters()).add_(1.0)
        assert torch.equal(module(x, edges).coefficients, expected)


@pytest.mark.parametrize("name", sorted(modules()))
def test_reset_parameters_repeats_under_a_seed(name: str) -> None:
    x, edges = a_batch()
    module = modules()[name]
    torch.manual_seed(5)
    module.reset_parameters()
    first = copy.deepcopy(module.state_dict())
    module(x, edges)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(-3.0)
    torch.manual_seed(5)
    module.reset_parameters()
    again = module.state_dict()
    differs = [key for key in first if not torch.equal(first[key], again[key])]
    assert differs == []
    torch.manual_seed(6)
    module.reset_parameters()
    assert any(not torch.equal(first[key], value) for key, value in module.state_dict().items())


def test_the_start() -> None:
    """Gates 0.7 and 0.3, higher gate terms zero, gains 1 then 0.1, g at its start, biases zero."""
    conv = DSSConv(3, 4, 2, gate_order=1, bias=True)
    assert torch.equal(conv.low_gates, torch.tensor([[0.7, 0.0]] * 3))
    assert torch.equal(conv.high_gates, torch.tensor([[0.3, 0.0]] * 3))
    assert torch.equal(conv.bias, torch.zeros(4))
    published = DSSConv(3, 4, 2, filter_orders=(3, 2), filter_init="published")
    assert torch.equal(published.low_coefficients, torch.tensor([1.0, 0.5, 0.25, 0.125]))
    assert torch.equal(published.high_coefficients, torch.tensor([0.0, -0.5, -0.25]))
    assert torch.equal(DSSGNN(3, 4, 2, lift="shared").lift.gains, torch.tensor([1.0, 0.1, 0.1]))
    hybrid = DSSHybrid(make_encoder("gcn", 3, 4, 2), DSSGNN(3, 4, 2), residual_scale=0.25)
    assert float(hybrid.residual_scale.detach()) == 0.25
    assert hybrid.warmup_epochs == 50


def test_lowpass_start_falls_from_one_at_frequency_zero() -> None:
    angles = torch.arccos(torch.linspace(0, 2, 81, dtype=F64) - 1)
    responses = {}
    for kind in ("lowpass", "highpass", "published"):
        low = DSSConv(1, 1, 0, filter_init=kind).low_coefficients.detach().double()
        responses[kind] = sum(low[k] * torch.cos(k * angles) for k in range(5))
    lowpass = responses["lowpass"]
    assert float(lowpass[0]) == pytest.approx(1.0, abs=1e-6)
    assert (lowpass[1:] < lowpass[0]).all()
    assert lowpass[41:].max() < 0.45
    assert torch.allclose(responses["highpass"], lowpass.flip(0), atol=1e-6)
    assert responses["published"].argmax() == 80


def test_training_after_inference_mode() -> None:
    """Tables made under inference_mode must not end up in a later training step (of any model)."""
    x, edges = a_batch()
    model = DSSGNN(3, 4, 2, chaos_order=4, quadrature_size=11, dropout=0.0)  # tables no other test asks for
    with torch.inference_mode():
        inside = model(x, edges).predictive()
    z = model(x, edges)
    z.predictive().square().sum().backward()
    assert torch.equal(z.predictive().detach(), inside)
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


def test_features_and_edges_made_under_inference_mode() -> None:
    x, edges = a_batch()
    model = DSSGNN(3, 4, 2).eval()
    conv = DSSConv(3, 2, 0)
    expected = model(x, edges).predictive(), conv(x[:, None], edges)
    with torch.inference_mode():
        assert torch.equal(model(x.clone(), edges).predictive(), expected[0])
        assert torch.equal(model(x, edges.clone()).predictive(), expected[0])
        assert torch.equal(conv(x[:, None], edges.clone()), expected[1])


@pytest.mark.parametrize(
    "activation", [torch.relu_, nn.ReLU(inplace=True), nn.PReLU(init=0.3), nn.Softplus(beta=2)]
)
def test_any_pointwise_activation(activation) -> None:
    """In-place ones and ones that learn too: the same values and gradients as the plain function."""
    plain = {torch.relu_: torch.relu}.get(activation)
    if isinstance(activation, nn.ReLU):
        plain = torch.relu
    if isinstance(activation, nn.PReLU):
        plain = lambda v: torch.nn.functional.leaky_relu(v, 0.3)  # noqa: E731
    if isinstance(activation, nn.Softplus):
        plain = lambda v: torch.nn.functional.softplus(v, beta=2)  # noqa: E731
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    conv = DSSConv(3, 5, 2, activation=activation, bias=True).double()
    other = DSSConv(3, 5, 2, activation=plain, bias=True).double()
    if isinstance(activation, nn.PReLU):
        with torch.no_grad():
            activation.weight.fill_(0.3)  # in float64
    other.load_state_dict({k: v for k, v in conv.state_dict().items() if not k.startswith("activation")})
    h = torch.randn(4, 3, 3, dtype=F64)
    results = []
    for module in (conv, other):
        state = h.clone().requires_grad_()
        out = module(state, edges)
        out.square().sum().backward()
        results.append(
            [out.detach(), state.grad, module.weight.grad, module.bias.grad, module.low_gates.grad]
        )
    for got, expected in zip(*results, strict=True):
        assert torch.allclose(got, expected, atol=1e-13, rtol=1e-13)
    if isinstance(activation, nn.PReLU):
        assert activation.weight.grad.abs().sum() > 0


def test_hybrid_readouts_transfer() -> None:
    """Quadrature logits combine as base + g z^(s), so every readout is that of the combined expansion."""
    x, edges = a_batch()
    hybrid = DSSHybrid(make_encoder("gcn", 3, 4, 2), DSSGNN(3, 4, 2), warmup_epochs=0).eval()
    z = hybrid(x, edges)
    base = hybrid.base(x, edges)
    branch = hybrid.branch(x, edges)
    omega = torch.tensor([-1.3, 0.0, 0.4])
    expected = base + hybrid.residual_scale * branch.at(omega)
    assert (z.at(omega) - expected).abs().max() < 1e-5
    plain = ChaosExpansion(z.coefficients, z.quadrature_size)
    assert torch.equal(z.predictive(), plain.predictive())
    assert z.quadrature_size == branch.quadrature_size
    part = z[torch.tensor([3, 1])]
    assert torch.equal(part.coefficients, z.coefficients[[3, 1]])
    assert torch.equal(part.penalized_energy, branch.chaos_energy[[3, 1]])


def test_dropout_leaves_the_residual_path_alone():
    """With layers that give nothing, an identity skip carries the lifted state through any depth unchanged."""
    with seeded(0):
        model = DSSGNN(4, 6, 3, num_layers=6, residual="identity", dropout=0.5).train()
    for layer in model.layers:
        torch.nn.init.zeros_(layer.weight)
    x, edges = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([[0, 1], [1, 0]])
    with seeded(1):
        noisy = model(x, edges).coefficients
    with seeded(1):  # five masks for the layers' inputs, then the readout's own, the only one that shows
        mask = [torch.nn.functional.dropout(torch.ones(5, 3, 6), 0.5) for _ in range(6)][-1]
    torch.testing.assert_close(noisy, (model.lift(x) * mask) @ model.readout_weight)


@pytest.mark.parametrize("activation", [torch.nn.RReLU(), torch.nn.ReLU(inplace=True), torch.nn.GELU()])
def test_activations_that_cannot_be_recomputed_keep_their_gradient(activation):
    """A random slope must be the same in both passes: the tape keeps it."""
    evaluation, projection = projection_tables(2, 4, torch.float64, torch.device("cpu"))
    u = torch.randn(
        5, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    with seeded(3):
        out = evaluate_activate_project(u, evaluation, projection, activation)
    (gradient,) = torch.autograd.grad(out.sum(), u)
    with seeded(3):
        tape = projection @ activation(evaluation @ u)
    torch.testing.assert_close(gradient, torch.autograd.grad(tape.sum(), u)[0])


def test_a_function_that_closes_over_a_parameter_is_differentiated():
    slope = torch.nn.Parameter(torch.tensor(0.5))
    conv = DSSConv(2, 2, 1, activation=lambda v: v * torch.sigmoid(slope * v))
    conv(torch.randn(3, 2, 2), torch.tensor([[0, 1], [1, 2]])).sum().backward()
    assert slope.grad is not None


def test_an_inner_residual_goes_with_constant_gates() -> None:
    with pytest.raises(InputError, match="residual='inner' goes with constant gates, got gate_order=1"):
        DSSGNN(3, 4, 2, residual="inner", gate_order=1)


def test_an_inner_residual_of_nothing_is_none() -> None:
    x, edges = a_batch()
    model, plain = (DSSGNN(3, 4, 2, residual=residual).eval() for residual in ("inner", False))
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if not k.startswith("residual")})
    expected = plain(x, edges).coefficients
    assert not torch.allclose(model(x, edges).coefficients, expected, atol=1e-2)
    with torch.no_grad():
        for weight in model.residual_weights:
            weight.zero_()
    torch.testing.assert_close(model(x, edges).coefficients, expected)
