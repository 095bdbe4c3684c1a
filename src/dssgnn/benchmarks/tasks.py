"""The splits of a catalog graph as tasks that can be trained together."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from dssgnn.data import load
from dssgnn.training import NodeTask

__all__ = ["split_tasks"]


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
    first: NodeTask | None = None
    tasks = []
    for split in splits:
        data = load(name, split=split, **(preparation or {}))
        if first is None:
            first = NodeTask.from_data(data, **operator).to(device)
        masks = {key: getattr(data, key).to(device) for key in ("train_mask", "val_mask", "test_mask")}
        tasks.append(replace(first, **masks))
    return tasks
