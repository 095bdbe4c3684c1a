"""The named shift settings of GOOD, and the same shifts on further graphs.

Each takes graphs already in memory. Domain values (degree, feature mass) are read from the graph as given:
give the raw features, and normalise afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.data.settings.cbas import cbas as draw_cbas
from dssgnn.data.settings.shift import (
    CONCEPT_BIAS,
    Domain,
    concept_split,
    covariate_split,
    domain_ids,
)
from dssgnn.data.settings.shift_split import TEST, TRAIN, VAL, ShiftSplit, assemble_split
from dssgnn.errors import InputError

__all__ = [
    "Shift",
    "ShiftSetting",
    "arxiv",
    "by_degree",
    "by_feature_mass",
    "cbas",
    "degree",
    "disjoint_union",
    "feature_mass",
    "twitch",
    "webkb",
]

Shift = Literal["covariate", "concept"]

UNIVERSITIES = ("wisconsin", "cornell", "texas")
LANGUAGES = ("DE", "EN", "ES", "FR", "PT", "RU")
MUSAE_NAMES = {"ENGB": "EN", "PTBR": "PT"}
WEBKB_BIAS = (0.85, 0.75, 0.85, 0.80)
TWITCH_BIAS = (0.8, 0.7, 0.8, 0.7)


@dataclass(frozen=True, eq=False)
class ShiftSetting:
    """A graph and a split of it under one shift.

    Args:
        name: what tables call it, as ``webkb-university``.
        shift: ``"covariate"`` or ``"concept"``.
        data: the graph, its features as they were given.
        split: the five masks and the environments.
    """

    name: str
    shift: Shift
    data: Data
    split: ShiftSplit

    def __post_init__(self) -> None:
        _checked(self.shift)
        if self.data.num_nodes != len(self.split.train):
            sizes = f"{len(self.split.train)} nodes, but the graph has {self.data.num_nodes}"
            raise InputError(f"the split of {self.name!r} is of {sizes}")


def cbas(shift: Shift, seed: int) -> ShiftSetting:
    """CBAS by colour, from its generator (`dssgnn.data.settings.cbas`)."""
    return ShiftSetting("cbas-color", shift, *draw_cbas(shift, seed))


def webkb(universities: Mapping[str, Data], shift: Shift, seed: int) -> ShiftSetting:
    """Wisconsin, Cornell and Texas as one graph, by university (617 nodes; GOOD keeps the edges directed).

    Covariate: trains on Cornell and Texas; Wisconsin in stored order is halved into validation and test, 244
    / 61 / 61 / 125 / 126.

    Args:
        universities: graphs by name, in lower case.
        shift: which of the two.
        seed: of the split.
    """
    graphs = _chosen(universities, UNIVERSITIES, "webkb")
    data, name = disjoint_union(graphs), _repeated(UNIVERSITIES, graphs)
    if _checked(shift) == "concept":
        split = concept_split(name, data.y, seed=seed, bias=WEBKB_BIAS)
    else:
        # The generic rule puts all three domains into training (the last one is large), hence one of its own.
        environment = domain_ids(name)
        wisconsin = np.flatnonzero(environment == 2)
        part = np.full_like(environment, TRAIN)
        part[wisconsin] = TEST
        part[wisconsin[: len(wisconsin) // 2]] = VAL
        split = assemble_split(part, environment, int(0.1 * len(part)), seed)
    return ShiftSetting("webkb-university", shift, data, split)


def twitch(regions: Mapping[str, Data], shift: Shift, seed: int) -> ShiftSetting:
    """Six language regions as one graph, by language.

    Covariate: trains on DE, EN and ES, one environment each; FR is validation, PT and RU are test.

    Args:
        regions: graphs by language, ``DE, EN, ES, FR, PT, RU`` (the MUSAE names ``ENGB`` and ``PTBR`` do as
            well).
        shift: which of the two.
        seed: of the split.
    """
    regions = {MUSAE_NAMES.get(name, name): data for name, data in regions.items()}
    graphs = _chosen(regions, LANGUAGES, "twitch")
    data, name = disjoint_union(graphs), _repeated(LANGUAGES, graphs)
    split = _split(name, data.y, shift, seed, bias=TWITCH_BIAS)
    return ShiftSetting("twitch-language", shift, data, split)


def arxiv(data: Data, year: Tensor, shift: Shift, seed: int) -> ShiftSetting:
    """Arxiv by time: trains on early years, half of the nodes at least (GOOD symmetrises the edges first).

    Args:
        data: the graph.
        year: ``[N]`` integers.
        shift: which of the two.
        seed: of the split.
    """
    return ShiftSetting("arxiv-time", shift, data, _split(year, data.y, shift, seed, train_fraction=0.5))


def by_degree(name: str, data: Data, shift: Shift, seed: int) -> ShiftSetting:
    """Shift by degree, training on large ones first: GOOD on CoraFull and Arxiv, here on any graph.

    Args:
        name: of the graph; the setting is called ``name-degree``.
        data: the graph.
        shift: which of the two.
        seed: of the split.
    """
    return ShiftSetting(
        f"{name}-degree", shift, data, _split(degree(data), data.y, shift, seed, descending=True)
    )


def by_feature_mass(name: str, data: Data, shift: Shift, seed: int) -> ShiftSetting:
    """Shift by the sum of a node's features, training on large ones first: GOOD's "word", here on any graph.

    Args:
        name: of the graph; the setting is called ``name-word``.
        data: the graph with raw features.
        shift: which of the two.
        seed: of the split.
    """
    return ShiftSetting(
        f"{name}-word", shift, data, _split(feature_mass(data), data.y, shift, seed, descending=True)
    )


def degree(data: Data) -> Tensor:
    """Count the entries of ``edge_index[0]`` that name each node, ``[N]``."""
    return torch.bincount(data.edge_index[0], minlength=int(data.num_nodes))


def feature_mass(data: Data) -> Tensor:
    """Sum each node's features in float64, ``[N]``.

    Raises:
        InputError: if all rows that are not zero sum to one: such features were normalised, and the mass is
            gone.
    """
    # One row at a time would be slow and a float64 copy of all of them large.
    mass = torch.cat([rows.sum(dim=1, dtype=torch.float64) for rows in torch.split(data.x, 4096)])
    if bool(((mass - 1).abs() < 1e-5).logical_or(mass == 0).all()):
        raise InputError(
            "every feature row sums to 0 or 1, expected raw features: normalise after the split is made"
        )
    return mass


def disjoint_union(graphs: Sequence[Data]) -> Data:
    """Put graphs side by side: ``x``, ``y`` and ``edge_index`` concatenated, nodes renumbered in order.

    Raises:
        InputError: if the numbers of features differ.
    """
    widths = {int(graph.x.size(1)) for graph in graphs}
    if len(widths) > 1:
        raise InputError(
            f"graphs to put together must have the same number of features, got {sorted(widths)}"
        )
    starts = np.cumsum([0] + [int(graph.num_nodes) for graph in graphs]).tolist()
    edges = [graph.edge_index + start for graph, start in zip(graphs, starts[:-1], strict=True)]
    return Data(
        x=torch.cat([graph.x for graph in graphs]),
        edge_index=torch.cat(edges, dim=1),
        y=torch.cat([graph.y for graph in graphs]),
    )


def _split(
    domain: Domain,
    y: Tensor,
    shift: Shift,
    seed: int,
    *,
    bias: Sequence[float] = CONCEPT_BIAS,
    train_fraction: float = 0.6,
    descending: bool = False,
) -> ShiftSplit:
    if _checked(shift) == "concept":
        return concept_split(domain, y, seed=seed, bias=bias)
    return covariate_split(
        domain, seed=seed, train_fraction=train_fraction, descending=descending, eligible=y >= 0
    )


def _checked(shift: Shift) -> Shift:
    if shift not in get_args(Shift):
        raise InputError(f"shift must be 'covariate' or 'concept', got {shift!r}")
    return shift


def _chosen(graphs: Mapping[str, Data], names: Sequence[str], setting: str) -> list[Data]:
    missing = [name for name in names if name not in graphs]
    if missing:
        raise InputError(
            f"{setting} needs {', '.join(missing)} too, got {', '.join(sorted(graphs)) or 'nothing'}"
        )
    return [graphs[name] for name in names]


def _repeated(names: Sequence[str], graphs: Sequence[Data]) -> list[str]:
    return [name for name, graph in zip(names, graphs, strict=True) for _ in range(int(graph.num_nodes))]
