"""CBAS: the motif graph, the colours' statistics, and the two splits (baselines.md section 4.5)."""

import numpy as np
import pytest
import torch
from torch_geometric.utils import barabasi_albert_graph

from dssgnn.data.settings.cbas import COVARIATE_COLOURS, ba_shapes, cbas
from dssgnn.errors import InputError


@pytest.fixture(scope="module")
def many():
    return [cbas("concept", seed) for seed in range(200)]


def test_edge_counts(many):
    counts = [graph.edge_index.size(1) for graph, _ in many]
    # Simulated in the notes: 3,945 with a standard deviation of 17.
    assert np.mean(counts) == pytest.approx(3945, abs=4 * 17 / np.sqrt(len(counts)))
    assert np.std(counts) == pytest.approx(17, abs=4)
    assert sum(3908 <= count <= 3980 for count in counts) > 0.93 * len(counts)


def test_graph_is_houses_on_a_base():
    edge_index, y = ba_shapes(np.random.default_rng(0))
    pairs = set(zip(*edge_index.tolist(), strict=True))
    assert len(pairs) == edge_index.size(1)
    assert all(i != j and (j, i) in pairs for i, j in pairs)
    assert y.bincount().tolist() == [300, 160, 160, 80]
    anchors = set()
    for start in range(300, 700, 5):
        house = {(i - start, j - start) for i, j in pairs if start <= i < j < start + 5}
        assert house == {(0, 1), (0, 3), (0, 4), (1, 4), (1, 2), (2, 3)}
        outside = [(i - start, j) for i, j in pairs if start <= i < start + 5 and not start <= j < start + 5]
        ((corner, anchor),) = outside
        assert corner == 0
        assert anchor < 300
        anchors.add(anchor)
        assert y[start : start + 5].tolist() == [1, 1, 2, 2, 3]
    assert len(anchors) == 80


def base_statistics(edge_index):
    degree = edge_index[0].bincount(minlength=300).double()
    return [edge_index.size(1), degree.square().mean(), degree.max(), degree[:5].mean(), degree[-50:].mean()]


def test_base_is_that_of_pyg():
    np.random.seed(0)  # noqa: NPY002 (PyG's generator reads global state)
    torch.manual_seed(0)
    reference = np.array([base_statistics(barabasi_albert_graph(300, 5)) for _ in range(60)])
    ours = []
    for seed in range(60):
        edge_index, _ = ba_shapes(np.random.default_rng(seed))
        ours.append(base_statistics(edge_index[:, (edge_index < 300).all(dim=0)]))
    error = np.sqrt((reference.var(axis=0) + np.var(ours, axis=0)) / 60)
    assert np.all(np.abs(np.mean(ours, axis=0) - reference.mean(axis=0)) < 4 * error)


def test_concept_colours_follow_labels(many):
    rates = []
    for graph, split in many:
        same = (graph.colour == graph.y).double()
        pool = split.train | split.id_val | split.id_test
        rates.append([same[mask].mean().item() for mask in (pool, split.val, split.test)])
    error = 4 * np.std(rates, axis=0) / np.sqrt(len(rates))
    assert np.all(np.abs(np.mean(rates, axis=0) - [0.8875, 0.475, 0.25]) < error)
    by_environment = [
        np.mean([(g.colour == g.y)[s.environment == e].double().mean() for g, s in many]) for e in range(7)
    ]
    expected = [rho + (1 - rho) / 4 for rho in (0.95, 0.9, 0.85, 0.8, 0.75, 0.3, 0)]
    assert by_environment == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize(
    ("shift", "sizes", "environments"),
    [
        ("covariate", (420, 70, 70, 70, 70), [112] * 5 + [70] * 2),
        ("concept", (140,) * 5, [84] * 5 + [140] * 2),
    ],
)
def test_splits(shift, sizes, environments):
    graph, split = cbas(shift, seed=7)
    assert split.sizes() == sizes
    assert split.environment.bincount().tolist() == environments
    assert split.num_environments == 5
    assert torch.equal(split.val, split.environment == 5)
    assert torch.equal(split.test, split.environment == 6)
    assert torch.stack(list(split.masks().values())).sum(dim=0).eq(1).all()
    again, split_again = cbas(shift, seed=7)
    assert torch.equal(graph.x, again.x)
    assert torch.equal(split.train, split_again.train)
    other, split_other = cbas(shift, seed=8)
    assert not torch.equal(split.train, split_other.train)
    assert graph.edge_index.shape != other.edge_index.shape or not torch.equal(
        graph.edge_index, other.edge_index
    )


def test_both_shifts_share_graph_and_order():
    covariate, first = cbas("covariate", seed=5)
    concept, second = cbas("concept", seed=5)
    assert torch.equal(covariate.edge_index, concept.edge_index)
    assert bool((first.test <= second.test).all())  # the last 70 of one order are among its last 140
    assert bool((first.environment == 0)[second.environment == 0].all())


def test_covariate_colour_is_the_environment():
    graph, split = cbas("covariate", seed=1)
    assert torch.equal(graph.x, torch.tensor(COVARIATE_COLOURS)[split.environment])
    assert graph.x[split.test].unique(dim=0).tolist() == [pytest.approx([0, 0, 0, 0.1])]
    concept, _ = cbas("concept", seed=1)
    assert sorted(concept.x.unique(dim=0)[:, 3].tolist()) == pytest.approx([0.2, 0.3, 0.5, 0.7])


def test_unknown_shift():
    with pytest.raises(InputError, match="shift must be 'covariate' or 'concept', got 'colour'"):
        cbas("colour", seed=0)
