"""What a shift split is: five masks and environments."""

from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.errors import InputError
from dssgnn.validation import check_count, check_masks

__all__ = ["TEST", "TRAIN", "VAL", "ShiftSplit", "assemble_split"]

TRAIN, VAL, TEST = 0, 1, 2
"""Parts of the nodes before ``id_val`` and ``id_test`` leave the training part."""
MASKS = ("train", "id_val", "id_test", "val", "test")


@dataclass(frozen=True, eq=False)
class ShiftSplit:
    """Five disjoint masks ``[N]`` and the training environments.

    Args:
        train: nodes to learn from.
        id_val, id_test: nodes distributed as the training nodes are.
        val, test: nodes of the shifted distribution.
        environment: ``[N]``, the environment of a node, -1 where it has none; every training node has one.
        seed: what the masks were drawn with.

    Raises:
        InputError: if a mask is empty, two overlap, or a training node has no environment.
    """

    train: Tensor
    id_val: Tensor
    id_test: Tensor
    val: Tensor
    test: Tensor
    environment: Tensor
    seed: int

    def __post_init__(self) -> None:
        check_masks(len(self.train), **self.masks())
        if self.environment.shape != self.train.shape or bool((self.environment[self.train] < 0).any()):
            raise InputError("environment must hold a number >= 0 for every training node")

    @property
    def num_environments(self) -> int:
        """The number of environments that have training nodes."""
        return len(torch.unique(self.environment[self.train]))

    def masks(self) -> dict[str, Tensor]:
        """The five masks by name, in the order train, id_val, id_test, val, test."""
        return {name: getattr(self, name) for name in MASKS}

    def sizes(self) -> tuple[int, ...]:
        """The sizes of the five masks, in the order of `masks`."""
        return tuple(int(mask.sum()) for mask in self.masks().values())

    def apply(self, data: Data) -> Data:
        """Return a shallow copy of ``data`` with the five masks (``train_mask`` ...) and ``environment``."""
        if data.num_nodes != len(self.train):
            raise InputError(f"the split is of {len(self.train)} nodes, but the graph has {data.num_nodes}")
        graph = copy(data)
        for name, mask in self.masks().items():
            graph[f"{name}_mask"] = mask
        graph.environment = self.environment
        return graph


def assemble_split(
    part: NDArray[np.int64],
    environment: NDArray[np.int64],
    id_size: int,
    seed: int,
    *,
    rng: np.random.Generator | None = None,
    keep_environment: bool = False,
) -> ShiftSplit:
    """Turn parts (`TRAIN`, `VAL`, `TEST`, or -1) into a `ShiftSplit`.

    The pool is shuffled; its last ``id_size`` nodes become ``id_test``, the ``id_size`` before them
    ``id_val``. Environments are kept on training nodes alone unless ``keep_environment``.
    """
    rng = np.random.default_rng(check_count(seed, "seed")) if rng is None else rng
    pool = rng.permutation(np.flatnonzero(part == TRAIN))
    counts = {"train": len(pool) - 2 * id_size, "id_val": id_size, "id_test": id_size}
    counts |= {"val": int((part == VAL).sum()), "test": int((part == TEST).sum())}
    if min(counts.values()) < 1:
        shown = ", ".join(f"{name} {max(count, 0)}" for name, count in counts.items())
        raise InputError(f"the domains leave a mask empty, expected at least one node in each, got {shown}")
    chosen = {
        "train": pool[: counts["train"]],
        "id_val": pool[counts["train"] : len(pool) - id_size],
        "id_test": pool[len(pool) - id_size :],
        "val": part == VAL,
        "test": part == TEST,
    }
    masks = {name: torch.zeros(len(part), dtype=torch.bool) for name in MASKS}
    for name, nodes in chosen.items():
        masks[name].numpy()[nodes] = True
    numbers = torch.from_numpy(environment.astype(np.int64))
    if not keep_environment:
        numbers = torch.where(masks["train"], numbers, -1)
    return ShiftSplit(**masks, environment=numbers, seed=seed)
