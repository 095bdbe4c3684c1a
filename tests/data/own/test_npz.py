"""``.npz`` graphs: known answers, and no trust in what a file declares."""

import resource
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch

from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.exchange import read_graph
from dssgnn.data.own.npz import read_npz
from dssgnn.errors import InputError
from graph_files import arrays, write_npz


def test_known_graph(tmp_path: Path) -> None:
    graph = read_npz(write_npz(tmp_path / "g.npz"))
    assert graph.data.x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.data.x.dtype == torch.float32
    assert graph.data.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.class_names == (3, 7)
    assert graph.data.y.tolist() == [0, 1, 0, -1]
    assert graph.data.edge_weight.tolist() == [1, 0.5, 2]
    assert graph.data.train_mask.tolist() == [True, True, False, False]
    assert graph.node_ids.tolist() == [0, 1, 2, 3]
    assert graph.encoding == FeatureEncoding(unnamed=2, class_names=(3, 7))
    assert graph.report.parts == (("train", 2), ("val", 1), ("test", 1))


@pytest.mark.parametrize("kind", ["<f2", ">f4", "<i1", ">u8", "?"])
def test_other_types_and_orders(kind: str, tmp_path: Path) -> None:
    x = np.asfortranarray(np.array([[1, 0], [0, 1], [1, 1], [0, 0]]).astype(kind))
    edge_index = np.array([[0, 1, 2], [1, 2, 3]]).astype(">u2")
    masks = {"train_mask": np.array([1, 1, 0, 0]), "edge_weight": np.array([1, 2, 3])}
    graph = read_npz(write_npz(tmp_path / "g.npz", arrays(x=x, edge_index=edge_index, **masks)))
    assert graph.data.x.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    assert graph.data.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.data.train_mask.tolist() == [True, True, False, False]
    assert graph.data.edge_weight.tolist() == [1, 2, 3]


def test_compressed_with_more_arrays_and_without_options(tmp_path: Path) -> None:
    content = {key: arrays()[key] for key in ("x", "edge_index", "y")}
    np.savez_compressed(tmp_path / "g.npz", **content, notes=np.array(["hello"]))
    graph = read_graph(tmp_path / "g.npz")
    assert sorted(graph.data.keys()) == ["edge_index", "x", "y"]
    assert graph.report.ignored == ("notes",)


def test_an_array_that_is_not_ours_is_never_opened(tmp_path: Path) -> None:
    write_npz(tmp_path / "g.npz", {**arrays(), "extra": np.array([object], dtype=object)})
    assert read_npz(tmp_path / "g.npz").report.ignored == ("extra",)


def test_encoding_of_a_fitted_graph(tmp_path: Path) -> None:
    fitted = read_npz(write_npz(tmp_path / "g.npz")).encoding
    new = read_npz(write_npz(tmp_path / "new.npz", arrays(y=np.array([7, 8, -1, 3]))), encoding=fitted)
    assert new.data.y.tolist() == [1, -1, -1, 0]
    assert new.report.unseen_labels == 1
    wide = write_npz(tmp_path / "wide.npz", arrays(x=np.ones((4, 3))))
    with pytest.raises(InputError, match=r"wide\.npz: x has 3 features, but the encoding was fitted with 2"):
        read_npz(wide, encoding=fitted)


def test_a_file_that_needs_more_than_the_memory_is_refused(tmp_path: Path) -> None:
    """The directory of the archive declares 2^40 bytes, and so does the header of the array."""
    member = BytesIO()
    np.lib.format.write_array_header_1_0(
        member, {"descr": "<f4", "fortran_order": False, "shape": (2**38, 1)}
    )
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("x.npy", member.getvalue())
        for key in ("edge_index", "y"):
            buffer = BytesIO()
            np.save(buffer, arrays()[key])
            archive.writestr(f"{key}.npy", buffer.getvalue())
        archive.getinfo("x.npy").file_size = 2**40 + len(member.getvalue())
    with pytest.raises(InputError, match=r"g\.npz declares 1099\.5 GB"):
        read_npz(tmp_path / "g.npz")


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="needs a limit on the address space")
def test_a_lying_header_allocates_nothing(tmp_path: Path) -> None:
    """8 GB declared, none present: refused in a process that may allocate 1 GB more than it has."""
    header = BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 1)}
    )
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        for key in ("x", "edge_index", "y"):
            archive.writestr(f"{key}.npy", header.getvalue())
    code = """
import re, resource, sys
from dssgnn.data.own.npz import read_npz
from dssgnn.errors import InputError
used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
try:
    read_npz(sys.argv[1])
except InputError as error:
    print(error)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    command = [sys.executable, "-c", code, str(tmp_path / "g.npz")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "array 'x' declares shape [1000000000, 1] of float64, but holds 0 bytes" in output
