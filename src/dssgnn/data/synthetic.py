"""Graphs that need no download."""

import numpy as np
import torch
from torch_geometric.data import Data

from dssgnn.validation import check_count, check_share

__all__ = ["minesweeper"]


def minesweeper(
    rows: int = 100,
    columns: int = 100,
    seed: int = 0,
    *,
    mine_share: float = 0.2,
    hidden_share: float = 0.5,
) -> Data:
    """A Minesweeper board by the rule of Platonov et al. (2023): find the mines.

    Cells are nodes, joined to their (up to) eight neighbours. A fifth of them are mines, the label. The seven
    feature columns are a one-hot code: the first says that the cell is hidden, the others give the number of
    neighbouring mines, with 5 and more merged. Half of the cells are hidden.

    Args:
        rows: of the board.
        columns: of the board.
        seed: of the mines, the hidden cells and the split.
        mine_share: of the cells.
        hidden_share: of the cells.

    Returns:
        ``Data`` with ``x [N, 7]``, ``edge_index``, ``y [N]`` and a random 50/25/25 split as masks.

    Example:
        >>> board = minesweeper(4, 5)
        >>> board.num_nodes, board.num_edges, int(board.y.sum())
        (20, 110, 4)
    """
    check_count(rows, "rows", minimum=2)
    check_count(columns, "columns", minimum=2)
    for name, share in (("mine_share", mine_share), ("hidden_share", hidden_share)):
        check_share(share, name)
    rng = np.random.default_rng(seed)
    size = rows * columns
    cells = np.arange(size).reshape(rows, columns)
    pairs = [
        (cells[:, :-1], cells[:, 1:]),
        (cells[:-1], cells[1:]),
        (cells[:-1, :-1], cells[1:, 1:]),
        (cells[:-1, 1:], cells[1:, :-1]),
    ]
    one_way = np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in pairs], axis=1)
    edges = np.concatenate([one_way, one_way[::-1]], axis=1)
    edges = edges[:, np.lexsort(edges[::-1])]

    mine = np.zeros(size, dtype=np.int64)
    mine[rng.permutation(size)[: round(mine_share * size)]] = 1
    count = np.bincount(edges[1], weights=mine[edges[0]], minlength=size).astype(np.int64)
    code = 1 + np.minimum(count, 5)
    code[rng.permutation(size)[: round(hidden_share * size)]] = 0

    order = rng.permutation(size)
    part = np.zeros(size, dtype=np.int64)
    part[order[size // 2 :]] = 1
    part[order[size // 2 + size // 4 :]] = 2
    train, val, test = (torch.from_numpy(part == p) for p in range(3))
    return Data(
        x=torch.eye(7)[torch.from_numpy(code)],
        edge_index=torch.from_numpy(np.ascontiguousarray(edges)),
        y=torch.from_numpy(mine),
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )
