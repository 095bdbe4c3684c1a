"""The fused recurrence against the torch path; on the CPU through Triton's interpreter."""

import pytest
import torch

from dssgnn import GraphOperator
from dssgnn.graph.filter import polynomial_filter

pytest.importorskip("triton", reason="needs Triton: pip install triton")
from dssgnn.kernels import filtering, plan

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

TOLERANCE = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 2e-2}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Rows of more than four entries are long, and a program takes several rows."""
    monkeypatch.setattr(plan, "SEGMENT", 4)
    monkeypatch.setattr(plan, "MOST_PROGRAMS", 5)


def graph(direction, dtype=torch.float64, nodes=9, edges=30):
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes - 2, (2, edges), generator=generator)  # two nodes without neighbours
    weight = torch.rand(edges, generator=generator, dtype=torch.float64)
    return GraphOperator.from_edge_index(
        ends, nodes, weight, direction=direction, normalization="rw", dtype=dtype
    )


def compare(operator, dtype, orders, width, branches, degree, basis="chebyshev", bound=2.0):
    generator = torch.Generator().manual_seed(degree)
    h = torch.randn(operator.num_nodes, orders, width, generator=generator, dtype=torch.float64)
    theta = torch.randn(branches, orders, degree + 1, generator=generator, dtype=torch.float64)
    grad = torch.randn(
        operator.num_nodes, branches, orders, width, generator=generator, dtype=torch.float64
    ).to(dtype)
    h = h.to(dtype)
    exact = operator.to(torch.float64)
    state, coefficients = h.double().requires_grad_(), theta.clone().requires_grad_()
    expected = polynomial_filter(exact.matrix, exact.transposed, state, coefficients, basis, bound)
    expected.backward(grad.double())

    sums = torch.float64 if dtype == torch.float64 else torch.float32
    by_column = theta.to(sums).permute(2, 0, 1).repeat_interleave(width, dim=2)
    operator, h, grad, by_column = (t.to(DEVICE) for t in (operator, h, grad, by_column))
    out = filtering.filter_forward(operator.matrix, h.flatten(1), by_column, basis, bound)
    grad_h, products = filtering.filter_adjoint(
        operator.transposed, h.flatten(1), grad.flatten(2), by_column, basis, bound
    )
    grad_theta = products.view(degree + 1, branches, orders, width).sum(dim=3).permute(1, 2, 0)
    assert out.dtype == grad_h.dtype == dtype
    pairs = ((out, expected), (grad_h, state.grad), (grad_theta, coefficients.grad))
    for ours, reference in pairs:
        error = (ours.cpu().double().flatten() - reference.flatten()).norm() / reference.norm()
        assert error < TOLERANCE[dtype]


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
def test_every_degree(degree, basis):
    """Each has its own order of adding up terms."""
    compare(graph("in"), torch.float64, 2, 3, 1, degree, basis, bound=1.7)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("branches", [1, 2])
def test_types_and_branches(dtype, branches):
    matrix = torch.float64 if dtype == torch.float64 else torch.float32
    compare(graph("both", matrix), dtype, 3, 5, branches, 4)


@pytest.mark.parametrize("segment", [1, 4, 100])
@pytest.mark.parametrize("programs", [1, 3, 10**6])
def test_load_balance_changes_nothing(monkeypatch, segment, programs):
    monkeypatch.setattr(plan, "SEGMENT", segment)
    monkeypatch.setattr(plan, "MOST_PROGRAMS", programs)
    compare(graph("out"), torch.float64, 1, 4, 1, 3)


@pytest.mark.parametrize("segment", [12, 100])
def test_rows_longer_than_a_tile(monkeypatch, segment):
    """More neighbours than a program reads at once, in a row and in a segment."""
    monkeypatch.setattr(plan, "SEGMENT", segment)
    operator = graph("in", nodes=27, edges=900)
    assert int(operator.matrix.crow_indices().diff().max()) > 2 * filtering.NEIGHBOURS
    compare(operator, torch.float64, 1, 3, 2, 4)


def test_wide_offsets(monkeypatch):
    """States of more than 2^31 numbers are addressed with 64 bits."""
    monkeypatch.setattr(filtering, "INT32_NUMBERS", 10)
    compare(graph("both"), torch.float64, 2, 3, 1, 4)


@pytest.mark.parametrize("width", [64, 72, 130])
def test_chunks_of_columns_change_nothing(monkeypatch, width):
    monkeypatch.setattr(filtering, "TERM_BYTES", 1)
    compare(graph("both"), torch.float64, 1, width, 2, 3)


@pytest.mark.parametrize("width", [1, 8, 16, 40, 70])
def test_widths(width):
    """Aligned and not, in one block of columns and in several."""
    compare(graph("both"), torch.float64, 1, width, 1, 2)


def test_no_edges():
    operator = GraphOperator.from_edge_index(torch.empty(2, 0, dtype=torch.int64), 3, dtype=torch.float64)
    compare(operator, torch.float64, 2, 3, 1, 3)


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("degree", range(1, 14))
def test_schedule_adds_every_term_once(degree, lag):
    added = []
    for k, step in enumerate(filtering._schedule(degree, lag), start=1):
        if step.add:
            added += [k, *([k - lag] if step.add_before else []), *([0] if step.add_first else [])]
    assert sorted(added) == list(range(degree + 1))
