"""Preparation variants against dense matrices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from dssgnn.data.prepare import Preparation, normalize_rows, prepare, set_self_loops, symmetrize_edges
from dssgnn.errors import InputError


def dense(edge_index, nodes, weight=None):
    """The adjacency matrix, repeated entries summed."""
    out = torch.zeros(nodes, nodes)
    out.index_put_(
        tuple(edge_index), torch.ones(edge_index.size(1)) if weight is None else weight, accumulate=True
    )
    return out


@st.composite
def edge_lists(draw):
    nodes = draw(st.integers(1, 6))
    pairs = draw(st.sets(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=15))
    return nodes, torch.tensor(sorted(pairs), dtype=torch.int64).reshape(-1, 2).T.contiguous()


@settings(max_examples=60, deadline=None)
@given(edge_lists())
def test_edges_match_the_matrix(case):
    nodes, edge_index = case
    matrix = dense(edge_index, nodes)
    both = torch.maximum(matrix, matrix.T)
    assert torch.equal(dense(symmetrize_edges(edge_index, nodes)[0], nodes), both)
    assert torch.equal(dense(set_self_loops(edge_index, nodes, "keep")[0], nodes), matrix)
    off_diagonal = matrix - torch.diag(matrix.diag())
    assert torch.equal(dense(set_self_loops(edge_index, nodes, "drop")[0], nodes), off_diagonal)
    # A + I: a native loop ends with diagonal 2.
    assert torch.equal(dense(set_self_loops(edge_index, nodes, "add")[0], nodes), matrix + torch.eye(nodes))


def test_weights_travel_with_their_edges():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]])
    weight = torch.tensor([2.0, 5.0, 3.0, 7.0])
    index, symmetric = symmetrize_edges(edge_index, 3, weight)
    expected = torch.tensor([[0.0, 5.0, 0.0], [5.0, 0.0, 3.0], [0.0, 3.0, 7.0]])
    assert torch.equal(dense(index, 3, symmetric), expected)
    index, kept = set_self_loops(edge_index, 3, "drop", weight)
    assert kept.tolist() == [2.0, 5.0, 3.0]
    index, more = set_self_loops(edge_index, 3, "add", weight)
    assert dense(index, 3, more).diag().tolist() == [1.0, 1.0, 8.0]


def test_rows_sum_to_one_and_zero_rows_stay():
    x = torch.tensor([[2.0, 0.0, 6.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 0.0]])
    assert normalize_rows(x).tolist() == [[0.25, 0.0, 0.75], [0.0, 0.0, 0.0], [-0.25, 0.75, 0.0]]


def test_pyg_features_are_pygs():
    data = Data(
        x=torch.tensor([[-1.0, 0.5], [0.0, 0.2], [-1.0, -1.0]]),
        edge_index=torch.zeros(2, 0, dtype=torch.int64),
    )
    expected = NormalizeFeatures()(data.clone()).x
    assert torch.equal(prepare(data, Preparation(features="pyg")).x, expected)


def test_prepare_leaves_its_argument_alone():
    data = Data(
        x=torch.tensor([[1.0, 3.0], [0.0, 2.0]]),
        edge_index=torch.tensor([[0, 1], [1, 1]]),
        y=torch.tensor([0, 1]),
    )
    out = prepare(data, Preparation("row", "undirected", "drop"))
    assert out.edge_index.T.tolist() == [[0, 1], [1, 0]]
    assert out.x.tolist() == [[0.25, 0.75], [0.0, 1.0]]
    assert out.y is data.y
    assert data.edge_index.T.tolist() == [[0, 1], [1, 1]]
    assert data.x.tolist() == [[1.0, 3.0], [0.0, 2.0]]
    assert "edge_weight" not in out


@pytest.mark.parametrize("wrong", [{"features": "l2"}, {"edges": "both"}, {"self_loops": True}])
def test_other_values_are_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=f"{name} must be one of .*, got {value!r}"):
        Preparation(**wrong)
