"""Degree, homophily, distance and neighbourhoods against networkx and by hand."""

import networkx as nx
import numpy as np
import pytest

from dssgnn.report.structure import (
    adjacency,
    distance,
    distance_groups,
    homophily,
    homophily_groups,
    integer_groups,
    neighbourhood,
)


def random_graph(seed: int, nodes: int = 40) -> tuple[np.ndarray, nx.Graph]:
    """Directed, with repeated edges, self-loops and isolated nodes; and the simple graph it stands for."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(nodes - 5, size=(2, 50))
    edges = np.concatenate([edges, edges[:, :7], edges[::-1, 3:9], [[1, 2], [1, 2]]], axis=1)
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((a, b) for a, b in edges.T.tolist() if a != b)
    return edges, graph


@pytest.mark.parametrize("seed", range(5))
def test_against_networkx(seed: int) -> None:
    edges, reference = random_graph(seed)
    graph = adjacency(edges, 40)
    assert (graph.toarray() == nx.to_numpy_array(reference, nodelist=range(40))).all()

    labels = np.random.default_rng(seed).integers(-1, 3, size=40)
    for node, value in enumerate(homophily(graph, labels)):
        known = [labels[i] for i in reference[node] if labels[i] >= 0]
        if known and labels[node] >= 0:
            assert value == pytest.approx(np.mean(np.array(known) == labels[node]))
        else:
            assert np.isnan(value)

    lengths = nx.multi_source_dijkstra_path_length(reference, {0, 7, 11})
    assert distance(graph, np.array([0, 7, 11])).tolist() == [lengths.get(i, np.inf) for i in range(40)]


def test_no_edges_and_no_sources() -> None:
    graph = adjacency(np.empty((2, 0), dtype=np.int64), 3)
    assert np.diff(graph.indptr).tolist() == [0, 0, 0]
    assert np.isnan(homophily(graph, np.array([0, 0, 1]))).all()
    assert distance(graph, np.array([1])).tolist() == [np.inf, 0, np.inf]
    assert np.isinf(distance(graph, np.array([], dtype=np.int64))).all()
    assert neighbourhood(graph, 2).nodes.tolist() == [2]


def test_integer_groups_hold_every_node_once_and_are_named_truly() -> None:
    values = np.random.default_rng(0).geometric(0.1, 500)
    names, number = integer_groups(values)
    assert len(names) == 6
    for value, group in zip(values, number, strict=True):
        low, _, high = names[group].partition("–")
        assert int(low) <= value <= int(high or low)
    assert np.bincount(number).min() > 50
    assert integer_groups(np.array([3, 8, 5, 3]))[0] == ["3", "5", "8"]
    assert integer_groups(np.array([4, 4])).names == ["4"]


def test_groups_of_homophily_and_distance() -> None:
    assert homophily_groups(np.array([0, 0.19, 0.2, 0.8, 1, np.nan])).number.tolist() == [0, 0, 1, 4, 4, 5]
    assert distance_groups(np.array([1.0, 2, 3, 4, 9, np.inf])).number.tolist() == [1, 2, 3, 4, 4, 5]


@pytest.mark.parametrize("most", [3, 50])
def test_neighbourhood_is_the_subgraph_of_two_hops_capped(most: int) -> None:
    edges, reference = random_graph(1)
    graph = adjacency(edges, 40)
    for node in range(40):
        near = neighbourhood(graph, node, most=most)
        hops = dict(zip(near.nodes.tolist(), near.hops.tolist(), strict=True))
        lengths = nx.single_source_shortest_path_length(reference, node, cutoff=2)
        assert all(lengths[i] == hop for i, hop in hops.items())
        assert [list(hops.values()).count(hop) <= most for hop in (1, 2)] == [True, True]
        assert near.hidden == max(0, reference.degree[node] - most)
        drawn = {frozenset(near.nodes[pair].tolist()) for pair in near.edges.T}
        assert drawn == {frozenset(edge) for edge in reference.subgraph(hops).edges}
        if most == 50:
            assert hops == lengths
        assert neighbourhood(graph, node, most=most).nodes.tolist() == near.nodes.tolist()
