"""`DSSConv`, `DSSGNN` and `DSSHybrid` against the dense float64 reference: values and every gradient."""

import math

import pytest
import torch
from torch import Tensor

import reference
from dssgnn import DSSGNN, DSSConv, DSSHybrid, GraphOperator
from dssgnn.nn import make_encoder

F64 = torch.float64
TOLERANCE = 1e-10


def swish_like(v: Tensor) -> Tensor:
    return v * torch.sigmoid(1.5 * v) + 0.1


ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, swish_like: swish_like, None: None}


def a_graph(kind: str, seed: int = 0) -> tuple[int, Tensor, Tensor | None]:
    """Nodes, edges and weights of a small graph."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "one node":
        return 1, torch.empty(2, 0, dtype=torch.long), None
    if kind == "one node, loop":
        return 1, torch.zeros(2, 1, dtype=torch.long), torch.tensor([3.0], dtype=F64)
    if kind == "no edges":
        return 5, torch.empty(2, 0, dtype=torch.long), None
    n = 11
    ring = torch.arange(n - 2)
    chords = torch.randint(0, n - 2, (2, 12), generator=generator)
    edges = torch.cat([torch.stack([ring, (ring + 1) % (n - 2)]), chords], dim=1)  # nodes 9, 10: isolated
    if kind == "undirected":
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        return n, edges, None
    if kind == "directed":
        return n, edges, None
    if kind == "weighted":
        return n, edges, torch.rand(edges.shape[1], generator=generator, dtype=F64) * 3.0
    raise AssertionError(kind)


def spread(module: torch.nn.Module, seed: int = 0) -> None:
    """Parameters (and running statistics) of order one and no symmetry, so that no term can hide."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=F64) * 0.6 + 0.1)
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(torch.randn(b.shape, generator=generator, dtype=F64))
            if name.endswith("running_var"):
                b.copy_(torch.rand(b.shape, generator=generator, dtype=F64) + 0.5)


def leaves(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone().requires_grad_() for name, p in module.named_parameters()}


def gradients(out: Tensor, inputs: dict[str, Tensor], seed: int = 5) -> dict[str, Tensor]:
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed), dtype=F64)
    found = torch.autograd.grad(out, list(inputs.values()), cotangent)
    return dict(zip(inputs, found, strict=True))


def difference(got: Tensor, expected: Tensor) -> float:
    """The largest error, relative where the expected values are large."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype == F64
    scale = max(1.0, float(expected.detach().abs().max()))
    return float((got - expected).detach().abs().max()) / scale


def assert_same(got: Tensor, expected: Tensor, got_inputs: dict, expected_inputs: dict) -> None:
    assert difference(got, expected) < TOLERANCE
    ours, theirs = gradients(got, got_inputs), gradients(expected, expected_inputs)
    assert ours.keys() == theirs.keys()
    errors = {name: difference(ours[name], theirs[name]) for name in ours}
    assert max(errors.values()) < TOLERANCE, errors


# P, P_g, degrees, (in, out), activation, bias, branches, graph, operator options
CONV_CASES = [
    (0, 0, (3, 1), (3, 5), "relu", False, "sum", "undirected", {}),
    (0, 1, (0, 2), (5, 3), "tanh", True, "sum", "directed", {"direction": "in", "normalization": "rw"}),
    (0, 2, (4, 4), (3, 3), swish_like, False, "concat", "weighted", {"normalization": "col"}),
    (1, 0, (0, 2), (3, 5), None, True, "sum", "weighted", {"direction": "out", "normalization": "rw"}),
    (1, 1, (4, 4), (4, 2), "relu", True, "sum", "weighted", {"direction": "in", "normalization": "sym"}),
    (1, 2, (3, 1), (2, 4), "tanh", False, "sum", "directed", {"symmetrize": "mean", "self_loops": True}),
    (2, 0, (4, 4), (5, 3), "relu", True, "sum", "weighted", {"direction": "out", "normalization": "col"}),
    (2, 0, (3, 1), (3, 5), swish_like, True, "concat", "directed", {"direction": "in"}),
    (2, 1, (3, 1), (5, 2), None, False, "sum", "directed", {"lambda_max": 1.5}),
    (2, 2, (0, 2), (2, 5), "relu", True, "concat", "weighted", {"self_loops": "keep", "lambda_max": 1.3}),
    (5, 0, (0, 2), (4, 3), "tanh", False, "sum", "directed", {"direction": "out", "normalization": "rw"}),
    (5, 1, (4, 4), (3, 4), swish_like, True, "sum", "undirected", {"lambda_max": "estimate"}),
    (5, 2, (3, 1), (4, 2), "relu", False, "sum", "weighted", {"direction": "in", "normalization": "col"}),
    (2, 0, (0, 0), (3, 4), "relu", True, "sum", "weighted", {}),
    (1, 1, (0, 0), (4, 3), "tanh", False, "concat", "weighted", {}),
    (2, 0, (3, 1), (3, 4), "relu", True, "sum", "no edges", {"normalization": "rw"}),
    (1, 1, (1, 3), (4, 2), "tanh", True, "sum", "no edges", {"lambda_max": 1.5}),
    (2, 1, (4, 4), (2, 3), "relu", False, "concat", "one node", {"normalization": "col"}),
    (5, 2, (0, 2), (3, 2), None, True, "sum", "one node", {"self_loops": True}),
    (1, 0, (2, 3), (2, 2), "relu", True, "sum", "one node, loop", {"self_loops": "keep", "direction": "in"}),
]


def conv_case(case: tuple) -> tuple[DSSConv, GraphOperator, Tensor, dict, Tensor, dict]:
    order, gate_order, degrees, (d_in, d_out), activation, bias, branches, kind, options = case
    n, edges, weights = a_graph(kind, seed=order)
    torch.manual_seed(0)
    conv = DSSConv(
        d_in,
        d_out,
        order,
        filter_orders=degrees,
        gate_order=gate_order,
        activation=activation,
        bias=bias,
        branches=branches,
    ).double()
    spread(conv, seed=order + 7)
    op = GraphOperator.from_edge_index(edges, n, weights, dtype=F64, **options)
    h = torch.randn(n, order + 1, d_in, generator=torch.Generator().manual_seed(3), dtype=F64)
    params = leaves(conv)
    reference_h = h.clone().requires_grad_()
    expected = reference.layer(
        reference_h,
        reference.operator(edges, n, weights, **options),
        params,
        size=reference.default_size(order, gate_order),
        activation=ACTIVATIONS[activation],
        branches=branches,
    )
    return conv, op, h.requires_grad_(), params, expected, {"h": reference_h, **params}


@pytest.mark.parametrize("case", CONV_CASES, ids=lambda c: f"P{c[0]}-Pg{c[1]}-K{c[2]}-{c[6]}-{c[7]}")
def test_layer_and_all_its_gradients(case: tuple) -> None:
    conv, op, h, _, expected, expected_inputs = conv_case(case)
    assert_same(conv(h, op), expected, {"h": h, **dict(conv.named_parameters())}, expected_inputs)


def test_parameters_have_the_names_and_shapes_of_the_contract() -> None:
    conv = DSSConv(3, 5, 2, filter_orders=(4, 1), gate_order=1)
    assert {name: tuple(p.shape) for name, p in conv.named_parameters()} == {
        "low_coefficients": (5,),
        "high_coefficients": (2,),
        "low_gates": (3, 2),
        "high_gates": (3, 2),
        "weight": (3, 5),
    }


@pytest.mark.parametrize(
    "name", ["low_coefficients", "high_coefficients", "low_gates", "high_gates", "weight"]
)
def test_the_comparison_notices_one_changed_entry(name: str) -> None:
    """The negative twin: one gate (coefficient, weight) of the reference moved by 1e-6 is a disagreement."""
    conv, op, h, params, _, _ = conv_case(CONV_CASES[9])
    edges_case = a_graph("weighted", seed=2)
    with torch.no_grad():
        params[name].view(-1)[-1] += 1e-6
    changed = reference.layer(
        h.detach(),
        reference.operator(edges_case[1], edges_case[0], edges_case[2], **CONV_CASES[9][-1]),
        params,
        size=reference.default_size(2, 2),
        activation=torch.relu,
        branches="concat",
    )
    assert difference(conv(h, op), changed) > 100 * TOLERANCE


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_quadrature_of_another_size(size: int) -> None:
    """A rule too small for the gates is accepted with a warning, and is the rule that is used."""
    arguments = {"filter_orders": (2, 1), "gate_order": 2, "quadrature_size": size}
    if size < math.ceil((2 + 2 * 2 + 1) / 2):
        with pytest.warns(UserWarning, match=rf"{size}.*4"):
            conv = DSSConv(3, 2, 2, **arguments).double()
    else:
        conv = DSSConv(3, 2, 2, **arguments).double()
    spread(conv)
    n, edges, _ = a_graph("directed")
    h = torch.randn(n, 3, 3, generator=torch.Generator().manual_seed(1), dtype=F64)
    op = GraphOperator.from_edge_index(edges, n, dtype=F64)
    params = leaves(conv)
    expected = reference.layer(h, reference.operator(edges, n), params, size=size, activation=torch.relu)
    assert_same(conv(h, op), expected, dict(conv.named_parameters()), params)


def test_layer_takes_edges_and_weights_for_the_default_operator() -> None:
    n, edges, weights = a_graph("weighted")
    conv = DSSConv(3, 2, 2).double()
    h = torch.randn(n, 3, 3, dtype=F64)
    for w in (None, weights):
        expected = reference.layer(
            h, reference.operator(edges, n, w), leaves(conv), size=4, activation=torch.relu
        )
        assert difference(conv(h, edges, w), expected) < TOLERANCE


@pytest.mark.parametrize("widths", [(3, 4), (4, 3)])
@pytest.mark.parametrize("operator_dtype", [torch.float32, torch.float64])
def test_a_float32_layer_is_close_to_the_reference(widths: tuple, operator_dtype: torch.dtype) -> None:
    """Also on an operator in float64, which weights from numpy give by default."""
    n, edges, weights = a_graph("weighted")
    conv = DSSConv(*widths, 2, gate_order=1, bias=True)
    h = torch.randn(n, 3, widths[0])
    expected = reference.layer(
        h.double(),
        reference.operator(edges, n, weights),
        {name: p.detach().double() for name, p in conv.named_parameters()},
        size=4,
        activation=torch.relu,
    )
    got = conv(h, GraphOperator.from_edge_index(edges, n, weights, dtype=operator_dtype))
    assert got.dtype == torch.float32
    assert (got.double() - expected).abs().max() < 1e-5


# options of the network, options of the operator, the graph
NETWORK_CASES = [
    ({"chaos_order": 0, "filter_orders": (3, 1)}, {}, "undirected"),
    (
        {"chaos_order": 0, "gate_order": 2, "readout": "filtered", "bias": True},
        {"direction": "in"},
        "weighted",
    ),
    (
        {"chaos_order": 1, "gate_order": 1, "residual": True, "norm": "batch"},
        {"normalization": "rw"},
        "weighted",
    ),
    (
        {"chaos_order": 1, "propagation": "first", "branches": "concat", "num_layers": 3, "bias": True},
        {"normalization": "col", "direction": "out"},
        "directed",
    ),
    (
        {"chaos_order": 2, "readout": "filtered", "residual": "identity", "lift": "shared", "num_layers": 3},
        {"self_loops": True},
        "undirected",
    ),
    (
        {"chaos_order": 2, "propagation": "first", "readout": "filtered", "num_layers": 3, "norm": "batch"},
        {"lambda_max": 1.5},
        "weighted",
    ),
    (
        {"chaos_order": 2, "propagation": "first", "branches": "sum", "gate_order": 1, "residual": True},
        {"direction": "in", "normalization": "rw"},
        "directed",
    ),
    ({"chaos_order": 2, "propagation": "last", "readout": "filtered", "num_layers": 3}, {}, "weighted"),
    (
        {"chaos_order": 1, "propagation": "last", "residual": True, "norm": "batch", "bias": True},
        {"direction": "out"},
        "directed",
    ),
    (
        {
            "chaos_order": 2,
            "residual": True,
            "norm": "batch",
            "bias": True,
            "lift": "shared",
            "num_layers": 3,
        },
        {"symmetrize": "mean", "self_loops": "keep"},
        "weighted",
    ),
    (
        {"chaos_order": 5, "gate_order": 2, "filter_orders": (3, 1), "activation": "tanh", "bias": True},
        {"normalization": "col", "direction": "in"},
        "weighted",
    ),
    (
        {
            "chaos_order": 5,
            "filter_orders": (0, 2),
            "propagation": "first",
            "readout": "filtered",
            "bias": True,
        },
        {"direction": "out"},
        "weighted",
    ),
    ({"chaos_order": 2, "num_layers": 1, "filter_orders": (1, 3)}, {"lambda_max": "estimate"}, "directed"),
    (
        {"chaos_order": 2, "num_layers": 1, "readout": "filtered", "gate_order": 1, "bias": True},
        {},
        "weighted",
    ),
    (
        {"chaos_order": 1, "propagation": "first", "branches": "concat", "gate_order": 1, "norm": "batch"},
        {"direction": "in"},
        "weighted",
    ),
    (
        {
            "chaos_order": 2,
            "num_layers": 1,
            "propagation": "first",
            "branches": "concat",
            "readout": "filtered",
        },
        {},
        "weighted",
    ),
    ({"chaos_order": 2, "activation": swish_like, "widths": (7, 3, 4), "residual": True}, {}, "weighted"),
    ({"chaos_order": 2, "widths": (2, 6, 3), "residual": "identity", "norm": "batch"}, {}, "directed"),
    ({"chaos_order": 2, "widths": (6, 2, 5), "readout": "filtered", "filter_orders": (2, 3)}, {}, "directed"),
    ({"chaos_order": 2, "gate_order": 1, "bias": True}, {"normalization": "rw"}, "no edges"),
    ({"chaos_order": 2, "readout": "filtered"}, {}, "no edges"),
    ({"chaos_order": 1, "gate_order": 1, "lift": "shared", "bias": True}, {}, "one node"),
    ({"chaos_order": 2, "readout": "filtered", "propagation": "first"}, {"self_loops": True}, "one node"),
    ({"chaos_order": 0, "norm": "joint", "bias": True}, {}, "weighted"),
    ({"chaos_order": 1, "norm": "joint", "gate_order": 1, "residual": True}, {"direction": "in"}, "weighted"),
    ({"chaos_order": 2, "norm": "joint", "residual": "identity", "num_layers": 3}, {}, "directed"),
    ({"chaos_order": 2, "norm": "joint", "propagation": "first", "readout": "filtered"}, {}, "no edges"),
    ({"chaos_order": 5, "norm": "joint", "propagation": "last", "residual": True}, {}, "undirected"),
    ({"chaos_order": 0, "residual": "inner", "norm": "batch"}, {"normalization": "rw"}, "weighted"),
    ({"chaos_order": 1, "residual": "inner", "widths": (2, 6, 3), "bias": True}, {}, "one node"),
    (
        {"chaos_order": 2, "residual": "inner", "norm": "joint", "bias": True, "num_layers": 3},
        {"direction": "out"},
        "weighted",
    ),
    (
        {
            "chaos_order": 2,
            "residual": "inner",
            "norm": "joint",
            "propagation": "first",
            "branches": "concat",
            "filter_orders": (3, 1),
        },
        {"direction": "in", "normalization": "col"},
        "directed",
    ),
    (
        {
            "chaos_order": 1,
            "residual": "inner",
            "norm": "batch",
            "propagation": "last",
            "readout": "filtered",
            "num_layers": 3,
            "bias": True,
        },
        {},
        "weighted",
    ),
    (
        {
            "chaos_order": 2,
            "residual": "inner",
            "propagation": "first",
            "readout": "filtered",
            "num_layers": 3,
        },
        {"self_loops": True},
        "directed",
    ),
    (
        {
            "chaos_order": 5,
            "residual": "inner",
            "propagation": "last",
            "lift": "shared",
            "activation": "tanh",
        },
        {},
        "weighted",
    ),
    ({"chaos_order": 2, "residual": "inner", "num_layers": 1, "readout": "filtered"}, {}, "weighted"),
]


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(
    "case",
    NETWORK_CASES,
    ids=lambda c: "-".join(str(getattr(v, "__name__", v)) for v in c[0].values()) + f"-{c[2]}",
)
def test_network_and_all_its_gradients(case: tuple, training: bool) -> None:
    options, graph_options, kind = case
    if training is False and options.get("norm") is None:
        options = {**options, "dropout": 0.9, "input_dropout": 0.5, "lift_dropout": 0.5}
    else:
        options = {**options, "dropout": 0.0}
    widths = options.pop("widths", (4, 5, 3))
    n, edges, weights = a_graph(kind, seed=4)
    model = DSSGNN(*widths, **options).double()
    spread(model, seed=2)
    model.train(training)
    running = None if training else {name: b.clone() for name, b in model.named_buffers()}
    x = torch.randn(n, widths[0], generator=torch.Generator().manual_seed(9), dtype=F64)
    reference_x, params = x.clone().requires_grad_(), leaves(model)
    order = options["chaos_order"]
    expected = reference.network(
        reference_x,
        reference.operator(edges, n, weights, **graph_options),
        params,
        num_layers=options.get("num_layers", 2),
        chaos_order=order,
        size=reference.default_size(order, options.get("gate_order", 0)),
        activation=ACTIVATIONS[options.get("activation", "relu")],
        readout=options.get("readout", "linear"),
        residual=options.get("residual", False),
        branches=options.get("branches", "sum"),
        norm=options.get("norm"),
        running=running,
    )
    x.requires_grad_()
    op = GraphOperator.from_edge_index(edges, n, weights, dtype=F64, **graph_options)
    z = model(x, op)
    assert z.quadrature_size == reference.default_size(order, options.get("gate_order", 0))
    assert_same(
        z.coefficients, expected, {"x": x, **dict(model.named_parameters())}, {"x": reference_x, **params}
    )


def test_the_network_comparison_notices_one_changed_gate() -> None:
    n, edges, _ = a_graph("undirected")
    model = DSSGNN(4, 5, 3, dropout=0.0).double()
    spread(model)
    x = torch.randn(n, 4, dtype=F64)
    arguments = {"num_layers": 2, "chaos_order": 2, "size": 4, "activation": torch.relu}
    got = model(x, GraphOperator.from_edge_index(edges, n, dtype=F64)).coefficients
    params = leaves(model)
    l_tilde = reference.operator(edges, n)
    assert difference(got, reference.network(x, l_tilde, params, **arguments)) < TOLERANCE
    with torch.no_grad():
        params["layers.0.high_gates"][2, 0] += 1e-6
    assert difference(got, reference.network(x, l_tilde, params, **arguments)) > 100 * TOLERANCE


def test_running_statistics_follow_the_nodes() -> None:
    """momentum 0.1, unbiased variance, each order and channel by itself, as BatchNorm1d's."""
    n, edges, _ = a_graph("undirected")
    model = DSSGNN(3, 4, 2, num_layers=1, norm="batch", dropout=0.0).double()
    x = torch.randn(n, 3, dtype=F64)
    h = torch.stack([x @ model.lift.weight[k] for k in range(3)], dim=1)
    params = reference.under(leaves(model), "layers.0.")
    state = reference.layer(h, reference.operator(edges, n), params, size=4, activation=torch.relu)
    model(x, GraphOperator.from_edge_index(edges, n, dtype=F64))
    buffers = dict(model.named_buffers())
    flat = state.reshape(n, -1).detach()  # order by order
    assert torch.allclose(buffers["norms.0.running_mean"], 0.1 * flat.mean(0), atol=1e-12, rtol=0)
    assert torch.allclose(buffers["norms.0.running_var"], 0.9 + 0.1 * flat.var(0), atol=1e-12, rtol=0)


def hybrid_case(gain: float) -> tuple[DSSHybrid, Tensor, Tensor, Tensor]:
    n, edges, _ = a_graph("undirected")
    base = make_encoder("gcn", 4, 6, 3, dropout=0.0)
    hybrid = DSSHybrid(base, DSSGNN(4, 5, 3, dropout=0.0), residual_scale=gain, warmup_epochs=2).double()
    spread(hybrid.branch)
    with torch.no_grad():
        hybrid.residual_scale.fill_(gain)  # 0.1 in float64, not float32's
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(0), dtype=F64)
    z = reference.network(
        x,
        reference.operator(edges, n),
        leaves(hybrid.branch),
        num_layers=2,
        chaos_order=2,
        size=4,
        activation=torch.relu,
    )
    return hybrid, x, edges, z.detach()


@pytest.mark.parametrize("gain", [0.1, -0.7])
def test_hybrid_combines_and_regularises_as_written(gain: float) -> None:
    """z_0 = base + g Z_0, z_n = g Z_n; the regulariser acts on Z_n, without g."""
    hybrid, x, edges, z = hybrid_case(gain)
    hybrid.start_epoch(2)
    base = hybrid.base(x, edges).detach()
    got = hybrid(x, edges)
    expected = gain * z
    expected[:, 0] += base
    assert difference(got.coefficients, expected) < TOLERANCE
    assert difference(got.chaos_energy, gain**2 * (z[:, 1:] ** 2).sum((1, 2))) < TOLERANCE
    assert difference(got.penalized_energy, (z[:, 1:] ** 2).sum((1, 2))) < TOLERANCE
    hybrid.regularize = "output"  # as in the authors' code
    assert torch.equal(hybrid(x, edges).penalized_energy, got.chaos_energy)
    got.coefficients.sum().backward()
    assert float(hybrid.residual_scale.grad) == pytest.approx(float(z.sum()), abs=1e-9)
    assert all(p.grad is not None for p in hybrid.base.parameters())
    assert all(p.grad is not None for p in hybrid.branch.parameters())


def test_hybrid_warm_up_is_the_base_alone_and_part_of_the_checkpoint() -> None:
    hybrid, x, edges, _ = hybrid_case(0.3)
    hybrid.branch.register_forward_hook(lambda *_: pytest.fail("the branch ran during warm-up"))
    for epoch in (0, 1):
        hybrid.start_epoch(epoch)
        got = hybrid(x, edges)
        assert hybrid.warming_up
        assert got.coefficients.shape == (x.shape[0], 1, 3)
        assert torch.equal(got.mean, hybrid.base(x, edges))
        assert torch.equal(got.penalized_energy, torch.zeros(x.shape[0], dtype=F64))
    got.mean.square().sum().backward()
    for name, p in hybrid.named_parameters():
        assert (p.grad is not None) == name.startswith("base."), name

    trained, *_ = hybrid_case(0.3)
    trained.start_epoch(2)
    assert not trained.warming_up
    restored, *_ = hybrid_case(0.3)
    restored.load_state_dict(trained.state_dict())
    assert not restored.warming_up
    assert torch.equal(restored(x, edges).coefficients, trained(x, edges).coefficients)
