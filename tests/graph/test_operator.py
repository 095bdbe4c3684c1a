"""`GraphOperator` against a dense matrix built edge by edge; `OperatorCache` and its memory."""

import copy
import itertools
import math
import pickle

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import reference
from dssgnn import GraphOperator
from dssgnn.errors import InputError
from dssgnn.graph import OperatorCache

F64 = torch.float64
NORMALIZATIONS = ("sym", "rw", "col")
DIRECTIONS = ("both", "in", "out")


def dense(op: GraphOperator) -> Tensor:
    return op @ torch.eye(op.num_nodes, dtype=op.dtype)


def edges_of(*pairs: tuple[int, int]) -> Tensor:
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T.contiguous()


# Loops (twice, on node 1), duplicates (0 -> 1 three times), one direction only, nodes 5 and 6 isolated; node 5
# but for its loop.
EDGES = edges_of(
    (0, 1), (0, 1), (1, 0), (1, 2), (2, 3), (3, 1), (1, 1), (1, 1), (4, 0), (0, 1), (4, 3), (5, 5), (2, 4)
)
WEIGHTS = torch.tensor([0.5, 1.25, 2.0, 0.1, 3.0, 0.7, 0.4, 0.3, 1.0, 0.05, 0.0, 2.5, 1.1], dtype=F64)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_equals_the_dense_operator(normalization: str, direction: str, weighted: bool) -> None:
    weights = WEIGHTS if weighted else None
    for self_loops, symmetrize, bound in itertools.product(
        (False, True, "keep"), ("max", "mean"), (2.0, 1.5, "estimate")
    ):
        options = {
            "normalization": normalization,
            "direction": direction,
            "self_loops": self_loops,
            "symmetrize": symmetrize,
            "lambda_max": bound,
        }
        if bound == "estimate" and (normalization, direction) != ("sym", "both"):
            with pytest.raises(InputError, match=rf"estimate.*{direction}.*{normalization}"):
                GraphOperator.from_edge_index(EDGES, 7, weights, dtype=F64, **options)
            continue
        op = GraphOperator.from_edge_index(EDGES, 7, weights, dtype=F64, **options)
        expected = reference.operator(EDGES, 7, weights, **options)
        assert (dense(op) - expected).abs().max() < 1e-14, options
        assert op.symmetric is ((direction, normalization) == ("both", "sym"))
        assert (op.transposed.to_dense() - expected.T).abs().max() < 1e-14, options
        assert op.options == options


def test_known_values() -> None:
    """A path 0 - 1 - 2 and an isolated node, by hand."""
    op = GraphOperator.from_edge_index(edges_of((0, 1), (1, 0), (1, 2), (2, 1)), 4, dtype=F64)
    r = 1 / math.sqrt(2)
    expected = torch.tensor([[0, -r, 0, 0], [-r, 0, -r, 0], [0, -r, 0, 0], [0, 0, 0, 0]], dtype=F64)
    assert torch.allclose(dense(op), expected, atol=1e-15, rtol=0)
    directed = GraphOperator.from_edge_index(
        edges_of((0, 1), (0, 1), (2, 1)), 3, direction="in", normalization="rw", dtype=F64
    )
    assert torch.allclose(
        dense(directed), torch.tensor([[0, 0, 0], [-2 / 3, 0, -1 / 3], [0, 0, 0]], dtype=F64), atol=1e-15
    )
    # The GCN operator: A + I with degrees 2 and 2, negated.
    gcn = GraphOperator.from_edge_index(edges_of((0, 1)), 2, self_loops=True, dtype=F64)
    assert torch.allclose(dense(gcn), torch.full((2, 2), -0.5, dtype=F64), atol=1e-15)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("nodes", [1, 6])
def test_no_edges(nodes: int, normalization: str) -> None:
    empty = torch.empty(2, 0, dtype=torch.long)
    op = GraphOperator.from_edge_index(empty, nodes, normalization=normalization, dtype=F64)
    assert torch.equal(dense(op), torch.zeros(nodes, nodes, dtype=F64))
    op = GraphOperator.from_edge_index(empty, nodes, normalization=normalization, self_loops=True, dtype=F64)
    assert torch.equal(dense(op), -torch.eye(nodes, dtype=F64))
    op = GraphOperator.from_edge_index(empty, nodes, normalization=normalization, lambda_max=1.5, dtype=F64)
    assert torch.allclose(dense(op), torch.eye(nodes, dtype=F64) / 3, atol=1e-15)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Tensor, Tensor | None]:
    nodes = draw(st.integers(1, 9))
    pairs = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=25))
    edge_index = edges_of(*pairs)
    weight = None
    if draw(st.booleans()):
        values = draw(st.lists(st.floats(0, 100), min_size=len(pairs), max_size=len(pairs)))
        weight = torch.tensor([0.0 if v < 1e-6 else v for v in values], dtype=F64)
    return nodes, edge_index, weight


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    graphs(),
    st.sampled_from(NORMALIZATIONS),
    st.sampled_from(DIRECTIONS),
    st.sampled_from([False, True, "keep"]),
    st.sampled_from(["max", "mean"]),
    st.sampled_from([2.0, 1.5]),
)
def test_any_graph_equals_the_dense_operator(
    graph: tuple, normalization: str, direction: str, self_loops: bool | str, symmetrize: str, bound: float
) -> None:
    nodes, edge_index, weight = graph
    options = {
        "normalization": normalization,
        "direction": direction,
        "self_loops": self_loops,
        "symmetrize": symmetrize,
        "lambda_max": bound,
    }
    op = GraphOperator.from_edge_index(edge_index, nodes, weight, dtype=F64, **options)
    expected = reference.operator(edge_index, nodes, weight, **options)
    assert (dense(op) - expected).abs().max() < 1e-13
    h = torch.linspace(-1, 2, nodes * 3, dtype=F64).reshape(nodes, 3).requires_grad_()
    g = torch.linspace(3, -2, nodes * 3, dtype=F64).reshape(nodes, 3)
    out = op @ h
    assert (out - expected @ h).abs().max() < 1e-12
    (gradient,) = torch.autograd.grad(out, h, g)
    assert (gradient - expected.T @ g).abs().max() < 1e-12


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from(NORMALIZATIONS), st.sampled_from(DIRECTIONS))
def test_duplicates_count_as_the_sum_of_their_weights(
    graph: tuple, normalization: str, direction: str
) -> None:
    nodes, edge_index, weight = graph
    weight = torch.ones(edge_index.shape[1], dtype=F64) if weight is None else weight
    merged: dict[tuple[int, int], float] = {}
    for e in range(edge_index.shape[1]):
        pair = (int(edge_index[0, e]), int(edge_index[1, e]))
        merged[pair] = merged.get(pair, 0.0) + float(weight[e])
    options = {"normalization": normalization, "direction": direction, "dtype": F64}
    once = GraphOperator.from_edge_index(
        edges_of(*merged), nodes, torch.tensor(list(merged.values()), dtype=F64), **options
    )
    many = GraphOperator.from_edge_index(edge_index, nodes, weight, **options)
    assert (dense(once) - dense(many)).abs().max() < 1e-13


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 4), (7, 3, 5), (7, 0), (7, 2, 1, 3)])
def test_product_along_the_first_dimension(shape: tuple[int, ...]) -> None:
    options = {"direction": "in", "normalization": "rw", "lambda_max": 1.7}
    op = GraphOperator.from_edge_index(EDGES, 7, WEIGHTS, **options)
    h = torch.randn(shape, dtype=F64)
    expected = torch.einsum("ij,j...->i...", reference.operator(EDGES, 7, WEIGHTS, **options), h)
    assert (op @ h).shape == shape
    assert torch.allclose(op @ h, expected, atol=1e-14, rtol=0)
    strided = torch.randn(*shape[1:], 7, dtype=F64).movedim(-1, 0)
    assert torch.allclose(op @ strided, op @ strided.contiguous(), atol=0, rtol=0)


def test_the_product_is_twice_differentiable() -> None:
    op = GraphOperator.from_edge_index(EDGES, 7, WEIGHTS, direction="in", normalization="col")
    h = torch.randn(7, 2, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: op @ v, h)
    assert torch.autograd.gradgradcheck(lambda v: (op @ v) ** 2, h)


def test_row_and_column_sums() -> None:
    """Rows of "rw" and columns of "col" sum to one where there is an edge at all."""
    for direction in DIRECTIONS:
        rw = -dense(
            GraphOperator.from_edge_index(
                EDGES, 7, WEIGHTS, normalization="rw", direction=direction, dtype=F64
            )
        )
        col = -dense(
            GraphOperator.from_edge_index(
                EDGES, 7, WEIGHTS, normalization="col", direction=direction, dtype=F64
            )
        )
        for sums in (rw.sum(1), col.sum(0)):
            assert ((sums - 1).abs().lt(1e-14) | sums.eq(0)).all()
        assert rw.sum(1)[6] == 0


def test_keeps_what_it_was_given() -> None:
    weights = WEIGHTS.float()
    op = GraphOperator.from_edge_index(EDGES, 9, weights)
    assert op.edge_index is EDGES
    assert op.edge_weight is weights
    assert (op.num_nodes, op.lambda_max) == (9, 2.0)
    assert GraphOperator.from_edge_index(EDGES).num_nodes == 6
    assert GraphOperator.from_edge_index(EDGES).edge_weight is None
    int32 = GraphOperator.from_edge_index(EDGES.int(), 7, WEIGHTS)
    assert torch.equal(dense(int32), dense(GraphOperator.from_edge_index(EDGES, 7, WEIGHTS)))


def test_a_wider_type_is_exact() -> None:
    """to(float64) of a float32 operator is the float64 operator, not a rounded one in wider clothes."""
    exact = GraphOperator.from_edge_index(EDGES, 7, WEIGHTS, lambda_max=1.3, dtype=F64)
    narrow = GraphOperator.from_edge_index(EDGES, 7, WEIGHTS, lambda_max=1.3, dtype=torch.float32)
    assert narrow.dtype == torch.float32
    assert (dense(narrow).double() - dense(exact)).abs().max() > 1e-10
    assert torch.equal(dense(narrow.to(F64)), dense(exact))
    assert torch.equal(dense(exact.to(torch.float32)), dense(exact).float())
    assert torch.equal(dense(exact.to(torch.float32).to(F64)), dense(exact))
    assert exact.to(F64) is exact
    assert exact.to("cpu") is exact
    for moved in (narrow.to(F64), exact.to(torch.float32)):
        assert moved.edge_index is EDGES
        assert moved.edge_weight is WEIGHTS
        assert moved.lambda_max == 1.3
        assert moved.options == exact.options


def ring(n: int, chords: int = 0) -> Tensor:
    i = torch.arange(n)
    extra = torch.randint(0, n, (2, chords), generator=torch.Generator().manual_seed(n))
    return torch.cat([torch.stack([i, (i + 1) % n]), extra], dim=1)


ESTIMATED = {
    "ring": (5, ring(5)),
    "dense solver": (32, ring(32, 40)),
    "Lanczos": (33, ring(33, 40)),
    "bipartite": (64, ring(64)),
    "random": (150, ring(150, 600)),
    "isolated": (90, ring(40, 60)),
    "complete": (41, torch.cartesian_prod(torch.arange(41), torch.arange(41)).T),
    "pairs": (50, torch.stack([torch.arange(0, 50, 2), torch.arange(1, 50, 2)])),
    "no edges": (60, torch.empty(2, 0, dtype=torch.long)),
}


@pytest.mark.parametrize(
    ("name", "self_loops"), [*((name, False) for name in ESTIMATED), ("random", True), ("complete", True)]
)
def test_estimate_is_the_largest_eigenvalue(name: str, self_loops: bool) -> None:
    nodes, edge_index = ESTIMATED[name]
    laplacian = torch.eye(nodes, dtype=F64) - reference.normalized(
        reference.adjacency(edge_index, nodes, self_loops=self_loops)
    )
    top = float(torch.linalg.eigvalsh(laplacian)[-1])
    op = GraphOperator.from_edge_index(
        edge_index, nodes, self_loops=self_loops, lambda_max="estimate", dtype=F64
    )
    assert top - 1e-6 <= op.lambda_max <= top + 1e-6
    assert torch.linalg.eigvalsh(dense(op)).abs().max() < 1 + 1e-5
    expected = (2 / op.lambda_max) * laplacian - torch.eye(nodes, dtype=F64)
    assert torch.allclose(dense(op), expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("nodes", [1, 3, 40])
def test_no_spectrum_to_estimate(nodes: int) -> None:
    """Loops alone give L = 0: there is no bound to divide by, and the message says so."""
    empty = torch.empty(2, 0, dtype=torch.long)
    with pytest.raises(InputError, match="lambda_max"):
        GraphOperator.from_edge_index(empty, nodes, self_loops=True, lambda_max="estimate")


def test_copies() -> None:
    op = GraphOperator.from_edge_index(EDGES, 7, WEIGHTS, direction="in", normalization="rw")
    for other in (pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op)):
        assert torch.equal(dense(other), dense(op))
        assert torch.equal(other.edge_index, EDGES)
        assert torch.equal(other.edge_weight, WEIGHTS)
        assert torch.equal(other.transposed.to_dense(), op.transposed.to_dense())


def test_cache_reuses_the_same_tensor() -> None:
    cache, x = OperatorCache(), torch.zeros(7, 2)
    op = cache(EDGES, x)
    assert cache(EDGES, x) is op
    assert cache(EDGES, torch.ones(7, 3, 4)) is op
    assert cache(op, x) is op
    assert cache(EDGES.clone(), x) is not op
    assert torch.equal(dense(op), dense(GraphOperator.from_edge_index(EDGES, 7)))


def test_cache_notices_what_changed() -> None:
    cache, x = OperatorCache(), torch.zeros(7, 2, dtype=F64)
    edge_index, weight = EDGES.clone(), WEIGHTS.clone()

    def expect(w: Tensor | None) -> GraphOperator:
        op = cache(edge_index, x, w)
        assert torch.allclose(dense(op), reference.operator(edge_index, 7, w), atol=1e-14, rtol=0)
        return op

    first = expect(None)
    edge_index[1, 0] = 5
    second = expect(None)
    assert second is not first
    third = expect(weight)
    assert third is not second
    assert expect(weight) is third
    weight[0] = 9.0
    fourth = expect(weight)
    assert fourth is not third
    assert expect(weight.clone()) is not fourth
    assert expect(None) is not fourth


def test_cache_follows_the_state() -> None:
    """Another number of nodes or another precision is another operator."""
    cache = OperatorCache()
    small = cache(EDGES, torch.zeros(7, 2))
    assert (small.num_nodes, small.dtype) == (7, torch.float32)
    assert cache(EDGES, torch.zeros(9, 2)).num_nodes == 9
    assert cache(EDGES, torch.zeros(7, 2, dtype=F64)).dtype == F64
    assert cache(EDGES, torch.zeros(7, 2, dtype=torch.bfloat16)).dtype == torch.float32


def test_cache_passes_its_options_and_copies_empty() -> None:
    cache = OperatorCache(normalization="rw", direction="in")
    x = torch.zeros(7, 1, dtype=F64)
    op = cache(EDGES, x)
    expected = reference.operator(EDGES, 7, normalization="rw", direction="in")
    for other in (cache, copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert torch.allclose(dense(other(EDGES, x)), expected, atol=1e-14, rtol=0)
    assert copy.deepcopy(cache)(EDGES, x) is not op
