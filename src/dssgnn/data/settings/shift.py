"""Covariate and concept shift for any labelled graph and any value a node has: the split generators of GOOD.

A *domain value* is a number or a string a node carries: its degree, its language, its year. Nodes of equal
value are one domain. A covariate split keeps domains of validation and test apart from those of training; a
concept split lets every domain in everywhere, but ties domain and label together in training and reverses the
tie in test. GOOD draws from global random state, so its own masks cannot be drawn again; these follow its
rules with a seed of their own.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dssgnn.data.settings.shift_split import TEST, TRAIN, VAL, ShiftSplit, assemble_split
from dssgnn.errors import InputError
from dssgnn.validation import check_count

__all__ = [
    "CONCEPT_BIAS",
    "Domain",
    "ShiftSplit",
    "concept_split",
    "covariate_split",
    "domain_ids",
]

Domain = Tensor | NDArray[np.generic] | Sequence[int] | Sequence[float] | Sequence[str]

CONCEPT_BIAS = (0.95, 0.95, 0.90, 0.85)
"""How strongly label and domain are tied in the passes train, test, train, train (GOOD on Cora and Arxiv)."""
CONCEPT_PICK = (0.4, 0.6, 0.5, 1.0)
PASSES = ((TRAIN, 0), (TEST, -1), (TRAIN, 1), (TRAIN, 2))
"""What each pass of a concept split fills: the part, and the environment of training nodes."""


def covariate_split(
    domain: Domain,
    *,
    seed: int,
    train_fraction: float = 0.6,
    val_fraction: float = 0.2,
    id_fraction: float = 0.1,
    num_environments: int = 10,
    descending: bool = False,
    eligible: Tensor | None = None,
) -> ShiftSplit:
    """Split nodes sorted by domain into train, validation and test, never cutting through a domain.

    Cuts at ``train_fraction`` and ``train_fraction + val_fraction`` are put off to the next domain boundary,
    and so are those that part the training nodes into at most ``num_environments`` environments. Then
    ``int(id_fraction N)`` training nodes each, at random, become ``id_test`` and ``id_val``.

    Args:
        domain: ``[N]`` numbers or strings.
        seed: of the draw of ``id_val`` and ``id_test``; nothing else is random.
        train_fraction: share of the nodes meant for training, before the cut is put off.
        val_fraction: the same for shifted validation.
        id_fraction: share of **all** nodes that each of ``id_val`` and ``id_test`` takes.
        num_environments: the most environments wanted.
        descending: train on large domain values, as GOOD on Cora and Arxiv-degree, not on small ones.
        eligible: ``[N]``, the nodes to split; the others are in no mask.

    Raises:
        InputError: if a mask would be empty, as with fewer than three domains.

    >>> split = covariate_split([1] * 6 + [2] * 2 + [3] * 2, seed=0)
    >>> split.sizes(), split.num_environments
    ((4, 1, 1, 2, 2), 1)
    """
    ids = domain_ids(domain, eligible)
    if (
        min(train_fraction, val_fraction, id_fraction) <= 0
        or train_fraction + val_fraction >= 1
        or id_fraction >= 1
    ):
        raise InputError(
            "train_fraction and val_fraction must be positive with a sum below 1, id_fraction within 0..1, "
            f"got {train_fraction}, {val_fraction} and {id_fraction}"
        )
    check_count(num_environments, "num_environments", minimum=1)
    order = np.argsort(ids, kind="stable")
    order = order[ids[order] >= 0]  # nodes that are not eligible have number -1
    order = order[::-1] if descending else order
    total = len(order)
    cuts = [int(total * train_fraction), int(total * (train_fraction + val_fraction))]
    part = np.full(len(ids), -1)
    part[order] = _walk(ids[order], cuts)
    pool = order[part[order] == TRAIN]
    environment = np.full(len(ids), -1)
    step = len(pool) // num_environments
    environment[pool] = _walk(ids[pool], [step * e for e in range(1, num_environments)])
    return assemble_split(part, environment, int(id_fraction * total), seed)


def concept_split(
    domain: Domain,
    y: Tensor,
    *,
    seed: int,
    bias: Sequence[float] = CONCEPT_BIAS,
    pick: Sequence[float] = CONCEPT_PICK,
    id_fraction: float = 0.15,
) -> ShiftSplit:
    """Split nodes so that domain and label go together in training and against each other in test.

    Four passes over the nodes not taken yet fill training (environment 0), test, training (1) and training
    (2); what remains is shifted validation. In a pass a node is picked with probability ``pick``, and then
    kept with probability ``bias`` if it is aligned, ``1 - bias`` if not. Aligned, in training, is a label
    above the mean label in the lower half of the domains, and below it in the upper half; in test the
    reverse. A domain that gives a pass nodes of one kind only also gives the last of the other kind. Labels
    are thus read as numbers.

    Args:
        domain: ``[N]`` numbers or strings.
        y: ``[N]`` int64 class numbers; nodes with a negative one have no label and are in no mask.
        seed: of all draws.
        bias: of the four passes.
        pick: of the four passes.
        id_fraction: share of the training nodes that each of ``id_val`` and ``id_test`` takes.

    Raises:
        InputError: if there are fewer than two domains, or a mask would be empty.
    """
    for name, values in (("bias", bias), ("pick", pick)):
        if len(values) != 4 or not all(0 <= value <= 1 for value in values):
            raise InputError(f"{name} must be four probabilities, got {tuple(values)}")
    ids = domain_ids(domain, y >= 0)
    labels = y.cpu().numpy().astype(np.float64)
    sizes = np.bincount(ids[ids >= 0])
    if len(sizes) < 2:
        raise InputError(f"a concept split needs at least 2 domains, got {len(sizes)}")
    left = np.argsort(ids, kind="stable")
    left = left[ids[left] >= 0]
    total = len(left)
    sign = np.where(np.cumsum(sizes) - sizes < total / 2, 1, -1)
    above = sign[ids] * (labels - labels[left].mean())

    rng, id_rng = np.random.default_rng(check_count(seed, "seed")).spawn(2)
    part = np.full(len(ids), -1)
    environment = np.full(len(ids), -1)
    for (role, number), strength, share in zip(PASSES, bias, pick, strict=True):
        aligned = (above[left] if role == TRAIN else -above[left]) > 0
        taken = _taken(rng, ids[left], aligned, strength, share)
        part[left[taken]] = role
        environment[left[taken]] = number
        left = left[~taken]
    part[left] = VAL
    return assemble_split(part, environment, int(id_fraction * np.sum(part == TRAIN)), seed, rng=id_rng)


def domain_ids(domain: Domain, eligible: Tensor | None = None) -> NDArray[np.int64]:
    """Number the domains of the eligible nodes by ascending value; a node that is not eligible has -1.

    >>> domain_ids(["texas", "cornell", "texas"]).tolist()
    [1, 0, 1]
    """
    values = domain.cpu().numpy() if isinstance(domain, Tensor) else np.asarray(domain)
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.flat):
        values = values.astype(str)  # a column of strings of a data frame
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "biufUS":
        raise InputError(
            f"domain must hold one number or string a node, got {values.dtype} {list(values.shape)}"
        )
    if values.dtype.kind == "f" and not bool(np.isfinite(values).all()):
        node = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"domain value of node {node} is {values[node]}, expected finite numbers")
    if eligible is not None and (eligible.dtype != torch.bool or eligible.shape != values.shape):
        raise InputError(
            f"domain has {len(values)} values, but labels or mask have shape {list(eligible.shape)}"
        )
    ids = np.full(len(values), -1, dtype=np.int64)
    chosen = slice(None) if eligible is None else eligible.cpu().numpy()
    ids[chosen] = np.unique(values[chosen], return_inverse=True)[1]
    return ids


def _walk(ids: NDArray[np.int64], cuts: Sequence[int]) -> NDArray[np.int64]:
    """Number the parts of nodes sorted by domain, each cut put off to the next unused boundary."""
    boundaries = np.flatnonzero(np.diff(ids)) + 1
    part = np.zeros(len(ids), dtype=np.int64)
    used = 0
    for cut in cuts:
        later = boundaries[boundaries >= max(cut, used + 1)]
        if len(later) == 0:
            break
        used = int(later[0])
        part[used:] += 1
    return part


def _taken(
    rng: np.random.Generator, ids: NDArray[np.int64], aligned: NDArray[np.bool_], bias: float, pick: float
) -> NDArray[np.bool_]:
    """Choose the nodes one pass takes; ``ids`` is sorted, so that draws go domain by domain, two a node."""
    draws = rng.random((len(ids), 2))
    kept = np.where(aligned, draws[:, 1] < bias, draws[:, 1] > bias)
    taken = (draws[:, 0] < pick) & kept
    if len(ids) == 0:
        return taken
    group = 2 * ids + aligned  # the two kinds of nodes of a domain are neighbours
    kinds = 2 * (int(ids[-1]) + 1)
    here = np.bincount(group, minlength=kinds).reshape(-1, 2) > 0
    got = np.bincount(group[taken], minlength=kinds).reshape(-1, 2) > 0
    missing = here.all(axis=1, keepdims=True) & got.any(axis=1, keepdims=True) & ~got
    last = np.zeros(kinds, dtype=np.int64)
    last[group] = np.arange(len(group))  # numpy keeps the last of repeated assignments
    taken[last[missing.ravel()]] = True
    return taken
