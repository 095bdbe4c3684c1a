"""Renumbering changes where nodes stand, and nothing that is learned."""

import pytest
import torch

from dssgnn import DSSGNN, GraphOperator
from dssgnn.data.synthetic import minesweeper
from dssgnn.graph import SparseFeatures, locality_order, renumbered
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded


def bandwidth(graph):
    m = graph.matrix.to_sparse_coo().coalesce().indices()
    return int((m[0] - m[1]).abs().max())


@pytest.mark.parametrize("direction", ["both", "in"])
def test_neighbours_stand_closer(direction):
    board = minesweeper(20, 20)
    shuffle = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    graph = GraphOperator.from_edge_index(shuffle[board.edge_index], 400, direction=direction)
    order = locality_order(graph)
    assert order.sort().values.equal(torch.arange(400))
    assert bandwidth(graph) > 350
    assert bandwidth(renumbered(graph, order)) < 60


def test_operator_is_the_same_matrix_in_another_order():
    board = minesweeper(6, 6)
    weight = torch.rand(board.num_edges, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    graph = GraphOperator.from_edge_index(
        board.edge_index, 36, weight, direction="out", normalization="rw", self_loops=True
    )
    order = locality_order(graph)
    expected = graph.matrix.to_dense()[order][:, order]
    assert torch.allclose(renumbered(graph, order).matrix.to_dense(), expected, atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
def test_training_learns_the_same(sparse):
    data = minesweeper(12, 12)
    data.x = data.x.double()
    task = NodeTask.from_data(data)
    if sparse:
        task = NodeTask(
            SparseFeatures.from_dense(data.x), task.graph, task.y, task.train_mask, task.val_mask, 2
        )
    models = []
    for given in (task, task.reordered()):
        with seeded(0):
            model = DSSGNN(7, 8, 2, dropout=0.0).double()
        fit(model, given, TrainingConfig(epochs=10, patience=None))
        models.append(model)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-9)
