"""Bad files: each gives exactly one `InputError`, one line that names the file and the problem, and changes nothing."""

import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dssgnn.data.own.exchange import read_graph
from dssgnn.errors import InputError
from graph_files import EDGES, GRAPHML, NODES, arrays, snapshot, write_csv, write_npz

Case = tuple[Callable[[Path], Path], str, str]
PWNED = "the-code-ran"


class Runs:
    """Unpickled, it creates a file in the working directory."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (PWNED,)


def nodes(content: str | bytes, problem: str) -> Case:
    return lambda place: write_csv(place / "g", content, "source,target\n"), "nodes.csv", problem


def edges(content: str | bytes, problem: str) -> Case:
    return lambda place: write_csv(place / "g", edges=content), "edges.csv", problem


def npz(problem: str, **changes: Any) -> Case:
    return lambda place: write_npz(place / "g.npz", arrays(**changes)), "g.npz", problem


def raw(name: str, content: bytes, problem: str) -> Case:
    def make(place: Path) -> Path:
        (place / name).write_bytes(content)
        return place / name

    return make, name, problem


def graphml(old: str, new: str, problem: str) -> Case:
    assert old in GRAPHML
    return raw("g.graphml", GRAPHML.replace(old, new).encode(), problem)


def parquet(problem: str, *, in_file: str = "nodes.parquet", **columns: Any) -> Case:
    def make(place: Path) -> Path:
        folder = place / "g"
        folder.mkdir()
        (folder / "edges.csv").write_text("source,target\n1,2\n")
        table = pa.table({"id": [1, 2], "f": [0.5, 1.5], **columns})
        pq.write_table(
            table.drop_columns([name for name in columns if columns[name] is None]), folder / "nodes.parquet"
        )
        return folder

    return make, in_file, problem


def folder_of(name: str, content: dict[str, bytes], in_message: str, problem: str) -> Case:
    def make(place: Path) -> Path:
        (place / name).mkdir()
        for file, data in content.items():
            (place / name / file).write_bytes(data)
        return place / name

    return make, in_message, problem


def npz_bytes(content: dict[str, Any] | None = None) -> bytes:
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=True, **(arrays() if content is None else content))
    return buffer.getvalue()


def zipped(**members: bytes) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def absurd_shape() -> bytes:
    """An ``x`` of 80 petabytes, in 200 bytes."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 100000000), }\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    rest = {f"{key}__npy": npy(value) for key, value in arrays().items() if key != "x"}
    return zipped(x__npy=member, **rest)


def npy(array: Any) -> bytes:
    buffer = BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def damaged_member() -> bytes:
    content = bytearray(npz_bytes())
    content[content.index(b"\x93NUMPY") + 130] ^= 0xFF  # a byte of the data: the checksum no longer fits
    return bytes(content)


def many_words() -> str:
    return "id,name\n" + "".join(f"{i},person {i}\n" for i in range(1001))


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


LAUGHS = (
    '<!DOCTYPE lolz [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    + "]><graphml>&a11;</graphml>"
)
TWO_NODES = parquet_bytes(pd.DataFrame({"id": [1, 2], "f": [0.5, 1.5]}))

CASES: dict[str, Case] = {
    # nodes.csv as a file
    "nodes-empty": nodes("", "is empty"),
    "nodes-blank": nodes(" \n\n ", "is empty"),
    "nodes-header-blank": nodes("\n" + NODES, "line 1: is blank"),
    "nodes-header-only": nodes("id,f\n", "no rows"),
    "nodes-wrong-header": nodes("name,f\na,1\n", "no column 'id'"),
    "nodes-no-header": nodes("a,1\nb,2\n", "no column 'id'"),
    "nodes-semicolons": nodes("id;f\na;1\n", "separated by semicolons or tabs"),
    "nodes-duplicate-column": nodes("id,f,f\na,1,2\n", "'f' occurs twice"),
    "nodes-nameless-column": nodes("id,,f\na,1,2\n", "column 2 of the header has no name"),
    "nodes-header-open-quote": nodes('id,"f\na,1\n', "header line"),
    "nodes-utf16": nodes(NODES.encode("utf-16"), "UTF-16"),
    "nodes-utf16-no-bom": nodes(NODES.encode("utf-16-le"), "binary or UTF-16"),
    "nodes-latin1-header": nodes("id,fläche\na,1\n".encode("latin-1"), "not UTF-8"),
    "nodes-latin1-cell": nodes("id,f\nä,1\n".encode("latin-1"), "line 2: is not UTF-8"),
    "nodes-binary": nodes(bytes(range(256)), "binary"),
    "nodes-gzip": nodes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "expected comma-separated"),
    "nodes-short-row": nodes("id,f\na,1\nb\n", "line 3: has 1 cells, expected 2"),
    "nodes-long-row": nodes("id,f\na,1\n\nb,2,3\n", "line 4: has 3 cells, expected 2"),
    "nodes-open-quote": nodes('id,label,f\na,"cat,1\nb,dog,2\n', "line"),
    "nodes-line-break-in-cell": nodes(
        'id,label,f\na,cat,1\nb,"d\nog",2\n', "line 3: column 'label' holds a line"
    ),
    # nodes.csv as a table
    "nodes-duplicate-id": nodes(
        "id,f\na,1\n\nb,1\na,2\n", "line 5: id 'a' occurs a second time (first in line 2)"
    ),
    "nodes-duplicate-integer-id": nodes("id,f\n1,1\n2,1\n1,2\n", "line 4: id 1 occurs"),
    "nodes-empty-id": nodes("id,f\na,1\n ,2\n", "line 3: column 'id' is empty"),
    "nodes-no-features": nodes("id,label\na,cat\nb,dog\n", "no feature columns"),
    "nodes-non-numeric": nodes("id,f\na,1\nb,two\nc,3\n", "line 3: column 'f' is 'two', but '1' in line 2"),
    "nodes-missing-number": nodes("id,f\na,1\nb,\n", "line 3: column 'f' is missing"),
    "nodes-nan": nodes("id,f\na,1\nb,NaN\n", "line 3: column 'f' is missing"),
    "nodes-infinite": nodes("id,f\na,1\nb,-inf\n", "line 3: column 'f' is -inf"),
    "nodes-overflow64": nodes("id,f\na,1e999\n", "line 2: column 'f' is inf"),
    "nodes-overflow32": nodes("id,f\na,1e39\n", "line 2: column 'f' is 1e+39"),
    "nodes-empty-feature": nodes("id,f,g\na,1,\nb,2,\n", "column 'g' is empty"),
    "nodes-too-many-words": nodes(many_words(), "column 'name' has 1001 different words"),
    "nodes-unknown-split": nodes("id,split,f\na,train,1\nb,holdout,2\n", "line 3: split is 'holdout'"),
    "nodes-fractional-label": nodes("id,label,f\na,0.5,1\nb,1.0,2\n", "line 2: column 'label' is 0.5"),
    # edges.csv
    "edges-empty": edges("", "is empty"),
    "edges-wrong-header": edges("from,to\na,b\n", "no column 'source'"),
    "edges-no-target": edges("source\na\n", "no column 'target'"),
    "edges-unknown-id": edges("source,target\na,b\nb,zebra\n", "line 3: target 'zebra' is not an id"),
    "edges-integer-into-text": edges("source,target\n1,2\n", "line 2: source '1' is not an id"),
    "edges-text-into-integer": (
        lambda p: write_csv(p / "g", "id,f\n1,1\n2,2\n", "source,target\n1,2\nb,1\n"),
        "edges.csv",
        "line 3: source 'b' is text, but the ids of",
    ),
    "edges-leading-zero": (
        lambda p: write_csv(p / "g", "id,f\n1,1\n2,2\n", "source,target\n1,02\n"),
        "edges.csv",
        "line 2: target '02'",
    ),
    "edges-empty-end": edges("source,target\na,\n", "line 2: column 'target' is empty"),
    "edges-nan-weight": edges("source,target,weight\na,b,1\nb,c,nan\n", "line 3: weight is missing"),
    "edges-negative-weight": edges("source,target,weight\na,b,-1\n", "line 2: weight is -1"),
    "edges-infinite-weight": edges("source,target,weight\na,b,inf\n", "line 2: column 'weight' is inf"),
    "edges-overflow32": edges("source,target,weight\na,b,1e300\n", "line 2: weight is 1e+300"),
    "edges-wordy-weight": edges(
        "source,target,weight\na,b,1\na,b,heavy\n", "line 3: column 'weight' is 'heavy'"
    ),
    "edges-ragged": edges("source,target\na,b,c\n", "line 2: has 3 cells, expected 2"),
    "edges-utf16": edges(EDGES.encode("utf-16"), "UTF-16"),
    # folders
    "folder-empty": folder_of("g", {}, "g", "neither of nodes.csv and nodes.parquet"),
    "folder-no-edges": folder_of("g", {"nodes.csv": NODES.encode()}, "g", "neither of edges.csv"),
    "folder-both-nodes": folder_of(
        "g", {"nodes.csv": NODES.encode(), "nodes.parquet": TWO_NODES}, "g", "both of nodes.csv"
    ),
    "folder-named-npz": folder_of("g.npz", {}, "g.npz", "neither of nodes.csv"),
    # parquet
    "parquet-empty": folder_of(
        "g", {"nodes.parquet": b"", "edges.csv": EDGES.encode()}, "nodes.parquet", "cannot be"
    ),
    "parquet-is-csv": folder_of(
        "g", {"nodes.parquet": NODES.encode(), "edges.csv": EDGES.encode()}, "nodes.parquet", "cannot be read"
    ),
    "parquet-truncated": folder_of(
        "g",
        {"nodes.parquet": TWO_NODES[:-20], "edges.csv": EDGES.encode()},
        "nodes.parquet",
        "cannot be read",
    ),
    "parquet-float-id": parquet("column 'id' has type double", id=[1.0, 2.0]),
    "parquet-null-id": parquet("row 1: column 'id' is empty", id=[1, None]),
    "parquet-duplicate-id": parquet("row 1: id 2 occurs a second time (first in row 0)", id=[2, 2]),
    "parquet-null-number": parquet("row 0: column 'f' is missing", f=[None, 1.0]),
    "parquet-list-column": parquet("column 'g' has type list", g=[[1], [2]]),
    "parquet-date-column": parquet("column 'g' has type date", g=pa.array([1, 2], pa.date32())),
    "parquet-text-id": parquet("source '1' is not an id", in_file="edges.csv", id=["a", "b"]),
    "parquet-bad-utf8": parquet(
        "cannot be read",
        g=pa.StringArray.from_buffers(2, pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"a\xff")),
    ),
    # npz as a file
    "npz-empty": raw("g.npz", b"", "cannot be read"),
    "npz-truncated": raw("g.npz", npz_bytes()[:-200], "cannot be read"),
    "npz-half": raw("g.npz", npz_bytes()[:400], "cannot be read"),
    "npz-damaged": raw("g.npz", damaged_member(), "cannot be read"),
    "npz-is-text": raw("g.npz", NODES.encode(), "cannot be read"),
    "npz-is-npy": raw("g.npz", npy(np.ones(3)), "cannot be read"),
    "npz-is-other-zip": raw("g.npz", zipped(readme__txt=b"hello"), "no array 'x'"),
    "npz-members-are-text": raw(
        "g.npz", zipped(x__npy=b"hello", edge_index__npy=b"", y__npy=b"1"), "cannot be read"
    ),
    "npz-is-pickle": raw("g.npz", pickle.dumps(Runs()), "cannot be read"),
    "npz-pickled-member": raw(
        "g.npz", zipped(x__npy=pickle.dumps(Runs()), edge_index__npy=b"", y__npy=b""), "cannot be read"
    ),
    "npz-object-array": npz("array 'x' holds pickled objects", x=np.array([Runs(), Runs()], dtype=object)),
    "npz-object-mask": npz(
        "array 'train_mask' holds pickled", train_mask=np.array([Runs()] * 4, dtype=object)
    ),
    "npz-absurd-shape": raw("g.npz", absurd_shape(), "array 'x' declares shape"),
    # npz as a graph
    "npz-no-x": npz("no array 'x'", x=None),
    "npz-no-edges": npz("no array 'edge_index'", edge_index=None),
    "npz-no-y": npz("no array 'y'", y=None),
    "npz-text-x": npz("array 'x' has type <U1", x=np.array([["a"]] * 4)),
    "npz-complex-x": npz("array 'x' has type complex128", x=np.ones((4, 2), dtype=complex)),
    "npz-flat-x": npz("x has shape [4]", x=np.ones(4)),
    "npz-no-nodes": npz("x has shape [0, 2]", x=np.ones((0, 2))),
    "npz-nan-x": npz("x[2, 1] is nan", x=np.array([[1, 1], [1, 1], [1, np.nan], [1, 1]])),
    "npz-overflow-x": npz("is inf", x=np.full((4, 2), 1e300)),
    "npz-transposed-edges": npz("edge_index must have shape [2, E]", edge_index=np.zeros((3, 2), dtype=int)),
    "npz-float-edges": npz("array 'edge_index' has type float64", edge_index=np.zeros((2, 3))),
    "npz-edge-out-of-range": npz("edge_index names node 4", edge_index=np.array([[0, 1, 2], [1, 2, 4]])),
    "npz-negative-edge": npz("negative node -1", edge_index=np.array([[0, 1, 2], [1, 2, -1]])),
    "npz-unsigned-overflow": npz(
        "expected values below 2^63", edge_index=np.array([[0, 1, 2], [1, 2, 2**64 - 1]], dtype=np.uint64)
    ),
    "npz-short-y": npz("y has shape [3], expected [4]", y=np.array([0, 1, 0])),
    "npz-float-y": npz("array 'y' has type float64", y=np.array([0.0, 1, 0, 1])),
    "npz-negative-y": npz("y holds -2", y=np.array([0, 1, -2, 0])),
    "npz-short-weight": npz("edge_weight must have shape [3]", edge_weight=np.ones(2)),
    "npz-nan-weight": npz("edge_weight of edge 1 is nan", edge_weight=np.array([1, np.nan, 1])),
    "npz-negative-weight": npz("edge_weight of edge 0 is -1", edge_weight=np.array([-1.0, 1, 1])),
    "npz-overlapping-masks": npz("node 1 is in both", val_mask=np.array([False, True, True, False])),
    "npz-short-mask": npz("train_mask must be a boolean tensor of shape [4]", train_mask=np.array([True])),
    "npz-count-mask": npz("other values than 0 and 1", test_mask=np.array([0, 0, 0, 2])),
    # GraphML
    "graphml-empty": raw("g.graphml", b"", "no element found"),
    "graphml-broken": raw("g.graphml", GRAPHML.encode()[:-30], "cannot be read as GraphML"),
    "graphml-not-xml": raw("g.graphml", NODES.encode(), "cannot be read as GraphML"),
    "graphml-other-xml": raw("g.graphml", b"<svg></svg>", "cannot be read as GraphML"),
    "graphml-entities": raw("g.graphml", LAUGHS.encode(), "has a DOCTYPE"),
    "graphml-entities-utf16": raw("g.graphml", LAUGHS.encode("utf-16"), "has a DOCTYPE"),
    "graphml-deep": raw("g.graphml", b"<a>" * 5000 + b"</a>" * 5000, "nested deeper"),
    "graphml-unknown-node": graphml('target="c"', 'target="zebra"', "line 11: edge to 'zebra'"),
    "graphml-duplicate-node": graphml(
        'node id="b"', 'node id="a"', "line 8: node id 'a' occurs a second time"
    ),
    "graphml-wordy-number": graphml(">1.5<", ">many<", "cannot be read as GraphML"),
    "graphml-nan": graphml(">1.5<", ">nan<", "row 0: column 'age' is missing"),
    "graphml-negative-weight": graphml(">0.5<", ">-0.5<", "weight is -0.5"),
    "graphml-missing-weight": graphml('<data key="k2">2</data>', "", "weight is missing"),
    "graphml-no-features": graphml('attr.name="age"', 'attr.name="split"', "g.graphml"),
    "graphml-undeclared-key": graphml('<data key="k0">2', '<data key="k9">2', "cannot be read as GraphML"),
    # paths
    "path-absent": (lambda place: place / "nowhere.npz", "nowhere.npz", "does not exist"),
    "path-absent-no-suffix": (lambda place: place / "nowhere", "nowhere", "does not exist"),
    "path-unknown-kind": raw("g.txt", b"hello", "no kind of graph"),
    "path-pickle": raw("g.pkl", pickle.dumps(Runs()), "no kind of graph"),
}


def test_there_are_sixty() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, file, problem = case
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(InputError) as caught:
        read_graph(path)
    message = str(caught.value)
    assert "\n" not in message
    assert file in message
    assert problem in message
    assert len(message) < 1000
    assert snapshot(tmp_path) == before  # nothing written, and the pickles' code did not run


def test_the_trap_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Runs()))
    assert (tmp_path / PWNED).is_dir()


def test_file_that_may_not_be_read_or_is_a_pipe(tmp_path: Path) -> None:
    folder = write_csv(tmp_path / "g")
    (folder / "nodes.csv").unlink()
    os.mkfifo(folder / "nodes.csv")
    with pytest.raises(InputError, match=r"nodes\.csv is not a file"):
        read_graph(folder)
    (folder / "nodes.csv").unlink()
    (folder / "nodes.csv").mkdir()
    with pytest.raises(InputError, match=r"nodes\.csv is not a file"):
        read_graph(folder)


def test_a_path_that_does_not_print_stays_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_graph(write_csv(tmp_path / "two\nlines", nodes="id,f\na,x1\nb,1\n"))
    assert "\n" not in str(caught.value)
    assert "two\\nlines" in str(caught.value)
