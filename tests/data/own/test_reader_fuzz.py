"""Whatever the bytes: the readers return a graph that passes the check, or raise `InputError`. Nothing else."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dssgnn.data.checks import check_graph
from dssgnn.data.own.columns import ColumnEncoding
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.exchange import read_graph
from dssgnn.errors import InputError
from graph_files import EDGES, GRAPHML, NODES, arrays, snapshot

modest = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ENCODING = FeatureEncoding(
    (ColumnEncoding("age"), ColumnEncoding("hair", categories=("red",))), class_names=("cat",)
)


@contextmanager
def place(**files: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name.replace("_", ".")).write_bytes(content)
        yield Path(folder)


def valid_or_refused(thing: Any, **options: Any) -> bool:
    """Read; True for a valid graph, False for an `InputError` of one line."""
    try:
        graph = read_graph(thing, **options)
    except InputError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        assert "\r" not in message
        return False
    report = check_graph(graph.data)
    assert report.num_nodes == len(graph.node_ids) == len(set(graph.node_ids.tolist()))
    assert report.num_features == graph.encoding.num_features
    assert int(graph.data.y.max()) < max(len(graph.class_names), 1)
    assert FeatureEncoding.from_json(graph.encoding.to_json()) == graph.encoding
    assert all("\n" not in line for line in graph.report.lines())
    return True


def check_files(target: str | None = None, **files: bytes) -> bool:
    with place(**files) as folder:
        before = snapshot(folder)
        path = folder / target if target else folder
        good = valid_or_refused(path)
        if target is None:
            valid_or_refused(path, encoding=ENCODING)
            valid_or_refused(path, missing="mean")
        assert snapshot(folder) == before
        return good


def as_bytes(write: Any) -> bytes:
    buffer = BytesIO()
    write(buffer)
    return buffer.getvalue()


NODE_FRAME = pd.DataFrame(
    {"id": ["a", "b", "c", "d"], "label": [0, 1, 0, 1], "age": [1.0, 2, 3, 4], "hair": list("xyxy")}
)
SEEDS = {
    "nodes.csv": NODES.encode(),
    "edges.csv": EDGES.encode(),
    "nodes.parquet": as_bytes(NODE_FRAME.to_parquet),
    "g.npz": as_bytes(lambda file: np.savez(file, **arrays())),
    "z.npz": as_bytes(lambda file: np.savez_compressed(file, **arrays())),
    "g.graphml": GRAPHML.encode(),
}


@st.composite
def mutations(draw: st.DrawFn, content: bytes) -> bytes:
    """A few edits of a valid file: bytes changed, cut out, doubled, or inserted."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["change", "cut", "double", "insert", "truncate", "token"]))
        if kind == "change":
            data[at : at + length] = draw(st.binary(min_size=length, max_size=length))
        elif kind == "cut":
            del data[at : at + length]
        elif kind == "double":
            data[at:at] = data[at : at + length]
        elif kind == "insert":
            data[at:at] = draw(st.binary(max_size=12))
        elif kind == "token":
            data[at:at] = draw(
                st.sampled_from([b",", b'"', b"\n", b"\r", b"\0", b"nan", b"1e999", b"<", b"-", b"\xff"])
            )
        else:
            del data[at:]
    return bytes(data)


def files_with(name: str, content: bytes) -> dict[str, bytes]:
    """The folder a mutated file is read in."""
    rest = {"nodes.csv": "edges.csv", "nodes.parquet": "edges.csv", "edges.csv": "nodes.csv"}
    files = {name: content} | ({rest[name]: SEEDS[rest[name]]} if name in rest else {})
    return {key.replace(".", "_"): value for key, value in files.items()}


@pytest.mark.parametrize("name", SEEDS)
def test_the_seeds_are_valid(name: str) -> None:
    assert check_files(None if name[:5] in ("nodes", "edges") else name, **files_with(name, SEEDS[name]))


@pytest.mark.parametrize("name", SEEDS)
@modest
@given(data=st.data())
def test_mutated_files(name: str, data: st.DataObject) -> None:
    content = data.draw(mutations(SEEDS[name]))
    check_files(None if name[:5] in ("nodes", "edges") else name, **files_with(name, content))


@pytest.mark.parametrize("name", SEEDS)
@settings(modest, max_examples=40)
@given(content=st.binary(max_size=300))
@example(b"PK\x05\x06" + bytes(18))
@example(b"PAR1" + bytes(8) + b"PAR1")
@example(b"<graphml/>")
@example(b"\xef\xbb\xbf")
@example(b"id,f\n\x00,1\n")
def test_random_bytes(name: str, content: bytes) -> None:
    check_files(None if name[:5] in ("nodes", "edges") else name, **files_with(name, content))


cells = st.sampled_from(
    [
        "",
        "a",
        "b",
        "c",
        "1",
        "2",
        "03",
        "-1",
        "0.5",
        "1e3",
        "nan",
        "inf",
        "train",
        "val",
        "true",
        " a ",
        "é",
        '"',
        "NA",
    ]
)
headers = st.lists(
    st.sampled_from(["id", "label", "split", "f", "g", "source", "target", "weight", "", " id "]), max_size=6
)


@st.composite
def csv_tables(draw: st.DrawFn, first: list[str]) -> bytes:
    names = first + draw(headers) if draw(st.integers(0, 5)) else draw(headers)
    rows = draw(st.lists(st.lists(cells, min_size=len(names), max_size=len(names)), max_size=6))
    if draw(st.integers(0, 3)):  # mostly with distinct ids, or little would get past them
        rows = [[str(i), *row[1:]] if row else row for i, row in enumerate(rows)]
    text = "\n".join(",".join(row) for row in [names, *rows])
    return text.encode()


@settings(modest, max_examples=200)
@given(csv_tables(["id", "f"]), csv_tables(["source", "target"]))
def test_random_csv_tables(nodes: bytes, edges: bytes) -> None:
    check_files(nodes_csv=nodes, edges_csv=edges)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.dates(),
    st.binary(max_size=3),
)
kinds = [
    st.integers(-3, 3),
    st.integers(0, 2**64 - 1),
    st.floats(),
    st.sampled_from([0.0, 1.0, None]),
    st.text(max_size=3),
    st.sampled_from(["a", "b", None]),
    st.booleans(),
    st.dates(),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, max_value=10**6, min_value=0),
    st.lists(st.integers(0, 3), max_size=2),
    st.none(),
]


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    rows = draw(st.integers(0, 5))
    names = ["id", *draw(st.lists(st.sampled_from(["label", "split", "f", "g", "h"]), unique=True))]
    columns: dict[str, list[Any]] = {}
    for name in names:
        kind = draw(st.sampled_from(kinds))
        columns[name] = draw(st.lists(kind, min_size=rows, max_size=rows))
    if draw(st.booleans()):
        columns["id"] = list(range(rows))
    try:
        return as_bytes(pd.DataFrame(columns).to_parquet)
    except (ValueError, TypeError, OverflowError):  # no table at all: pandas or Arrow cannot write it
        return b""


@modest
@given(frames())
def test_random_parquet_tables(nodes: bytes) -> None:
    check_files(nodes_parquet=nodes, edges_csv=b"source,target\n0,0\n")


dtypes = st.sampled_from(
    ["?", "i1", "u1", ">i4", "i8", "u8", "f2", "f4", ">f8", "c8", "U2", "S3", "M8[s]", "V4", "i4,f8"]
)
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@modest
@given(
    st.dictionaries(
        st.sampled_from(list(arrays())), st.tuples(dtypes, shapes, st.binary(min_size=64, max_size=64))
    )
)
def test_random_arrays(changes: dict[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    made = {}
    for key, (dtype, shape, noise) in changes.items():
        count = int(np.prod(shape))
        made[key] = np.frombuffer(noise * 64, dtype=dtype, count=count).reshape(shape)
    check_files("g.npz", g_npz=as_bytes(lambda file: np.savez(file, **arrays(**made))))


@modest
@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.integers(0, 3), st.sampled_from(["a", "1"]), st.tuples(st.integers(0, 1)), st.booleans()
            ),
            st.dictionaries(
                st.sampled_from(["f", "g", "label", "split", 3]), scalars | st.lists(st.floats(), max_size=2)
            ),
        ),
        max_size=5,
    ),
    st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph]),
    st.lists(scalars, max_size=3),
)
def test_random_networkx(nodes: list[tuple[Any, dict[Any, Any]]], kind: type, weights: list[Any]) -> None:
    graph = kind()
    graph.add_nodes_from(nodes)
    if nodes:
        for weight in weights:
            graph.add_edge(nodes[0][0], nodes[-1][0], weight=weight)
    valid_or_refused(graph)
    valid_or_refused(graph, missing="mean")
