"""Every raw format against known answers, PyG's own reading of it, and damage."""

import os
import pickle
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.io import read_npz, read_planetoid_data
from torch_geometric.utils import remove_self_loops, sort_edge_index

import raw_files
from dssgnn.data.catalog.readers import READERS, RawFile
from dssgnn.data.catalog.readers.planetoid import restricted_unpickle
from dssgnn.errors import InputError

ALL_FORMATS = {
    "planetoid": raw_files.planetoid(),
    "geom-gcn": raw_files.geom_gcn(),
    "gnn-benchmark": {"graph": raw_files.gnn_benchmark()},
    "heterophilous": {"graph": raw_files.heterophilous()},
    "musae": raw_files.musae(),
    "pyg-twitch": {"graph": raw_files.pyg_twitch()},
    "ogb-arxiv": raw_files.arxiv(),
}


def read(reader, files=None, **changed):
    return READERS[reader](raw_files.raw({**(files or ALL_FORMATS[reader]), **changed}))


def test_planetoid_known_answer():
    data = read("planetoid").to_data()
    assert data.x.shape == (10, 3)
    assert data.x[[0, 9, 6, 8]].tolist() == [[1, 0, 2], [9, 0, 0], [6, 6, 0], [0, 0, 8]]
    assert data.x[7].tolist() == [0, 0, 0]  # in the test range without a row: zero features, class 0
    assert data.y.tolist() == [1, 2, 0, 1, 2, 0, 1, 0, 2, 2]
    assert data.edge_index.T.tolist() == [[0, 1], [0, 9], [1, 0], [4, 4], [8, 3], [9, 0]]
    assert data.train_masks.flatten().nonzero().flatten().tolist() == [0, 1]
    assert data.test_masks.flatten().nonzero().flatten().tolist() == [6, 8, 9]


@pytest.mark.parametrize("seed", range(3))
def test_planetoid_agrees_with_pyg(tmp_path, seed):
    files = raw_files.random_planetoid(seed)
    raw_files.write(tmp_path, {f"ind.citeseer.{part}": content for part, content in files.items()})
    theirs = read_planetoid_data(str(tmp_path), "citeseer")
    ours = read("planetoid", files).to_data()
    assert ours.num_nodes == 620
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    edges = sort_edge_index(remove_self_loops(ours.edge_index)[0])
    assert torch.equal(edges, sort_edge_index(theirs.edge_index))
    assert torch.equal(ours.train_masks[:, 0], theirs.train_mask)
    assert torch.equal(ours.val_masks[:, 0], theirs.val_mask)
    assert torch.equal(ours.test_masks[:, 0], theirs.test_mask)


def test_python_2_pickles_are_read():
    graph = defaultdict(list, {0: [1], 1: [0]})
    content = pickle.dumps(graph, protocol=2)
    assert b"__builtin__" in content
    assert restricted_unpickle(RawFile(Path("g"), content)) == graph


class Call:
    def __init__(self, function, *arguments):
        self.state = function, arguments

    def __reduce__(self):
        return self.state


@pytest.mark.parametrize(
    "function", [os.system, subprocess.check_output, eval, exec, __import__, np.save, np.load, getattr, open]
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_wants_to_run_code_is_refused(tmp_path, function, protocol):
    marker = tmp_path / "marker"
    content = pickle.dumps([Call(function, f"touch {marker}")], protocol=protocol)
    with pytest.raises(InputError, match=r"evil\.allx: not a Planetoid pickle: it asks for .* not allowed"):
        restricted_unpickle(RawFile(Path("evil.allx"), content))
    assert not marker.exists()


@pytest.mark.parametrize("name", [b"ndarray.tofile", b"dtype.__new__", b"f2py"])
def test_attributes_of_allowed_classes_are_refused(name):
    content = b"\x80\x04\x8c\x05numpy\x8c" + bytes([len(name)]) + name + b"\x93."
    with pytest.raises(InputError, match="not allowed"):
        restricted_unpickle(RawFile(Path("evil"), content))


def test_a_matrix_that_points_outside_itself_is_refused():
    matrix = sp.csr_matrix(np.eye(6, 3, dtype=np.float32))
    matrix.indices[0] = 1_000_000
    with pytest.raises(InputError, match="allx: the CSR matrix's row pointers or columns do not fit"):
        read("planetoid", allx=pickle.dumps(matrix, protocol=4))


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("test.index", b"9\nsix\n8\n", "test.index: expected one node number a line"),
        ("test.index", b"9\n9\n8\n", "test.index: expected distinct nodes from 6 on"),
        ("test.index", b"6\n7\n", "tx: 3 rows, but test.index has 2"),
        ("graph", pickle.dumps({0: [1]}), "graph: expected a pickled dict with the neighbour lists of 10"),
        ("graph", pickle.dumps({n: [77] for n in range(10)}), "graph: an edge names node 77, expected 0..9"),
        ("graph", pickle.dumps({n: [0.5] for n in range(10)}), "graph: edges are float64"),
        ("ally", pickle.dumps([1, 2]), "ally: expected a pickled one-hot label matrix"),
        ("allx", pickle.dumps([1, 2]), "allx: expected a pickled CSR matrix"),
        ("allx", b"", "allx: not a Planetoid pickle"),
    ],
)
def test_planetoid_errors_name_the_file(part, content, message):
    with pytest.raises(InputError, match=message):
        read("planetoid", **{part: content})


def test_geom_gcn_known_answer():
    data = read("geom-gcn").to_data()
    assert data.x.tolist() == [[0, 0, 1], [0, 0, 0], [1, 1, 0]]  # sorted by id
    assert data.y.tolist() == [0, 1, 1]
    assert data.edge_index.T.tolist() == [[0, 2], [1, 1], [1, 2], [2, 0]]  # directed, each once
    assert data.test_masks.shape == (3, 10)
    assert data.test_masks[:, 4].tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("edges", b"a\tb\n0\t1\n0;2\n", "edges: line 3 is '0;2', expected two node numbers"),
        ("edges", b"a\tb\n0\t9\n", "edges: an edge names node 9, expected 0..2"),
        ("nodes", b"h\n0\t0,2\t1\n", "nodes: line 2 is .* expected an id, 0/1 features"),
        ("nodes", b"h\n0\t0,1\t1\n1\t0\t1\n", "nodes: line 3 has 1 features, expected 2"),
        ("nodes", b"h\n0\t0\t1\n0\t1\t1\n", "nodes: node ids must be 0..1, each once"),
        ("nodes", b"", "nodes: node ids"),
        ("split_3", b"PK", "split_3: expected an .npz with train_mask"),
        ("split_3", raw_files.npz(train_mask=[1]), "split_3: it has no array 'val_mask'"),
    ],
)
def test_geom_gcn_errors_name_file_and_line(part, content, message):
    with pytest.raises(InputError, match=message):
        read("geom-gcn", **{part: content})


def test_gnn_benchmark_agrees_with_pyg(tmp_path):
    path = tmp_path / "graph.npz"
    path.write_bytes(raw_files.gnn_benchmark())
    theirs = read_npz(str(path), to_undirected=False)
    ours = read("gnn-benchmark").to_data()
    assert torch.equal(ours.x, theirs.x)
    assert ours.x.tolist() == [[1, 0], [1, 1], [0, 0], [0, 1]]
    assert torch.equal(ours.y, theirs.y)
    assert ours.edge_index.T.tolist() == [[0, 1], [1, 2], [3, 2], [3, 3]]  # the loop is kept here
    assert torch.equal(remove_self_loops(ours.edge_index)[0], theirs.edge_index)


def test_pickled_members_of_an_npz_are_never_opened(tmp_path):
    marker = tmp_path / "marker"
    names = np.array([Call(os.system, f"touch {marker}")], dtype=object)
    assert read("gnn-benchmark", graph=raw_files.gnn_benchmark(node_names=names)).labels.tolist() == [
        0,
        1,
        1,
        0,
    ]
    with pytest.raises(InputError, match="allow_pickle=False"):
        read("gnn-benchmark", graph=raw_files.gnn_benchmark(labels=names))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 1])}, r"labels are int64 \[2\], expected 4 integers"),
        ({"labels": np.array([0, -1, 1, 1])}, "the label of node 1 is -1"),
        ({"attr_shape": np.array([4])}, r"attr_\* is not a CSR matrix"),
        ({"attr_indices": np.array([0, 0, 1, 5])}, r"attr_\* is not a CSR matrix"),
        ({"attr_indptr": np.array([0, 1, 2, 3, 4, 4])}, r"attr_\* is not a CSR matrix"),
    ],
)
def test_gnn_benchmark_errors(change, message):
    with pytest.raises(InputError, match=message):
        read("gnn-benchmark", graph=raw_files.gnn_benchmark(**change))


def test_heterophilous_known_answer():
    data = read("heterophilous").to_data()
    assert data.x[0].tolist() == [-4.5, -3.5]
    assert data.edge_index.T.tolist() == [[0, 1], [1, 2], [4, 3]]
    assert data.y.tolist() == [0, 1, 2, 1, 0]
    assert data.train_masks.T.tolist() == [[True] * 3 + [False] * 2, [False] * 2 + [True] * 3]


def test_musae_joins_by_new_id_and_ignores_repeated_feature_ids():
    data = read("musae").to_data()
    assert data.y.tolist() == [0, 1, 1]
    assert data.x.shape == (3, 3170)
    assert [row.nonzero().flatten().tolist() for row in data.x] == [[0], [], [5, 3169]]
    assert data.x.max() == 1
    assert data.edge_index.T.tolist() == [[0, 2], [1, 2]]


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        (
            "target",
            b"new_id,mature\n0,True\n0,False\n",
            "target: new_id 0 is listed with two different labels",
        ),
        ("target", b"new_id,mature\n0,True\n2,False\n", "target: new_id must cover 0..1"),
        ("target", b"new_id,mature\n0,yes\n", "target: expected integers in new_id and True or False"),
        ("target", b"id,mature\n0,True\n", "target: expected a CSV with the columns new_id, mature"),
        ("target", b"", "target: expected a CSV"),
        ("features", b'{"0": [3170]}', "features: feature id 3170, expected 0..3169"),
        ("features", b'{"7": [1]}', "features: features of node 7, expected 0..2"),
        ("features", b'{"0": "12"}', "features: expected a JSON map"),
        ("features", b'{"0": [1.5]}', "features: expected a JSON map"),
        ("features", b"[1]", "features: expected a JSON map"),
        ("features", b"{", "features: expected a JSON map"),
        ("edges", b"from,to\n0,\n", "edges: edges are float64"),
        ("edges", b"from,to\n0,3\n", "edges: an edge names node 3, expected 0..2"),
    ],
)
def test_musae_errors(part, content, message):
    with pytest.raises(InputError, match=message):
        read("musae", **{part: content})


def test_pyg_twitch_known_answer():
    data = read("pyg-twitch").to_data()
    assert data.x.shape == (3, 128)
    assert data.x.dtype == torch.float32
    assert (float(data.x[0, 0]), float(data.x[2, 127])) == (-1.0, 1.0)
    assert data.y.tolist() == [1, 0, 1]
    assert data.edge_index.T.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]


def test_arxiv_known_answer():
    data = read("ogb-arxiv").to_data()
    assert data.x.tolist() == [[0.5, -1.0], [0.25, 2.0], [0.0, 0.0], [1.5, 3.0]]
    assert data.y.tolist() == [3, 0, 1, 3]
    assert data.year.tolist() == [2013, 2016, 2018, 2020]
    assert data.edge_index.T.tolist() == [[0, 1], [2, 1], [3, 0]]
    masks = torch.cat([data.train_masks, data.val_masks, data.test_masks], dim=1)
    assert masks.tolist() == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
        [False, False, True],
    ]


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("node-feat", b"1,2\n", "node-feat: 1 rows, but num-node-list says 4"),
        ("node-feat", b"a,b\n1,2\n3,4\n5,6\n", "node-feat: 2 columns of object"),
        ("edge", b"0,1,2\n", "edge: 3 columns of int64, expected 2 columns of integers"),
        ("edge", b"0,1.5\n", "edge: 2 columns of float64"),
        ("valid", b"9\n", "valid: node 9, expected 0..3"),
        ("node-label", b"", "node-label: expected a CSV"),
    ],
)
def test_arxiv_errors(part, content, message):
    with pytest.raises(InputError, match=message):
        read("ogb-arxiv", **{part: content})


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_gives_a_graph_or_our_own_error(data):
    reader = data.draw(st.sampled_from(sorted(ALL_FORMATS)))
    role = data.draw(st.sampled_from(sorted(ALL_FORMATS[reader])))
    content = bytearray(ALL_FORMATS[reader][role])
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    message = ""
    try:
        graph = read(reader, **{role: bytes(content)})
    except InputError as error:
        message = str(error)
    else:
        nodes = len(graph.labels)
        assert graph.features.shape[0] == nodes
        assert not graph.edge_index.size or 0 <= graph.edge_index.min() <= graph.edge_index.max() < nodes
        graph.to_data()
    assert "\n" not in message


def test_real_planetoid_files_are_python_2_pickles_and_read(data_root):
    content = (data_root / "Planetoid/Cora/raw/ind.cora.graph").read_bytes()
    assert content.startswith(b"\x80\x02")
    lists = restricted_unpickle(RawFile(Path("graph"), content))
    assert (len(lists), sum(map(len, lists.values()))) == (2708, 10858)
