"""Polynomial filters: equal to dense matrix polynomials, exact gradients, memory that does not grow with K."""

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

import reference
from dssgnn import DSSGNN, DSSConv, GraphOperator
from dssgnn.graph import polynomial_filter

F64 = torch.float64

SYMMETRIC = {}
DIRECTED = {"direction": "in", "normalization": "rw"}
NODES = 8


def some_edges(seed: int = 0) -> Tensor:
    return torch.randint(0, NODES - 1, (2, 15), generator=torch.Generator().manual_seed(seed))


def some_weights() -> Tensor:
    return torch.rand(15, generator=torch.Generator().manual_seed(7), dtype=F64) + 0.1


def inputs(branches: int, degree: int, orders: int = 3, width: int = 2) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(branches * 31 + degree)
    h = torch.randn(NODES, orders, width, generator=g, dtype=F64)
    return h, torch.randn(branches, orders, degree + 1, generator=g, dtype=F64)


def dense_filter(l_tilde: Tensor, h: Tensor, theta: Tensor, basis: str, bound: float) -> Tensor:
    degree = theta.shape[2] - 1
    eye = torch.eye(NODES, dtype=F64)
    if basis == "chebyshev":
        matrices = reference.chebyshev(l_tilde, degree)
    else:
        matrices = reference.monomials(eye - (bound / 2) * (l_tilde + eye), degree)
    out = torch.zeros(NODES, theta.shape[0], *h.shape[1:], dtype=F64)
    for r in range(theta.shape[0]):
        for n in range(theta.shape[1]):
            polynomial = sum(theta[r, n, k] * matrices[k] for k in range(degree + 1))
            out[:, r, n] = polynomial @ h[:, n]
    return out


@pytest.mark.parametrize("bound", [2.0, 1.4])
@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
@pytest.mark.parametrize("options", [SYMMETRIC, DIRECTED], ids=["symmetric", "directed"])
@pytest.mark.parametrize("branches", [1, 2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 6])
def test_values_and_gradients_of_the_dense_polynomial(
    degree: int, branches: int, options: dict, basis: str, bound: float
) -> None:
    h, theta = inputs(branches, degree)
    op = GraphOperator.from_edge_index(some_edges(), NODES, some_weights(), lambda_max=bound, **options)
    l_tilde = reference.operator(some_edges(), NODES, some_weights(), lambda_max=bound, **options)
    found, wanted = [], []
    for apply, results in (
        (lambda a, b: op.filter(a, b, basis), found),
        (lambda a, b: dense_filter(l_tilde, a, b, basis, bound), wanted),
    ):
        a, b = h.clone().requires_grad_(), theta.clone().requires_grad_()
        out = apply(a, b)
        cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=F64)
        results.extend([out.detach(), *torch.autograd.grad(out, (a, b), cotangent)])
    for got, expected in zip(found, wanted, strict=True):
        assert got.shape == expected.shape
        assert (got - expected).abs().max() < 1e-11 * max(1.0, float(expected.abs().max()))


@pytest.mark.parametrize("bound", [2.0, 1.4])
@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
@pytest.mark.parametrize("options", [SYMMETRIC, DIRECTED], ids=["symmetric", "directed"])
@pytest.mark.parametrize("branches", [1, 2])
def test_gradcheck(branches: int, options: dict, basis: str, bound: float) -> None:
    h, theta = inputs(branches, degree=4, orders=2)
    op = GraphOperator.from_edge_index(some_edges(), NODES, some_weights(), lambda_max=bound, **options)
    arguments = (h.requires_grad_(), theta.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: op.filter(a, b, basis), arguments)


def test_gradcheck_notices_the_wrong_transpose() -> None:
    """The negative twin: without the transpose the adjoint of a directed operator is wrong."""
    h, theta = inputs(1, degree=3, orders=2)
    op = GraphOperator.from_edge_index(some_edges(), NODES, some_weights(), **DIRECTED)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(
            lambda a: polynomial_filter(op.matrix, op.matrix, a, theta), (h.requires_grad_(),)
        )


@pytest.mark.parametrize("branches", [1, 2])
@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
def test_many_nodes_are_many_small_graphs(basis: str, branches: int) -> None:
    """A graph too large for the cache, whose columns go block by block: copies of one with a dense answer."""
    copies, orders, width = 5000, 3, 7
    edges, weights = some_edges(), some_weights()
    shift = NODES * torch.arange(copies).repeat_interleave(edges.shape[1])
    op = GraphOperator.from_edge_index(
        edges.repeat(1, copies) + shift, NODES * copies, weights.repeat(copies), lambda_max=1.4, **DIRECTED
    )
    l_tilde = reference.operator(edges, NODES, weights, lambda_max=1.4, **DIRECTED)
    g = torch.Generator().manual_seed(0)
    h = torch.randn(copies * NODES, orders, width, generator=g, dtype=F64).requires_grad_()
    theta = torch.randn(branches, orders, 4, generator=g, dtype=F64).requires_grad_()
    out = op.filter(h, theta, basis)
    cotangent = torch.randn(out.shape, generator=g, dtype=F64)
    grad_h, grad_theta = torch.autograd.grad(out, (h, theta), cotangent)

    # The copies side by side as channels of the small graph.
    side = h.detach().reshape(copies, NODES, orders, width).permute(1, 2, 0, 3).flatten(2).requires_grad_()
    dense_theta = theta.detach().clone().requires_grad_()
    expected = dense_filter(l_tilde, side, dense_theta, basis, 1.4)
    beside = cotangent.reshape(copies, NODES, branches, orders, width).permute(1, 2, 3, 0, 4).flatten(3)
    want_h, want_theta = torch.autograd.grad(expected, (side, dense_theta), beside)

    def back(t: Tensor) -> Tensor:
        return t.unflatten(-1, (copies, width)).movedim(-2, 0).flatten(0, 1)

    assert (out - back(expected)).abs().max() < 1e-12
    assert (grad_h - back(want_h)).abs().max() < 1e-12
    assert (grad_theta - want_theta).abs().max() < 1e-11 * float(want_theta.abs().max())


@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
def test_inputs_are_left_alone(basis: str) -> None:
    """The recurrence reuses its buffers, never the caller's."""
    h, theta = inputs(2, degree=6)
    op = GraphOperator.from_edge_index(some_edges(), NODES, dtype=F64)
    before, coefficients = h.clone(), theta.clone()
    h.requires_grad_()
    out = op.filter(h, theta.requires_grad_(), basis)
    kept = out.detach().clone()
    cotangent = torch.randn_like(out)
    cotangent_before = cotangent.clone()
    out.backward(cotangent)
    assert torch.equal(h.detach(), before)
    assert torch.equal(theta.detach(), coefficients)
    assert torch.equal(cotangent, cotangent_before)
    assert torch.equal(out.detach(), kept)


def test_only_the_gradients_asked_for() -> None:
    op = GraphOperator.from_edge_index(some_edges(), NODES, dtype=F64)
    h, theta = inputs(2, degree=3)
    both_h, both_theta = h.clone().requires_grad_(), theta.clone().requires_grad_()
    op.filter(both_h, both_theta).square().sum().backward()
    alone_h, alone_theta = h.clone().requires_grad_(), theta.clone().requires_grad_()
    op.filter(alone_h, theta).square().sum().backward()
    op.filter(h, alone_theta).square().sum().backward()
    assert torch.equal(alone_h.grad, both_h.grad)
    assert torch.equal(alone_theta.grad, both_theta.grad)


def saved_bytes(function, num_nodes: int) -> tuple[int, int]:
    """Bytes kept for the backward pass: in tensors with a row a node, and in all the others (coefficients)."""
    storages: dict[int, tuple[int, bool]] = {}

    def pack(t: Tensor) -> Tensor:
        big = t.numel() >= num_nodes
        storages[t.untyped_storage().data_ptr()] = (t.untyped_storage().nbytes(), big)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = function()
    assert out.requires_grad
    sizes = list(storages.values())
    return sum(b for b, big in sizes if big), sum(b for b, big in sizes if not big)


def big_graph() -> tuple[int, GraphOperator]:
    n = 500
    edges = torch.randint(0, n, (2, 2000), generator=torch.Generator().manual_seed(0))
    return n, GraphOperator.from_edge_index(edges, n, direction="in")


@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
def test_filter_keeps_its_input_alone(basis: str) -> None:
    n, op = big_graph()
    h = torch.randn(n, 3, 8, requires_grad=True)
    kept = {}
    for degree in (2, 16):
        theta = torch.randn(1, 3, degree + 1, requires_grad=True)
        kept[degree] = saved_bytes(lambda t=theta: op.filter(h, t, basis), n)
        assert kept[degree] == (h.numel() * 4, theta.numel() * 4)
    assert kept[2][0] == kept[16][0]


@pytest.mark.parametrize("gate_order", [0, 1])
@pytest.mark.parametrize("widths", [(8, 16), (16, 8)])
def test_memory_of_a_layer_does_not_grow_with_the_degree(widths: tuple[int, int], gate_order: int) -> None:
    n, op = big_graph()
    h = torch.randn(n, 3, widths[0], requires_grad=True)

    def kept(degree: int) -> int:
        conv = DSSConv(*widths, 2, filter_orders=(degree, degree), gate_order=gate_order)
        return saved_bytes(lambda: conv(h, op), n)[0]

    assert 0 < kept(2) == kept(16)


@pytest.mark.parametrize("readout", ["linear", "filtered"])
def test_memory_of_a_network_does_not_grow_with_the_degree(readout: str) -> None:
    n, op = big_graph()
    x = torch.randn(n, 10)

    def kept(degree: int) -> int:
        model = DSSGNN(10, 16, 4, filter_orders=(degree, degree), readout=readout)
        return saved_bytes(lambda: model(x, op).coefficients, n)[0]

    assert 0 < kept(2) == kept(16)


def test_the_memory_check_notices_a_tape() -> None:
    """The negative twin: a filter written with autograd keeps one state a degree."""
    n, op = big_graph()
    h = torch.randn(n, 6, requires_grad=True)

    def taped(degree: int) -> Tensor:
        theta = torch.randn(degree + 1, requires_grad=True)
        return sum(theta[k] * (op @ h * (k + 1)) for k in range(degree + 1))

    assert saved_bytes(lambda: taped(16), n)[0] > 4 * saved_bytes(lambda: taped(2), n)[0]


def test_autocast_leaves_the_filter_in_the_operators_type() -> None:
    h, theta = inputs(2, degree=3)
    op = GraphOperator.from_edge_index(some_edges(), NODES)
    exact = op.filter(h.float(), theta.float())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(op.filter(h.float(), theta.float()), exact)
        half = op.filter(h.bfloat16(), theta.float())
    assert half.dtype == torch.float32
    assert (half - exact).abs().max() < 0.05 * exact.abs().max()
