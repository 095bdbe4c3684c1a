"""The generated board against the rule, cell by cell, and against the real file's statistics."""

import numpy as np
import pytest
import torch

from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError


def neighbours(rows, columns, cell):
    r, c = divmod(cell, columns)
    around = [(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    return {a * columns + b for a, b in around if 0 <= a < rows and 0 <= b < columns}


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 7), (9, 5)])
def test_rule_cell_by_cell(rows, columns):
    board = minesweeper(rows, columns, seed=4, mine_share=0.4)
    found = {cell: set() for cell in range(rows * columns)}
    for source, target in board.edge_index.T.tolist():
        found[target].add(source)
    assert found == {cell: neighbours(rows, columns, cell) for cell in found}
    assert board.num_edges == sum(map(len, found.values()))
    for cell in found:
        code = int(board.x[cell].argmax())
        assert board.x[cell].sum() == 1
        mines = sum(int(board.y[n]) for n in found[cell])
        assert code in (0, 1 + min(mines, 5))


def test_shares_and_split():
    board = minesweeper(20, 30, seed=1)
    assert int(board.y.sum()) == 120
    assert int(board.x[:, 0].sum()) == 300
    masks = torch.stack([board.train_mask, board.val_mask, board.test_mask])
    assert masks.sum(0).eq(1).all()
    assert masks.sum(1).tolist() == [300, 150, 150]


def test_seed():
    first, again, other = minesweeper(seed=0), minesweeper(seed=0), minesweeper(seed=1)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.train_mask, again.train_mask)
    assert not torch.equal(first.y, other.y)


def test_against_the_real_file(data_root):
    real = np.load(
        data_root / "HeterophilousGraphDataset" / "minesweeper" / "raw" / "minesweeper.npz",
        allow_pickle=False,
    )
    board = minesweeper(100, 100)
    upper = board.edge_index[:, board.edge_index[0] < board.edge_index[1]].T.numpy()
    assert np.array_equal(np.sort(upper, axis=0), np.sort(real["edges"], axis=0))
    assert {tuple(e) for e in upper.tolist()} == {tuple(e) for e in real["edges"].tolist()}
    assert int(board.y.sum()) == int(real["node_labels"].sum())
    assert int(board.x[:, 0].sum()) == int(real["node_features"][:, 0].sum())
    # Counts of neighbouring mines: the same distribution, within five standard errors of a draw.
    drawn = np.stack([minesweeper(100, 100, seed=s).x.sum(0).numpy() for s in range(20)])
    spread = drawn.std(axis=0) + 1
    assert (np.abs(real["node_features"].sum(0) - drawn.mean(axis=0)) < 5 * spread).all()
    # The rule holds in the real file too: visible codes count the neighbouring mines.
    graph = minesweeper(100, 100).edge_index.numpy()
    mines = np.bincount(graph[1], weights=real["node_labels"][graph[0]], minlength=10_000)
    code = real["node_features"].argmax(1)
    assert (code[code > 0] == 1 + np.minimum(mines, 5)[code > 0]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 1}, "rows must be an integer >= 2, got 1"),
        ({"mine_share": 1.5}, r"mine_share must be in \[0, 1\], got 1.5"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        minesweeper(**options)
