"""GNNSafe's out-of-distribution sets: what each keeps, what it replaces, and in which distribution."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch_geometric.data import Data

from dssgnn.data.settings.ood import (
    OODSetting,
    arxiv_years,
    feature_shift,
    label_leave_out,
    structure_shift,
    twitch_regions,
)
from dssgnn.errors import InputError


def shaped_graph(num_nodes: int, entries: int, classes: int, channels: int = 1) -> Data:
    """A graph of the given size; a structure shift looks at nothing else."""
    gen = torch.Generator().manual_seed(0)
    y = torch.arange(num_nodes) % classes
    edges = torch.randint(num_nodes, (2, entries), generator=gen)
    return Data(x=torch.rand(num_nodes, channels, generator=gen), edge_index=edges, y=y)


# Sizes and expected entries are those of baselines.md section 3; the sampling error is ours.
@pytest.mark.parametrize(
    ("num_nodes", "entries", "classes", "expected"),
    [
        pytest.param(2708, 10556, 7, 6783, id="cora"),
        pytest.param(7650, 238162, 8, 148824, id="amazon-photo"),
        pytest.param(18333, 163788, 15, 92805, id="coauthor-cs"),
    ],
)
def test_structure_shift_has_the_published_density(num_nodes, entries, classes, expected):
    data = shaped_graph(num_nodes, entries, classes)
    setting = structure_shift(data, seed=0)
    sd = np.sqrt(2 * expected)  # twice a sum of independent rare edges whose mean is expected / 2
    for graph in (setting.outlier_train, *setting.outlier_test):
        source, target = graph.edge_index
        assert abs(source.numel() - expected) < 4 * sd
        key = source * num_nodes + target
        assert torch.equal(key, key.unique())
        assert torch.equal((target * num_nodes + source).sort().values, key)
        assert not bool((source == target).any())
        assert bool(graph.node_mask.all())
        assert graph.x is data.x
        assert graph.y is data.y
        # Within and between blocks of contiguous nodes the chances are 3 to 1, pair for pair.
        size = num_nodes // classes
        block = (torch.arange(num_nodes) // size).clamp(max=classes - 1)
        within = int((block[source] == block[target]).sum())
        sizes = block.bincount().double()
        pairs = float((sizes * (sizes - 1)).sum())
        rate_in = within / pairs
        rate_out = (source.numel() - within) / (num_nodes * (num_nodes - 1) - pairs)
        density = entries / (num_nodes * (num_nodes - 1))
        assert rate_in == pytest.approx(1.5 * density, rel=4 * np.sqrt(2 / within))
        assert rate_out == pytest.approx(0.5 * density, rel=4 * np.sqrt(2 / (source.numel() - within)))
    assert not torch.equal(
        setting.outlier_train.edge_index[:, :99], setting.outlier_test[0].edge_index[:, :99]
    )
    assert setting.in_distribution.edge_index is data.edge_index


def test_isolated_nodes_of_cora_structure():
    source = structure_shift(shaped_graph(2708, 10556, 7), seed=3).outlier_test[0].edge_index[0]
    isolated = 1 - source.unique().numel() / 2708
    assert isolated == pytest.approx(np.exp(-2.5), abs=0.025)


def test_feature_shift_mixes_two_uniform_rows():
    n = 1500
    data = Data(x=torch.eye(n), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(n, dtype=torch.int64))
    setting = feature_shift(data, seed=0)
    for graph in (setting.outlier_train, *setting.outlier_test):
        assert graph.edge_index is data.edge_index
        assert torch.allclose(graph.x.sum(dim=1), torch.ones(n))
        mixed = (graph.x > 0).sum(dim=1)
        assert int(mixed.max()) == 2  # a row that meets itself has one entry, which happens to one node in n
        assert int((mixed == 1).sum()) < 8
        # Either share of a mixture is uniform on 0..1, hence so is the one of the lower node number.
        shares = graph.x[mixed == 2]
        first = shares.gather(1, (shares > 0).int().argmax(dim=1, keepdim=True)).squeeze(1)
        assert stats.kstest(first.numpy(), "uniform").pvalue > 0.01
        used = (graph.x > 0).sum(dim=0)
        counts = used.bincount(minlength=8)[:6].numpy()
        poisson = stats.poisson(2).pmf(np.arange(6)) * n  # two draws a node, with replacement
        assert np.abs(counts - poisson).max() < 4 * np.sqrt(poisson.max())
    assert not torch.equal(setting.outlier_train.x, setting.outlier_test[0].x)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 40))
def test_same_seed_same_sets(seed, num_nodes):
    data = shaped_graph(num_nodes, num_nodes // 2, 2, channels=3)
    for make in (structure_shift, feature_shift):
        one, two = make(data, seed), make(data, seed)
        for a, b in zip(one.outlier_test, two.outlier_test, strict=True):
            assert torch.equal(a.x, b.x)
            assert torch.equal(a.edge_index, b.edge_index)
        low, high = data.x.min(dim=0).values, data.x.max(dim=0).values
        assert bool(((one.outlier_train.x >= low - 1e-6) & (one.outlier_train.x <= high + 1e-6)).all())


def test_label_leave_out_parts_and_public_masks():
    y = torch.tensor([0, 1, 2, 3, 4, 5, 3, -1, 6, 4])
    train = torch.tensor([1, 1, 0, 1, 1, 0, 0, 0, 0, 0], dtype=torch.bool)
    weight = torch.tensor([0.5])
    data = Data(
        x=torch.rand(10, 2), y=y, edge_index=torch.tensor([[0], [1]]), edge_weight=weight, train_mask=train
    )
    setting = label_leave_out(data, threshold=3)
    assert setting.in_distribution.node_mask.nonzero().flatten().tolist() == [4, 5, 8, 9]
    assert setting.outlier_train.node_mask.nonzero().flatten().tolist() == [3, 6]
    (test,) = setting.outlier_test
    assert test.node_mask.nonzero().flatten().tolist() == [0, 1, 2]  # not node 7, which has no label
    assert setting.in_distribution.train_mask.nonzero().flatten().tolist() == [4]
    assert "train_mask" not in test
    assert "val_mask" not in setting.in_distribution
    for graph in (setting.in_distribution, setting.outlier_train, test):
        assert graph.x is data.x
        assert graph.edge_index is data.edge_index
        assert graph.edge_weight is weight
    assert "node_mask" not in data


@given(st.lists(st.integers(-1, 5), min_size=3, max_size=30), st.integers(1, 5))
def test_label_leave_out_partitions_the_labelled_nodes(labels, threshold):
    y = torch.tensor(labels)
    data = Data(x=torch.rand(len(labels), 1), y=y, edge_index=torch.empty(2, 0, dtype=torch.int64))
    try:
        setting = label_leave_out(data, threshold)
    except InputError:
        kinds = {label > threshold for label in labels if label not in (-1, threshold)}
        assert kinds != {True, False} or threshold not in labels
        return
    masks = [
        setting.in_distribution.node_mask,
        setting.outlier_train.node_mask,
        setting.outlier_test[0].node_mask,
    ]
    assert torch.equal(torch.stack(masks).sum(dim=0), (y >= 0).long())


def test_arxiv_graphs_grow_year_by_year():
    year = torch.tensor([2013, 2015, 2016, 2017, 2018, 2019, 2020, 2020])
    edges = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 6], [0, 1, 2, 0, 4, 5, 6, 7]])
    data = Data(x=torch.rand(8, 2), y=torch.arange(8) % 3, edge_index=edges)
    setting = arxiv_years(data, year)
    graphs = (setting.in_distribution, setting.outlier_train, *setting.outlier_test)
    assert [graph.node_mask.nonzero().flatten().tolist() for graph in graphs] == [
        [0, 1],
        [2, 3],
        [4],
        [5],
        [6, 7],
    ]
    assert [graph.edge_index.size(1) for graph in graphs] == [1, 3, 4, 5, 8]
    assert all(graph.num_nodes == 8 for graph in graphs)
    assert graphs[0].edge_index.tolist() == [[1], [0]]  # directed, as given
    with pytest.raises(InputError, match=r"node_mask of outlier_test\[1\] in 'arxiv' is empty"):
        arxiv_years(data, year.clamp(max=2018))
    with pytest.raises(InputError, match=r"year must hold 8 integers, got torch.float32 \[8\]"):
        arxiv_years(data, year.float())


def test_twitch_roles_and_missing_regions():
    sizes = {"DE": 5, "ENGB": 4, "ES": 3, "FR": 6, "PTBR": 2, "RU": 7}
    regions = {name: shaped_graph(size, 4, 2) for name, size in sizes.items()}
    setting = twitch_regions(regions)
    graphs = (setting.in_distribution, setting.outlier_train, *setting.outlier_test)
    assert [graph.num_nodes for graph in graphs] == [5, 4, 3, 6, 7]
    assert all(bool(graph.node_mask.all()) for graph in graphs)
    del regions["FR"]
    with pytest.raises(InputError, match="needs region FR, got DE, ENGB, ES, PTBR, RU"):
        twitch_regions(regions)


def test_bad_settings_are_refused():
    data = shaped_graph(6, 4, 3)
    good = label_leave_out(data, 1)
    with pytest.raises(InputError, match="node_mask of in_distribution in 'label' is empty"):
        label_leave_out(data, 2)
    with pytest.raises(InputError, match="threshold must be an integer >= 1, got 0"):
        label_leave_out(data, 0)
    with pytest.raises(InputError, match="no graph in outlier_test"):
        OODSetting("x", good.in_distribution, good.outlier_train, ())
    with pytest.raises(InputError, match="node_mask of outlier_train in 'x' must be a boolean"):
        OODSetting("x", good.in_distribution, data, good.outlier_test)
    wide = shaped_graph(6, 4, 3, channels=2)
    wide.node_mask = torch.ones(6, dtype=torch.bool)
    with pytest.raises(InputError, match=r"outlier_test\[0\] of 'x' has 2 features, in_distribution has 1"):
        OODSetting("x", good.in_distribution, good.outlier_train, (wide,))
    with pytest.raises(InputError, match="density of at most 2/3"):
        structure_shift(shaped_graph(4, 10, 2), seed=0)
    with pytest.raises(InputError, match="seed must be an integer >= 0, got -1"):
        structure_shift(data, seed=-1)
    data.y = torch.full((6,), -1)
    with pytest.raises(InputError, match="no labels"):
        feature_shift(data, seed=0)
