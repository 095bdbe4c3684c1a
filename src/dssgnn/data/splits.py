"""Train, validation and test nodes: the paper's rules, published masks, and splits for any labelled graph.

Draws come from `numpy.random.RandomState`, whose streams NumPy has frozen: a seed gives the same
nodes on every machine and version.
"""

import copy
import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.errors import InputError
from dssgnn.validation import check_count, check_masks

__all__ = [
    "SPLIT_RULES",
    "SPLIT_SEEDS",
    "Split",
    "class_balanced_split",
    "make_split",
    "public_split",
    "random_split",
    "resolve_split",
    "stratified_split",
]

# The ten published seeds of the calibration runs, in order.
SPLIT_SEEDS = (
    1941488137, 4198936517, 983997847, 4023022221, 4019585660,
    2108550661, 1648766618, 629014539, 3212139042, 2424918363,
)  # fmt: skip

_PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint boolean masks ``[N]``; a part may be empty, nodes may be in none.

    Raises:
        InputError: if a mask is not boolean, sizes differ, or two masks share a node.
    """

    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        masks = {part: getattr(self, part) for part in _PARTS}
        for part, mask in masks.items():
            if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.dim() != 1:
                raise InputError(f"{part} must be a boolean tensor of shape [N], got {mask!r}")
            if len(mask) != len(self.train):
                raise InputError(f"{part} has {len(mask)} nodes, but train has {len(self.train)}")
        check_masks(len(self.train), **{part: mask for part, mask in masks.items() if bool(mask.any())})

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of training, validation and test nodes."""
        return int(self.train.sum()), int(self.val.sum()), int(self.test.sum())

    def absent_classes(self, y: Tensor, part: str = "test") -> list[int]:
        """Return the classes of ``y`` that have no node in ``part``: no test metric can see them.

        >>> y = torch.tensor([0, 0, 1, 1])
        >>> Split(y == 1, torch.tensor([True, False, False, False]), y < 0).absent_classes(y, "val")
        [1]
        """
        if part not in _PARTS:
            raise InputError(f"part must be one of {', '.join(_PARTS)}, got {part!r}")
        present = set(y[getattr(self, part)].tolist())
        return [c for c in sorted(set(y[y >= 0].tolist())) if c not in present]

    def apply(self, data: Data) -> Data:
        """Return a shallow copy of ``data`` with ``train_mask``, ``val_mask`` and ``test_mask``."""
        if int(data.num_nodes) != len(self.train):
            raise InputError(f"the split is for {len(self.train)} nodes, the graph has {data.num_nodes}")
        out = copy.copy(data)
        out.train_mask, out.val_mask, out.test_mask = self.train, self.val, self.test
        return out

    def fingerprint(self) -> str:
        """Return the sha256 over the number of nodes and the three masks, packed to bits."""
        digest = hashlib.sha256(str(len(self.train)).encode())
        for part in _PARTS:
            digest.update(np.packbits(getattr(self, part).cpu().numpy()).tobytes())
        return digest.hexdigest()


def class_balanced_split(y: Tensor, seed: int) -> Split:
    """Return the class-balanced 60/20/20 split of the paper's nine non-suite datasets.

    With N labelled nodes and C classes, ``round(0.6 N / C)`` training nodes a class (all of a smaller
    class, which is then absent from validation and test), ``round(0.2 N)`` of the others for validation,
    the rest for test.

    >>> class_balanced_split(torch.arange(100) % 4, SPLIT_SEEDS[0]).sizes
    (60, 20, 20)
    """
    labels = _labels(y)
    labelled = np.flatnonzero(labels >= 0)
    state = _state(seed)
    classes = int(labels.max()) + 1
    quota = round(0.6 * len(labelled) / classes)
    train = np.zeros(len(labels), dtype=np.bool_)
    # The published masks depend on this order of draws: classes ascending, none for a small class, then
    # validation.
    for c in range(classes):
        nodes = np.flatnonzero(labels == c)
        train[nodes if len(nodes) < quota else state.choice(nodes, quota, replace=False)] = True
    rest = labelled[~train[labelled]]
    wanted = round(0.2 * len(labelled))
    if wanted > len(rest):
        raise InputError(f"{len(rest)} nodes are left after training, but validation needs {wanted}")
    val = state.choice(rest, wanted, replace=False)
    return _split(len(labels), np.flatnonzero(train), val, np.setdiff1d(rest, val))


def random_split(
    num_nodes: int, seed: int, *, fractions: tuple[float, float] = (0.1, 0.1), nodes: Tensor | None = None
) -> Split:
    """Return one random permutation of ``nodes`` (all by default), cut at ``fractions``; the rest is test.

    Sizes of training and validation are rounded down, as in the out-of-distribution runs (10/10/80).

    >>> random_split(25, seed=0).sizes
    (2, 2, 21)
    """
    check_count(num_nodes, "num_nodes", minimum=1)
    train, val = _fractions(fractions, 2)
    pool = np.arange(num_nodes) if nodes is None else nodes.cpu().numpy()
    if pool.dtype == np.bool_:
        pool = np.flatnonzero(pool)
    order = _state(seed).permutation(pool)
    first, second = int(train * len(order)), int(val * len(order))
    return _split(num_nodes, order[:first], order[first : first + second], order[first + second :])


def stratified_split(y: Tensor, fractions: Sequence[float] = (0.6, 0.2, 0.2), seed: int = 0) -> Split:
    """Return a random split in which every class has about the same ``fractions``; unlabelled nodes are in none.

    Each part's share of a class differs from its fraction by less than one node. Fractions that add up to
    less than one leave nodes out.

    >>> stratified_split(torch.arange(100) % 4, (0.5, 0.25, 0.25), seed=0).sizes
    (52, 24, 24)
    """
    labels = _labels(y)
    bounds = np.cumsum(_fractions(fractions, 3))
    state = _state(seed)
    parts: list[list[NDArray[np.int64]]] = [[], [], []]
    for c in np.unique(labels[labels >= 0]):
        order = state.permutation(np.flatnonzero(labels == c))
        # Rounding half up, after noise such as 0.6 + 0.2 + 0.2 < 1 is gone.
        cuts = np.floor(np.round(bounds * len(order), 6) + 0.5).astype(int)
        for part, piece in zip(parts, np.split(order, cuts)[:3], strict=True):
            part.append(piece)
    train, val, test = (np.concatenate(part) for part in parts)
    return _split(len(labels), train, val, test)


def public_split(data: Data, index: int = 0) -> Split:
    """Return published split ``index`` of ``data``: Planetoid's, geom-gcn's, the heterophilous suite's, OGB's.

    Reads ``train_masks [N, S]`` as the catalog's readers leave them, or PyG's ``train_mask`` of one or S columns.
    """
    masks = []
    for part in _PARTS:
        stored = data.get(f"{part}_masks", data.get(f"{part}_mask"))
        if stored is None:
            raise InputError(f"the graph has no published split: neither {part}_masks nor {part}_mask")
        stored = stored.reshape(stored.size(0), -1)
        if not 0 <= index < stored.size(1):
            raise InputError(
                f"split {index} was asked for, but {stored.size(1)} are published, numbered from 0"
            )
        masks.append(stored[:, index].to(torch.bool).contiguous())
    return Split(*masks)


def _published_class_balanced(data: Data, index: int) -> Split:
    if not 0 <= index < len(SPLIT_SEEDS):
        raise InputError(f"split {index} was asked for, but ten are published, numbered from 0")
    return class_balanced_split(data.y, SPLIT_SEEDS[index])


SPLIT_RULES: dict[str, Callable[[Data, int], Split]] = {
    "class-balanced": _published_class_balanced,
    "public": public_split,
    "random": lambda data, index: random_split(int(data.num_nodes), index, nodes=_labelled(data)),
    "stratified": lambda data, index: stratified_split(data.y, seed=index),
}


def make_split(name_or_rule: str, data: Data, index: int = 0) -> Split:
    """Return split number ``index`` of ``data`` by a rule, or by the rule the paper used for a catalog name.

    Rules: ``class-balanced`` (index 0..9, the published seeds), ``public`` (index: column of the
    published masks), ``random`` (10/10/80) and ``stratified`` (60/20/20), where the index is the seed.
    """
    check_count(index, "index")
    rule = name_or_rule
    if rule not in SPLIT_RULES:
        from dssgnn.data.catalog.entries import (
            ENTRIES,
        )  # the catalog is not needed to split a graph by a rule

        if rule not in ENTRIES:
            rules = ", ".join(SPLIT_RULES)
            raise InputError(f"{rule!r} is neither a split rule ({rules}) nor a catalog name")
        rule = ENTRIES[rule].split
    return SPLIT_RULES[rule](data, index)


def resolve_split(graph: Data, seed: int) -> tuple[Split, str]:
    """The split to train on: the graph's own masks, completed where they are not there, and its origin in words.

    Without masks it is a stratified 60/20/20 one, and a warning says so; without validation nodes a fifth of the
    training nodes is kept for it. Nodes without a label are in no part.
    """
    masks = {part: graph.get(f"{part}_mask") for part in ("train", "val", "test")}
    labelled = graph.y >= 0
    if masks["train"] is None:
        warnings.warn(
            f"the graph has no masks: a stratified 60/20/20 split was made with seed {seed}", stacklevel=3
        )
        return stratified_split(graph.y.cpu(), seed=seed), f"stratified 60/20/20, seed {seed}"
    nothing = torch.zeros_like(labelled)
    train, val, test = ((nothing if mask is None else mask) & labelled for mask in masks.values())
    if bool(val.any()):
        return Split(train, val, test), "given with the graph"
    inner = stratified_split(torch.where(train, graph.y, -1).cpu(), (0.8, 0.2, 0.0), seed=seed)
    return Split(inner.train, inner.val, test), f"given; a fifth of the training nodes validates, seed {seed}"


def _labelled(data: Data) -> Tensor | None:
    return None if data.y is None else data.y >= 0


def _labels(y: Tensor) -> NDArray[np.int64]:
    if not isinstance(y, Tensor) or y.dim() != 1 or y.dtype != torch.int64:
        got = f"{y.dtype} {list(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise InputError(f"y must be int64 class numbers of shape [N], got {got}")
    labels: NDArray[np.int64] = y.cpu().numpy()
    if not (labels >= 0).any():
        raise InputError("y has no labelled node, expected at least one class number >= 0")
    return labels


def _state(seed: int) -> np.random.RandomState:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(f"seed must be an integer in 0..2**32-1, got {seed!r}")
    return np.random.RandomState(seed)


def _fractions(fractions: Sequence[float], count: int) -> tuple[float, ...]:
    values = tuple(float(f) for f in fractions)
    # 1e-9: sums such as 0.7 + 0.2 + 0.1 exceed one by rounding.
    if len(values) != count or not all(f >= 0 for f in values) or sum(values) > 1 + 1e-9:
        raise InputError(f"fractions must be {count} numbers >= 0 that add up to at most 1, got {values}")
    return values


def _split(num_nodes: int, *parts: NDArray[np.int64]) -> Split:
    masks = []
    for nodes in parts:
        mask = torch.zeros(num_nodes, dtype=torch.bool)
        mask[torch.from_numpy(nodes)] = True
        masks.append(mask)
    return Split(*masks)
