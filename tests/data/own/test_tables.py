"""Folders of tables: known graphs out of known files, CSV and Parquet alike."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dssgnn.benchmarks import reading as benchmark
from dssgnn.data.own.exchange import read_graph
from dssgnn.data.own.loaded import LoadedGraph
from dssgnn.data.own.tables import read_tables
from dssgnn.errors import InputError
from graph_files import snapshot, write_csv


def assert_known(graph: LoadedGraph) -> None:
    assert graph.node_ids.tolist() == ["a", "b", "c", "d"]
    assert graph.class_names == ("cat", "dog")
    assert graph.encoding.feature_names == ("age", "hair=black", "hair=red")
    assert graph.data.x.tolist() == [[1.5, 0, 1], [2, 1, 0], [-30, 0, 1], [0, 0, 0]]
    assert graph.data.x.dtype == torch.float32
    assert graph.data.y.tolist() == [0, 1, 0, -1]
    assert graph.data.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.data.edge_index.dtype == graph.data.y.dtype == torch.int64
    assert graph.data.edge_weight.tolist() == [1, 0.5, 2]
    assert graph.data.edge_weight.dtype == torch.float32
    assert graph.data.train_mask.tolist() == [True, True, False, False]
    assert graph.data.val_mask.tolist() == [False, False, True, False]
    assert graph.data.test_mask.tolist() == [False, False, False, True]
    assert graph.report.filled == (("hair", 1),)
    assert graph.report.one_way_edges == 3


def test_csv(tmp_path: Path) -> None:
    folder = write_csv(tmp_path)
    before = snapshot(tmp_path)
    assert_known(read_tables(folder))
    assert_known(read_graph(str(folder)))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("spoil", ["bom", "crlf", "cr", "blank", "spaces", "quotes", "no-final-newline"])
def test_csv_in_other_dresses(spoil: str, tmp_path: Path) -> None:
    dress = {
        "bom": lambda text: "\ufeff" + text,
        "crlf": lambda text: text.replace("\n", "\r\n"),
        "cr": lambda text: text.replace("\n", "\r"),
        "blank": lambda text: text.replace("\n", "\n\n"),
        "spaces": lambda text: text.replace(",", " , "),
        "quotes": lambda text: "\n".join(
            ",".join(f'"{cell}"' for cell in line.split(",")) for line in text.splitlines()
        ),
        "no-final-newline": lambda text: text.rstrip("\n"),
    }[spoil]
    write_csv(tmp_path)
    for name in ("nodes.csv", "edges.csv"):
        (tmp_path / name).write_bytes(dress((tmp_path / name).read_text()).encode())
    assert_known(read_tables(tmp_path))


@pytest.mark.parametrize("categories", [False, True])
def test_parquet(categories: bool, tmp_path: Path) -> None:
    nodes = pd.DataFrame(
        {
            "id": list("abcd"),
            "label": ["cat", "dog", "cat", None],
            "split": ["train", "train", "val", "test"],
            "age": [1.5, 2, -30, 0],
            "hair": ["red", "black", "red", None],
        }
    )
    if categories:
        nodes = nodes.astype({"label": "category", "hair": "category", "split": "category"})
    nodes.index = nodes.index + 10  # pandas stores it as a column of its own
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges = pd.DataFrame({"source": list("abc"), "target": list("bcd"), "weight": [1, 0.5, 2]})
    edges.to_parquet(tmp_path / "edges.parquet")
    assert_known(read_tables(tmp_path))


def test_integer_ids_in_any_order_and_across_formats(tmp_path: Path) -> None:
    pd.DataFrame(
        {"id": np.array([30, -2, 7], dtype=np.int16), "f": [1, 2, 3], "label": [5, 11, 5]}
    ).to_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n7,30\n-2,7\n")
    graph = read_tables(tmp_path)
    assert graph.node_ids.tolist() == [30, -2, 7]
    assert graph.node_ids.dtype == np.int64
    assert graph.data.edge_index.tolist() == [[2, 1], [0, 2]]
    assert graph.class_names == (5, 11)
    assert graph.data.y.tolist() == [0, 1, 0]
    assert "edge_weight" not in graph.data
    assert "train_mask" not in graph.data


@pytest.mark.parametrize(
    ("ids", "ends"),
    [
        (["1", "x"], ["1", "x"]),
        (["007", "7"], ["7", "007"]),
        (["9" * 30, "1"], ["1", "9" * 30]),
        (["NA", "null"], ["null", "NA"]),
    ],
)
def test_ids_that_are_text(ids: list[str], ends: list[str], tmp_path: Path) -> None:
    write_csv(tmp_path, "id,f\n" + "".join(f"{i},1\n" for i in ids), f"source,target\n{ends[0]},{ends[1]}\n")
    graph = read_tables(tmp_path)
    assert graph.node_ids.tolist() == ids
    assert graph.data.edge_index.flatten().tolist() == [ids.index(end) for end in ends]


def test_long_integer_ids_match_across_formats(tmp_path: Path) -> None:
    big = 2**62 + 1
    pd.DataFrame({"id": [big, 1], "f": [1, 2]}).to_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text(f"source,target\n1,{big}\n")
    assert read_tables(tmp_path).data.edge_index.tolist() == [[1], [0]]


def test_no_edges_no_labels_and_an_empty_split(tmp_path: Path) -> None:
    graph = read_tables(write_csv(tmp_path, "id,split,f\na,,1\nb,,2\n", "source,target"))
    assert graph.data.edge_index.shape == (2, 0)
    assert graph.data.y.tolist() == [-1, -1]
    assert graph.class_names == ()
    assert "train_mask" not in graph.data
    assert graph.report.isolated_nodes == 2


def test_a_split_without_all_parts_keeps_its_empty_masks(tmp_path: Path) -> None:
    graph = read_tables(write_csv(tmp_path, "id,split,label,f\na,train,0,1\nb,test,1,2\n", "source,target\n"))
    assert graph.data.val_mask.tolist() == [False, False]
    assert "note: no nodes in val" in graph.report.lines()


def test_new_graph_with_the_fitted_encoding(tmp_path: Path) -> None:
    fitted = read_tables(write_csv(tmp_path / "old"))
    new = write_csv(
        tmp_path / "new",
        "hair,id,label,age,shoe\nblue,1,dog,7,40\nblack,2,horse,8,41\nred,3,,9,42\n",
        "source,target,since\n1,2,1999\n1,2,2000\n3,3,2001\n",
    )
    graph = read_graph(new, encoding=fitted.encoding)
    assert graph.encoding is fitted.encoding
    assert graph.data.x.tolist() == [[7, 0, 0], [8, 1, 0], [9, 0, 1]]
    assert graph.data.y.tolist() == [1, -1, -1]
    assert graph.report.unseen_categories == (("hair", 1),)
    assert graph.report.unseen_labels == 1
    assert graph.report.ignored == ("shoe", "since")
    assert graph.report.lines()[1:] == (
        "1 duplicate edges, 1 self-loops, 1 isolated nodes, 1 edges without their reverse",
        "note: 1 cells of 'hair' hold a category not seen in fitting",
        "note: 1 nodes have a class not seen in fitting",
        "note: not used: shoe, since",
    )
    write_csv(tmp_path / "less", "id,hair\n1,red\n", "source,target\n")
    with pytest.raises(InputError, match=r"nodes\.csv has no column 'age'"):
        read_graph(tmp_path / "less", encoding=fitted.encoding)


def test_missing_numbers_by_the_mean(tmp_path: Path) -> None:
    write_csv(tmp_path, "id,f,g\na,1,x\nb,,y\nc,5,x\n", "source,target\n")
    graph = read_tables(tmp_path, missing="mean")
    assert graph.data.x[:, 0].tolist() == [1, 3, 5]
    assert graph.report.filled == (("f", 1),)
    assert "note: 1 missing cells of 'f' were filled" in graph.report.lines()


def test_line_numbers_count_blank_lines_and_start_after_the_bom(tmp_path: Path) -> None:
    write_csv(tmp_path, "\ufeffid,f\r\n\r\na,1\r\n\r\n\r\nb,inf\r\n", "source,target\n")
    with pytest.raises(InputError, match=r"nodes\.csv, line 6: column 'f' is inf"):
        read_tables(tmp_path)


def test_the_line_of_a_bad_cell_deep_in_a_file(tmp_path: Path) -> None:
    cells = [str(i) for i in range(5000)]
    cells[3210] = "oops"
    write_csv(
        tmp_path, "id,f\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)), "source,target\n"
    )
    with pytest.raises(InputError, match="line 3212: column 'f' is 'oops'"):
        read_tables(tmp_path)


@settings(max_examples=30, deadline=None)
@given(st.permutations(list(range(4))), st.permutations(list(range(3))))
def test_the_order_of_rows_only_renumbers(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[int], edges: list[int]
) -> None:
    folder = write_csv(tmp_path_factory.mktemp("g"))
    plain = read_tables(folder)
    for name, order in {"nodes.csv": nodes, "edges.csv": edges}.items():
        header, *rows = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join([header, *(rows[i] for i in order)]))
    mixed = read_tables(folder)
    assert torch.equal(mixed.data.x, plain.data.x[nodes])
    assert torch.equal(mixed.data.y, plain.data.y[nodes])
    assert torch.equal(torch.tensor(nodes)[mixed.data.edge_index], plain.data.edge_index[:, edges])
    assert mixed.report == plain.report
    assert mixed.encoding == plain.encoding


def test_the_benchmark_reads_what_it_wrote(tmp_path: Path) -> None:
    made = benchmark.records(num_nodes=50, num_edges=200, num_features=5)
    assert [record.variant for record in made] == ["csv", "parquet"]
    for record in made:
        result = record.metrics
        assert (result["nodes"], result["edges"], result["features"]) == (50, 200, 8)
        assert result["seconds"] > 0
        assert result["peak_mb"] >= result["imports_mb"] > 0
    for kind in ("csv", "parquet"):
        benchmark.write_folder(tmp_path / kind, kind, num_nodes=50, num_edges=200, num_features=5)
    csv, parquet = (read_tables(tmp_path / kind) for kind in ("csv", "parquet"))
    torch.testing.assert_close(csv.data.x, parquet.data.x, rtol=0, atol=0)
    assert torch.equal(csv.data.edge_index, parquet.data.edge_index)
    assert csv.encoding == parquet.encoding
