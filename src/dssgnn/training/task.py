"""What a model is trained on, checked before the first epoch."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dssgnn.errors import InputError
from dssgnn.graph import GraphOperator, SparseFeatures, locality_order, renumbered, sparse_where_faster
from dssgnn.validation import check_features, check_labels, check_mask, check_masks

__all__ = ["NodeTask", "Outliers"]


@dataclass(frozen=True)
class NodeTask:
    """Node classification on one graph.

    Attributes:
        x: features ``[N, F]``.
        graph: the operator of the graph.
        y: labels ``[N]``; only those of nodes in a mask are read.
        train_mask: ``[N]``, boolean.
        val_mask: ``[N]``, boolean; chooses the epoch.
        test_mask: ``[N]``, boolean, or ``None``; training never reads it.
        num_classes: ``C``.
    """

    x: Tensor | SparseFeatures
    graph: GraphOperator
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    num_classes: int
    test_mask: Tensor | None = None

    def __post_init__(self) -> None:
        n = self.graph.num_nodes
        check_features(self.x, num_nodes=n)
        masks = {"train_mask": self.train_mask, "val_mask": self.val_mask}
        if self.test_mask is not None:
            masks["test_mask"] = self.test_mask
        check_masks(n, **masks)
        used = torch.stack(list(masks.values())).any(dim=0)
        check_labels(self.y, n, self.num_classes, used)

    @classmethod
    def from_data(cls, data: Data, num_classes: int | None = None, **operator: Any) -> "NodeTask":
        """Take a PyG ``Data`` with masks; ``operator`` are options of `GraphOperator.from_edge_index`.

        Classes are ``0..num_classes-1``; the largest label plus one where the number is not given.
        """
        for name in ("x", "edge_index", "y", "train_mask", "val_mask"):
            if not isinstance(value := getattr(data, name, None), Tensor):
                got = "no" if value is None else f"a {type(value).__name__} as"
                raise InputError(
                    f"data has {got} {name}; expected tensors x, edge_index, y, train_mask and val_mask"
                )
        check_features(data.x)
        weight = getattr(data, "edge_weight", None)
        graph = GraphOperator.from_edge_index(
            data.edge_index, data.x.size(0), weight, **{"dtype": data.x.dtype, **operator}
        )
        if num_classes is None:
            if data.y.numel() == 0 or int(data.y.max()) < 0:
                raise InputError("data has no labels: y holds no class number >= 0")
            num_classes = int(data.y.max()) + 1
        test = getattr(data, "test_mask", None)
        return cls(data.x, graph, data.y, data.train_mask, data.val_mask, num_classes, test)

    def fingerprint(self) -> str:
        """A digest of everything that training reads; a checkpoint of another task is refused by it.

        The layout and the device of ``x`` do not count.
        """
        digest = hashlib.sha256(repr((self.num_classes, sorted(self.graph.options.items()))).encode())
        used = self.train_mask | self.val_mask
        # A copy of sparse features, since they keep what `dense` made.
        x = self.x.with_values(self.x.values).dense() if isinstance(self.x, SparseFeatures) else self.x
        values = (
            x + 0.0,  # -0.0 is no entry of sparse features
            self.graph.edge_index,
            self.graph.edge_weight,
            self.y[used],
            self.train_mask,
            self.val_mask,
        )
        for value in values:
            if value is not None:
                digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def suited_to(self, model: nn.Module) -> "NodeTask":
        """The same task, with sparse features where the model takes them and is faster on them."""
        if not getattr(model, "sparse_features", False) or isinstance(self.x, SparseFeatures):
            return self
        return replace(self, x=sparse_where_faster(self.x))

    def reordered(self) -> "NodeTask":
        """The same task with its nodes numbered so that neighbours stand close together.

        A model does not see the numbers, so what it learns here it has learned for the graph as it was; on a large
        graph with communities a sparse product then finds more of its rows in the cache. (Dropout draws other masks.)
        """
        order = locality_order(self.graph)
        sparse = isinstance(self.x, SparseFeatures)
        x = (self.x.dense() if isinstance(self.x, SparseFeatures) else self.x)[order]
        return NodeTask(
            SparseFeatures.from_dense(x) if sparse else x,
            renumbered(self.graph, order),
            self.y[order],
            self.train_mask[order],
            self.val_mask[order],
            self.num_classes,
            None if self.test_mask is None else self.test_mask[order],
        )

    def to(self, device: torch.device | str) -> "NodeTask":
        """The same task on another device."""
        test = self.test_mask.to(device) if self.test_mask is not None else None
        return NodeTask(
            self.x.to(device),
            self.graph.to(device),
            self.y.to(device),
            self.train_mask.to(device),
            self.val_mask.to(device),
            self.num_classes,
            test,
        )


@dataclass(frozen=True)
class Outliers:
    """Nodes of a second graph that the energy-margin term pushes outside.

    Attributes:
        x: features ``[M, F]``.
        graph: the operator of that graph.
        mask: which of its nodes count, ``[M]``.
    """

    x: Tensor
    graph: GraphOperator
    mask: Tensor

    def __post_init__(self) -> None:
        check_features(self.x, num_nodes=self.graph.num_nodes)
        check_mask(self.mask, self.graph.num_nodes, "mask of the outliers")
