"""The splits of a catalog graph as tasks that can be trained together."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from dssgnn.data import load, make_split
from dssgnn.training import NodeTask

__all__ = ["nodes_and_direction", "split_tasks"]


def split_tasks(
    name: str,
    splits: Iterable[int],
    device: torch.device | str,
    preparation: Mapping[str, Any] | None = None,
    **operator: Any,
) -> list[NodeTask]:
    """One task a split; features, operator and labels are the same objects in all of them.

    Args:
        name: in the catalog.
        splits: published ones, by number.
        device: where they go.
        preparation: of features and edges, other than the catalog's.
        operator: options of `GraphOperator.from_edge_index`.
    """
    data = load(name, **(preparation or {}))
    masks = [make_split(name, data, split) for split in splits]
    first = NodeTask.from_data(masks[0].apply(data), **operator).to(device)
    return [
        replace(
            first,
            train_mask=own.train.to(device),
            val_mask=own.val.to(device),
            test_mask=own.test.to(device),
        )
        for own in masks
    ]


def nodes_and_direction(name: str) -> tuple[int, bool]:
    """How many nodes a graph has, and whether its edges have a direction."""
    data = load(name)
    return int(data.num_nodes), not data.is_undirected()
