"""The one check every graph passes on its way in: what is fatal raises, what is odd is counted."""

from dataclasses import dataclass
from typing import TypedDict, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from dssgnn import validation
from dssgnn.errors import InputError

__all__ = ["MASKS", "GraphReport", "check_graph"]

MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class GraphReport:
    """What `check_graph` and the readers saw; nothing in it stops a run.

    Attributes:
        num_nodes, num_edges, num_features: sizes.
        num_classes: number of different labels, missing ones aside.
        labelled: nodes with a label.
        parts: nodes in each mask the graph has, such as ``(("train", 60), ("val", 20), ("test", 20))``.
        duplicate_edges: edges that repeat an earlier one.
        self_loops: edges from a node to itself, each counted once.
        isolated_nodes: nodes without an edge to another node.
        one_way_edges: different edges whose reverse is absent.
        unlabelled: nodes in each mask without a label.
        train_classes: number of different labels among the training nodes, None without a training mask.
        unseen_categories: for a fitted encoding, cells a column whose category the encoding does not know.
        unseen_labels: nodes whose class the encoding does not know; their label is -1.
        filled: missing cells a column, filled with the column's mean or, for a category, with zeros.
        ignored: columns, arrays or attributes that were not used.
    """

    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    labelled: int
    parts: tuple[tuple[str, int], ...] = ()
    duplicate_edges: int = 0
    self_loops: int = 0
    isolated_nodes: int = 0
    one_way_edges: int = 0
    unlabelled: tuple[tuple[str, int], ...] = ()
    train_classes: int | None = None
    unseen_categories: tuple[tuple[str, int], ...] = ()
    unseen_labels: int = 0
    filled: tuple[tuple[str, int], ...] = ()
    ignored: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """The report as short text: sizes first, then one line for each thing worth a look."""
        lines = [
            f"{self.num_nodes:,} nodes, {self.num_edges:,} edges, {self.num_features:,} features, "
            f"{self.num_classes:,} classes, {self.labelled:,} labelled nodes"
        ]
        if self.parts:
            lines.append("split: " + ", ".join(f"{count:,} {name}" for name, count in self.parts))
        odd = {
            "duplicate edges": self.duplicate_edges,
            "self-loops": self.self_loops,
            "isolated nodes": self.isolated_nodes,
            "edges without their reverse": self.one_way_edges,
        }
        if any(odd.values()):
            lines.append(", ".join(f"{count:,} {name}" for name, count in odd.items() if count))
        lines += [f"note: no nodes in {name}" for name, count in self.parts if count == 0]
        lines += [
            f"note: {count:,} nodes in {name} have no label" for name, count in self.unlabelled if count
        ]
        if self.train_classes is not None and self.train_classes < 2:
            lines.append(
                f"note: {self.train_classes} class among the training nodes, at least 2 are needed to learn"
            )
        elif self.train_classes is not None and self.train_classes < self.num_classes:
            lines.append(
                f"note: only {self.train_classes} of {self.num_classes} classes are among the training nodes"
            )
        lines += [
            f"note: {n:,} cells of {name!r} hold a category not seen in fitting"
            for name, n in self.unseen_categories
        ]
        if self.unseen_labels:
            lines.append(f"note: {self.unseen_labels:,} nodes have a class not seen in fitting")
        lines += [f"note: {count:,} missing cells of {name!r} were filled" for name, count in self.filled]
        if self.ignored:
            shown = ", ".join(self.ignored[:5]) + (
                f" and {len(self.ignored) - 5} more" if len(self.ignored) > 5 else ""
            )
            lines.append(f"note: not used: {shown}")
        return tuple(lines)


def check_graph(data: Data, *, source: str | None = None, training: bool = False) -> GraphReport:
    """Check a graph and count what is odd about it.

    Args:
        data: ``x [N, F]``, ``edge_index [2, E]``; optional ``y [N]`` (-1: no label), ``edge_weight [E]``
            and masks ``[N]``.
        source: the file or name errors begin with.
        training: also refuse what cannot be learned from: an empty training mask, training nodes without
            a label, fewer than two classes among them (among all labelled nodes where there is no mask).

    Returns:
        The counts of everything that is odd but not fatal.

    Raises:
        InputError: no nodes or features, an edge to a node that is not there, NaN or infinity, bad weights,
            shapes or types that do not fit together, or masks that overlap.

    >>> x, edges = torch.ones(3, 2), torch.tensor([[0, 1, 0], [1, 1, 1]])
    >>> print(*check_graph(Data(x=x, edge_index=edges, y=torch.tensor([0, 1, -1]))).lines(), sep="\\n")
    3 nodes, 3 edges, 2 features, 2 classes, 2 labelled nodes
    1 duplicate edges, 1 self-loops, 1 isolated nodes, 1 edges without their reverse
    """
    try:
        report = _check(data)
        if training:
            _check_training(data, report)
    except InputError as error:
        if source is None:
            raise
        raise InputError(f"{source}: {error}") from None
    return report


def _check(data: Data) -> GraphReport:
    x, edge_index = data.get("x"), data.get("edge_index")
    if x is None or edge_index is None:
        raise InputError(
            f"the graph has no {'x' if x is None else 'edge_index'}, expected x [N, F] and edge_index [2, E]"
        )
    if isinstance(x, Tensor) and x.layout != torch.strided:
        raise InputError(f"x is a {x.layout} tensor, expected a dense one")
    validation.check_features(x)
    num_nodes, num_features = x.shape
    if num_nodes == 0 or num_features == 0:
        raise InputError(f"x has shape {list(x.shape)}, expected at least one node and one feature")
    validation.check_edge_index(edge_index, num_nodes)
    if data.get("edge_weight") is not None:
        validation.check_edge_weight(data.edge_weight, edge_index.size(1))
    y = (
        torch.full((num_nodes,), -1, device=x.device)
        if data.get("y") is None
        else _check_y(data.y, num_nodes)
    )
    labelled = y >= 0
    masks = _check_masks(data, num_nodes)
    train = masks.get("train_mask")
    return GraphReport(
        num_nodes=num_nodes,
        num_edges=edge_index.size(1),
        num_features=num_features,
        num_classes=_count_classes(y),
        labelled=int(labelled.sum()),
        parts=tuple((_part(name), int(mask.sum())) for name, mask in masks.items()),
        unlabelled=tuple((_part(name), int((mask & ~labelled).sum())) for name, mask in masks.items()),
        train_classes=None if train is None else _count_classes(y[train]),
        **_count_edges(edge_index.cpu().numpy(), num_nodes),
    )


def _part(mask_name: str) -> str:
    return mask_name.removesuffix("_mask")


def _check_y(y: Tensor, num_nodes: int) -> Tensor:
    if not isinstance(y, Tensor):
        raise InputError(f"y must be a tensor of shape [{num_nodes}], got {type(y).__name__}")
    highest = int(y.max()) if y.numel() and y.dtype == torch.int64 else 0
    validation.check_labels(y, num_nodes, highest + 1, y != -1)
    return y


def _check_masks(data: Data, num_nodes: int) -> dict[str, Tensor]:
    masks = {name: data[name] for name in MASKS if data.get(name) is not None}
    # An empty mask is odd, not fatal: a graph to predict on may have no training nodes.
    filled = {name: mask for name, mask in masks.items() if not _is_empty(mask, num_nodes)}
    validation.check_masks(num_nodes, **filled)
    return masks


def _is_empty(mask: object, num_nodes: int) -> bool:
    fits = isinstance(mask, Tensor) and mask.dtype == torch.bool and list(mask.shape) == [num_nodes]
    return fits and not bool(torch.any(cast(Tensor, mask)))


def _check_training(data: Data, report: GraphReport) -> None:
    if report.num_classes < 2:
        raise InputError(f"the labels hold {report.num_classes} classes, expected at least 2 to learn from")
    if report.train_classes is None:
        return
    mask, y = data.train_mask, data.y
    validation.check_mask(mask, report.num_nodes, "train_mask")
    validation.check_labels(y, report.num_nodes, int(y.max()) + 1, mask)
    if report.train_classes < 2:
        only = int(y[mask][0])
        raise InputError(
            f"the training nodes are all of class {only}, expected at least 2 classes to learn from"
        )


def _count_classes(y: Tensor) -> int:
    return int(torch.unique(y[y >= 0]).numel())


class _EdgeCounts(TypedDict):
    duplicate_edges: int
    self_loops: int
    isolated_nodes: int
    one_way_edges: int


def _count_edges(edge_index: NDArray[np.int64], num_nodes: int) -> _EdgeCounts:
    source, target = edge_index[0].astype(np.int64, copy=False), edge_index[1].astype(np.int64, copy=False)
    loops = source == target
    linked = np.zeros(num_nodes, dtype=bool)
    linked[source[~loops]] = True
    linked[target[~loops]] = True
    # One integer an edge: sorting integers is far cheaper than sorting pairs. N^2 < 2^63 for N < 3e9.
    keys = np.sort(source * num_nodes + target)
    distinct = keys[np.diff(keys, prepend=-1) != 0]
    reverse = np.sort(distinct % num_nodes * num_nodes + distinct // num_nodes)
    both = np.intersect1d(distinct, reverse, assume_unique=True)
    return {
        "duplicate_edges": int(keys.size - distinct.size),
        "self_loops": int(loops.sum()),
        "isolated_nodes": int(num_nodes - linked.sum()),
        "one_way_edges": int(distinct.size - both.size),
    }
