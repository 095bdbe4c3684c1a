"""The random graphs of the speed benchmark have the counts that they claim."""

import pytest
import torch

from dssgnn import GraphOperator
from dssgnn.benchmarks.speed.shapes import SHAPES, draw_operator, draw_pairs
from dssgnn.errors import InputError


@pytest.mark.parametrize("degrees", ["power", "uniform"])
@pytest.mark.parametrize("name", SHAPES)
def test_counts_are_exact(name, degrees):
    shape = SHAPES[name]
    x, edges, y = shape.draw(degrees)
    assert x.shape == (shape.nodes, shape.features)
    assert y.shape == (shape.nodes,)
    assert int(y.max()) == shape.classes - 1
    pairs, back = edges.chunk(2, dim=1)
    assert torch.equal(pairs.flip(0), back)
    low, high = pairs.min(dim=0).values, pairs.max(dim=0).values
    assert bool((low < high).all())
    assert (low * shape.nodes + high).unique().numel() == shape.edges == pairs.size(1)
    largest = int(torch.bincount(edges[0]).max())
    if degrees == "power":
        assert 0.75 * shape.largest_degree < largest < 1.25 * shape.largest_degree
    else:
        assert largest < 4 * 2 * shape.edges / shape.nodes
    assert x.count_nonzero() / x.numel() == pytest.approx(shape.nonzero, rel=0.01)


def test_degrees_follow_the_power_law():
    """The share of nodes above k falls like k^-1.5, so by 8^-1.5 = 0.044 from k to 8 k."""
    pairs = draw_pairs(200_000, 1_000_000, torch.Generator().manual_seed(0), "power")
    degree = torch.bincount(pairs.flatten(), minlength=200_000)
    falls = [(degree > 8 * k).sum() / (degree > k).sum() for k in (20, 40, 80)]
    for fall in falls:
        assert 0.03 < float(fall) < 0.06
    # The number of a node says nothing about its degree.
    assert 0.8 < float(degree[:100_000].sum() / degree[100_000:].sum()) < 1.25


def test_draws_repeat_and_differ_by_seed():
    def draw(seed):
        return draw_pairs(50, 100, torch.Generator().manual_seed(seed))

    assert torch.equal(draw(0), draw(0))
    assert not torch.equal(draw(0), draw(1))


@pytest.mark.parametrize("degrees", ["power", "uniform"])
def test_complete_graph_and_too_many_edges(degrees):
    generator = torch.Generator().manual_seed(0)
    assert draw_pairs(7, 21, generator, degrees).sort(dim=0).values.unique(dim=1).size(1) == 21
    with pytest.raises(InputError, match="at most 21 edges, got 22"):
        draw_pairs(7, 22, generator, degrees)


@pytest.mark.parametrize(("nodes", "edges"), [(2, 1), (30, 12), (500, 2500)])
def test_operator_built_on_the_device_is_the_librarys(nodes, edges):
    pairs = draw_pairs(nodes, edges, torch.Generator().manual_seed(3))
    ours, theirs = draw_operator(pairs, nodes), GraphOperator.from_edge_index(pairs, nodes)
    for part in ("crow_indices", "col_indices", "values"):
        a, b = (getattr(op.matrix, part)() for op in (ours, theirs))
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    assert (ours.options, ours.lambda_max) == (theirs.options, theirs.lambda_max)
    assert ours.symmetric
    # The edges it keeps are those it was made of.
    wider, exact = ours.to(torch.float64), theirs.to(torch.float64)
    assert torch.equal(wider.matrix.values(), exact.matrix.values())
