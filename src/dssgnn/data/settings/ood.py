"""Out-of-distribution settings of GNNSafe: one graph the model is trained on, and graphs it should flag.

The graphs are taken as they are. GNNSafe normalises the rows of the features first, on all but Arxiv;
perturbed features are mixtures of the rows given here, so normalise before, not after.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.data.settings.block_model import block_model
from dssgnn.errors import InputError
from dssgnn.validation import check_count, check_edge_index, check_features, check_labels, check_mask

__all__ = [
    "OODSetting",
    "arxiv_years",
    "feature_shift",
    "label_leave_out",
    "structure_shift",
    "twitch_regions",
]

SPLIT_MASKS = ("train_mask", "val_mask", "test_mask")
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class OODSetting:
    """A detection task; every graph carries ``node_mask [N]``, the nodes that count in it.

    Args:
        name: what tables call it.
        in_distribution: the graph trained and tested on. Masks ``train_mask``, ``val_mask``, ``test_mask`` of
            the graph it was
            made from are kept, restricted to ``node_mask``; else the caller splits the nodes of
            ``node_mask``.
        outlier_train: outliers a method may see in training (GNNSafe++).
        outlier_test: one or more graphs of outliers to detect; measured one by one, then averaged.

    Raises:
        InputError: if a graph lacks a boolean, non-empty ``node_mask``, the features of two graphs differ in
            number, or no
            outlier graph is there to test on.
    """

    name: str
    in_distribution: Data
    outlier_train: Data
    outlier_test: tuple[Data, ...]

    def __post_init__(self) -> None:
        if not self.outlier_test:
            raise InputError(f"OOD setting {self.name!r} has no graph in outlier_test, expected at least one")
        graphs = {"in_distribution": self.in_distribution, "outlier_train": self.outlier_train}
        graphs |= {f"outlier_test[{i}]": graph for i, graph in enumerate(self.outlier_test)}
        channels = self.in_distribution.x.size(1)
        for role, graph in graphs.items():
            check_mask(graph.get("node_mask"), graph.x.size(0), f"node_mask of {role} in {self.name!r}")
            if graph.x.size(1) != channels:
                raise InputError(
                    f"{role} of {self.name!r} has {graph.x.size(1)} features, in_distribution has {channels}"
                )


def structure_shift(data: Data, seed: int) -> OODSetting:
    """Replace the edges by a block model half as dense between its blocks and 1.5 times as dense within.

    With ``d = E / (N (N - 1))``, within-block probability ``1.5 d`` and between-block ``0.5 d``; one block a
    class, contiguous ranges of ``N // C`` nodes, the remainder in the last, so that blocks have nothing to do
    with labels.

    Args:
        data: the graph, ``E`` entries in ``edge_index``.
        seed: of the two independent draws, outliers of training and outliers of test.

    Raises:
        InputError: if the graph is unlabelled, or so dense that ``1.5 d`` is no probability.
    """
    num_nodes, num_classes = _checked_graph(data)
    density = data.edge_index.size(1) / max(num_nodes * (num_nodes - 1), 1)
    if 1.5 * density > 1:
        raise InputError(f"structure shift needs a density of at most 2/3, got {density:.3g}")
    sizes = [num_nodes // num_classes] * num_classes
    sizes[-1] += num_nodes % num_classes
    chance = np.full((num_classes, num_classes), 0.5 * density)
    np.fill_diagonal(chance, 1.5 * density)
    everything = torch.ones(num_nodes, dtype=torch.bool)
    train, test = (
        _outliers(data, everything, edge_index=block_model(sizes, chance, rng))
        for rng in _two_generators(seed)
    )
    return OODSetting("structure", _inliers(data, everything), train, (test,))


def feature_shift(data: Data, seed: int) -> OODSetting:
    """Replace the features of every node by a mixture of two nodes': ``x'_v = w_v x_a + (1 - w_v) x_b``.

    ``a`` and ``b`` are uniform over all nodes, with replacement, and ``w_v`` uniform on 0..1, one number a
    node.

    Args:
        data: the graph.
        seed: of the two independent draws, outliers of training and outliers of test.
    """
    num_nodes, _ = _checked_graph(data)
    everything = torch.ones(num_nodes, dtype=torch.bool)
    train, test = (_outliers(data, everything, x=_mixed_rows(data.x, rng)) for rng in _two_generators(seed))
    return OODSetting("feature", _inliers(data, everything), train, (test,))


def label_leave_out(data: Data, threshold: int) -> OODSetting:
    """Keep the graph and leave classes out of what is in distribution.

    In distribution are the labels above ``threshold``, outliers of training those equal to it, outliers of
    test those below it; nodes without a label (-1) count nowhere. GNNSafe takes 3 on Cora, 4 on Amazon-Photo
    and Coauthor-CS. The classifier keeps its outputs for the classes left out.

    Raises:
        InputError: if one of the three groups is empty.
    """
    _checked_graph(data)
    check_count(threshold, "threshold", minimum=1)
    y = data.y
    test = _outliers(data, (y >= 0) & (y < threshold))
    return OODSetting("label", _inliers(data, y > threshold), _outliers(data, y == threshold), (test,))


def twitch_regions(regions: Mapping[str, Data]) -> OODSetting:
    """German streamers in distribution, English outliers in training, Spanish, French and Russian in test.

    Args:
        regions: graphs by region, ``DE``, ``EN`` (or ``ENGB``, the name of the MUSAE files), ``ES``, ``FR``,
            ``RU``; others are ignored.

    Raises:
        InputError: if a region is missing.
    """
    graphs = {("EN" if name == "ENGB" else name): data for name, data in regions.items()}
    for region in ("DE", "EN", "ES", "FR", "RU"):
        if region not in graphs:
            raise InputError(
                f"twitch_regions needs region {region}, got {', '.join(sorted(regions)) or 'none'}"
            )
    masks = {name: torch.ones(data.x.size(0), dtype=torch.bool) for name, data in graphs.items()}
    english, *others = (_outliers(graphs[name], masks[name]) for name in ("EN", "ES", "FR", "RU"))
    return OODSetting("twitch", _inliers(graphs["DE"], masks["DE"]), english, tuple(others))


def arxiv_years(
    data: Data,
    year: Tensor,
    *,
    id_until: int = 2015,
    outlier_until: int = 2017,
    test_years: tuple[int, ...] = (2018, 2019, 2020),
) -> OODSetting:
    """Split a graph by the year of its nodes, each part in the graph as it stood then.

    In distribution: years up to ``id_until``; outliers of training: up to ``outlier_until``; of test: each of
    ``test_years``. Each graph keeps all nodes and the edges among those not younger than the part; the nodes
    not yet there are isolated.

    Args:
        data: the graph with its directed edges (GNNSafe does not symmetrise Arxiv).
        year: ``[N]`` integers.

    Raises:
        InputError: if the years do not fit the graph, or a part is empty.
    """
    num_nodes, _ = _checked_graph(data)
    if year.shape != (num_nodes,) or year.is_floating_point():
        raise InputError(f"year must hold {num_nodes} integers, got {year.dtype} {list(year.shape)}")

    def part(after: int | None, until: int) -> tuple[Tensor, Tensor]:
        present = year <= until
        nodes = present if after is None else present & (year > after)
        return nodes, present[data.edge_index].all(dim=0)

    id_nodes, id_edges = part(None, id_until)
    train_nodes, train_edges = part(id_until, outlier_until)
    tests = tuple(
        _outliers(data, nodes, edges=edges) for nodes, edges in (part(y - 1, y) for y in test_years)
    )
    train = _outliers(data, train_nodes, edges=train_edges)
    return OODSetting("arxiv", _inliers(data, id_nodes, edges=id_edges), train, tests)


def _inliers(data: Data, nodes: Tensor, *, edges: Tensor | None = None) -> Data:
    graph = _outliers(data, nodes, edges=edges)
    for name in SPLIT_MASKS:
        if data.get(name) is not None:
            check_mask(data[name], data.x.size(0), name)
            graph[name] = data[name] & nodes
    return graph


def _outliers(
    data: Data,
    nodes: Tensor,
    *,
    x: Tensor | None = None,
    edge_index: Tensor | None = None,
    edges: Tensor | None = None,
) -> Data:
    """Return ``data`` with other features, other edges, or only the edges of the mask ``edges``."""
    graph = Data(x=data.x if x is None else x, y=data.y, node_mask=nodes)
    if edge_index is not None:
        graph.edge_index = edge_index
        return graph
    graph.edge_index = data.edge_index if edges is None else data.edge_index[:, edges]
    weight = data.get("edge_weight")
    if weight is not None:
        graph.edge_weight = weight if edges is None else weight[edges]
    return graph


def _mixed_rows(x: Tensor, rng: np.random.Generator) -> Tensor:
    first, second = (torch.from_numpy(rng.integers(len(x), size=len(x))) for _ in range(2))
    share = torch.from_numpy(rng.random(len(x))).to(x.dtype).unsqueeze(1)
    mixed = torch.empty_like(x)
    # In pieces: wide features (Coauthor-CS: half a gigabyte) leave no room for temporaries as large.
    for start in range(0, len(x), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        torch.lerp(x[second[rows]], x[first[rows]], share[rows], out=mixed[rows])
    return mixed


def _two_generators(seed: int) -> list[np.random.Generator]:
    return np.random.default_rng(check_count(seed, "seed")).spawn(2)


def _checked_graph(data: Data) -> tuple[int, int]:
    check_features(data.x)
    num_nodes = int(data.x.size(0))
    check_edge_index(data.edge_index, num_nodes)
    num_classes = int(data.y.max()) + 1 if data.y is not None and data.y.numel() else 0
    if num_classes < 1:
        raise InputError("the graph has no labels, expected y with at least one class number >= 0")
    check_labels(data.y, num_nodes, num_classes, mask=data.y != -1)
    return num_nodes, num_classes
