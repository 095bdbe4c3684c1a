"""NetworkX, GraphML and PyG graphs, and the dispatcher."""

import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import to_networkx

from dssgnn.data.own.exchange import read_graph
from dssgnn.errors import InputError
from graph_files import GRAPHML, write_csv


def pairs(graph: Any) -> set[tuple[Any, Any]]:
    return {(graph.node_ids[a], graph.node_ids[b]) for a, b in graph.data.edge_index.T.tolist()}


def people(kind: type = nx.Graph) -> Any:
    graph = kind()
    graph.add_node("u", age=1, hair="red", label="cat", split="train")
    graph.add_node("v", age=2.5, hair="black", label="dog")
    graph.add_node("w", age=3, hair="red")
    graph.add_edge("u", "v", weight=2)
    graph.add_edge("w", "w", weight=1)
    return graph


def test_undirected_networkx_goes_both_ways() -> None:
    graph = read_graph(people())
    assert graph.node_ids.tolist() == ["u", "v", "w"]
    assert graph.data.x.tolist() == [[1, 0, 1], [2.5, 1, 0], [3, 0, 1]]
    assert graph.encoding.feature_names == ("age", "hair=black", "hair=red")
    assert sorted(graph.data.edge_index.T.tolist()) == [[0, 1], [1, 0], [2, 2]]
    assert sorted(graph.data.edge_weight.tolist()) == [1, 2, 2]
    assert graph.data.y.tolist() == [0, 1, -1]
    assert graph.class_names == ("cat", "dog")
    assert graph.data.train_mask.tolist() == [True, False, False]


def test_directed_and_multi_networkx() -> None:
    assert pairs(read_graph(people(nx.DiGraph))) == {("u", "v"), ("w", "w")}
    multi = people(nx.MultiDiGraph)
    multi.add_edge("u", "v", weight=5)
    graph = read_graph(multi)
    assert graph.report.duplicate_edges == 1
    assert sorted(graph.data.edge_weight.tolist()) == [1, 2, 5]


def test_networkx_and_tables_agree(tmp_path: Path) -> None:
    nodes = "id,label,split,age,hair\nu,cat,train,1,red\nv,dog,,2.5,black\nw,,,3,red\n"
    table = read_graph(write_csv(tmp_path, nodes, "source,target,weight\nu,v,2\nw,w,1\n"))
    graph = read_graph(people(nx.DiGraph), encoding=table.encoding)
    assert torch.equal(graph.data.x, table.data.x)
    assert torch.equal(graph.data.y, table.data.y)
    assert torch.equal(graph.data.edge_index, table.data.edge_index)
    assert graph.report == table.report


def test_the_karate_club_with_degrees() -> None:
    club = nx.karate_club_graph()
    for node in club:
        club.nodes[node]["degree"] = club.degree[node]
        club.nodes[node]["label"] = club.nodes[node].pop("club")
    graph = read_graph(club)
    assert (graph.report.num_nodes, graph.report.num_edges, graph.report.one_way_edges) == (34, 156, 0)
    assert graph.class_names == ("Mr. Hi", "Officer")
    assert graph.node_ids.dtype == np.int64
    degrees = torch.bincount(graph.data.edge_index[0], minlength=34).float()
    assert torch.equal(graph.data.x[:, 0], degrees)


def test_vectors_become_columns_and_pyg_survives_the_round_trip() -> None:
    data = Data(x=torch.tensor([[1.0, 2], [3, 4], [5, 6]]), edge_index=torch.tensor([[0, 1], [1, 2]]))
    graph = read_graph(to_networkx(data, node_attrs=["x"]))
    assert graph.encoding.feature_names == ("x[0]", "x[1]")
    assert torch.equal(graph.data.x, data.x)
    assert torch.equal(graph.data.edge_index, data.edge_index)


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ({1: {"f": 1}, "1": {"f": 2}}, "two nodes are both written '1'"),
        ({1: {"f": 1}, 2: {"f": "a"}}, "'f' mixes kinds"),
        ({1: {"f": 1}, 2: {}}, "row 1: column 'f' is missing"),
        ({1: {"f": [1, 2]}, 2: {"f": [1]}}, "vectors of one length"),
        ({1: {"f": [1, 2]}, 2: {}}, "vectors of one length"),
        ({1: {"f": []}, 2: {"f": []}}, "vectors of one length"),
        ({1: {"f": [[1], [2, 3]]}, 2: {"f": [[1], [2]]}}, "vectors of one length"),
        ({1: {"f": {"a": 1}}}, "column 'f' has type struct"),
        ({1: {"f": 1 + 2j}}, "'f' mixes kinds"),
        ({1: {"f": float("inf")}}, "row 0: column 'f' is inf"),
        ({1: {"f": 10**400}}, "'f' mixes kinds"),
        ({1: {"id": 3}}, "'id' is there twice"),
        ({1: {"f": 1, "\ud800": 1}}, "mixes kinds"),
        ({1: {}}, "no feature columns"),
        ({}, "no rows"),
    ],
)
def test_bad_networkx(nodes: dict[Any, Any], problem: str) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(nodes.items())
    with pytest.raises(InputError) as caught:
        read_graph(graph)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_graphml(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(GRAPHML)
    graph = read_graph(path)
    assert graph.node_ids.tolist() == ["a", "b", "c"]
    assert graph.data.x.tolist() == [[1.5], [2], [-3]]
    assert graph.data.y.tolist() == [0, 1, -1]
    assert pairs(graph) == {("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")}
    path.write_text(GRAPHML.replace("undirected", "directed"))
    assert pairs(read_graph(path)) == {("a", "b"), ("b", "c")}


def test_graphml_that_networkx_wrote(tmp_path: Path) -> None:
    graph = people(nx.DiGraph)
    graph.nodes["w"]["label"] = "dog"
    nx.write_graphml(graph, tmp_path / "g.graphml")
    loaded, direct = read_graph(tmp_path / "g.graphml"), read_graph(graph)
    assert torch.equal(loaded.data.x, direct.data.x)
    assert torch.equal(loaded.data.edge_index, direct.data.edge_index)
    assert loaded.class_names == direct.class_names


def test_graphml_without_networkx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g.graphml").write_text(GRAPHML)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(InputError, match="needs networkx"):
        read_graph(tmp_path / "g.graphml")


def test_data_is_taken_but_not_touched() -> None:
    x = torch.eye(3, dtype=torch.float64).to_sparse()
    data = Data(
        x=x,
        edge_index=torch.tensor([[0, 1], [1, 2]], dtype=torch.int32),
        y=torch.tensor([[4], [9], [4]]),
        pos=torch.ones(3, 2),
    )
    graph = read_graph(data)
    assert graph.data is not data
    assert torch.equal(graph.data.x, torch.eye(3))
    assert graph.data.edge_index.dtype == torch.int64
    assert graph.data.y.tolist() == [0, 1, 0]
    assert graph.class_names == (4, 9)
    assert graph.report.ignored == ("pos",)
    assert data.x is x
    assert data.y.tolist() == [[4], [9], [4]]
    assert data.edge_index.dtype == torch.int32


def test_data_without_labels() -> None:
    graph = read_graph(Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64)))
    assert graph.data.y.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("thing", "problem"),
    [
        (Data(), "has no x"),
        (Data(x=torch.ones(2, 1)), "has no edge_index"),
        (Data(x=[1, 2], edge_index=torch.zeros(2, 0, dtype=torch.int64)), "x is a list"),
        (Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 1)), "edge_index holds torch.float32"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])), "names node 2"),
        (
            Data(x=torch.ones(2, 1) * 1j, edge_index=torch.zeros(2, 0, dtype=torch.int64)),
            "expected real numbers",
        ),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.ones(2)),
            "y holds",
        ),
        (Data(x=torch.ones(()), edge_index=torch.zeros(2, 0, dtype=torch.int64)), "x has shape []"),
        (HeteroData(), "cannot be a HeteroData"),
        (None, "cannot be a NoneType"),
        (3, "cannot be a int"),
        ("", "neither of"),
        ("a\0b", "does not exist"),
        ("x" * 5000, "does not exist"),
    ],
)
def test_things_that_are_no_graphs(
    thing: object, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        read_graph(thing)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
