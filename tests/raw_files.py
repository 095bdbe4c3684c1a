"""Small files in the published raw formats, written for the tests, with the answers a reader must give."""

import collections
import gzip
import io
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dssgnn.data.catalog.readers import RawFile


def raw(files: Mapping[str, bytes]) -> dict[str, RawFile]:
    return {role: RawFile(Path(role), content) for role, content in files.items()}


def write(root: Path, contents: Mapping[str, bytes]) -> None:
    for relative, content in contents.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def planetoid() -> dict[str, bytes]:
    """Nodes 0..5 known, test nodes 9, 6, 8 in that order; node 7 is in the test range without a row."""
    allx = np.array([[1, 0, 2], [0, 1, 0], [0, 0, 0], [1, 1, 1], [0, 3, 0], [0, 0, 1]], dtype=np.float32)
    tx = np.array([[9, 0, 0], [6, 6, 0], [0, 0, 8]], dtype=np.float32)
    ally = np.eye(3, dtype=np.int32)[[1, 2, 0, 1, 2, 0]]
    ty = np.eye(3, dtype=np.int32)[[2, 1, 2]]
    graph = collections.defaultdict(list, {node: [] for node in range(10)})
    graph[0] = [1, 1, 9]  # twice the same neighbour
    graph[1] = [0]
    graph[9] = [0]
    graph[4] = [4]  # a self-loop
    graph[8] = [3]  # listed in one direction only
    return _planetoid(allx, ally, 2, tx, ty, [9, 6, 8], graph)


def random_planetoid(seed: int) -> dict[str, bytes]:
    """540 known nodes (PyG insists on 500 for validation) and 60 of 80 in the test range."""
    rng = np.random.default_rng(seed)
    features = sp.random(600, 30, density=0.1, random_state=rng, dtype=np.float32).tocsr()
    labels = np.eye(4, dtype=np.int32)[rng.integers(0, 4, 600)]
    test = rng.permutation(np.concatenate([[540, 619], 541 + rng.choice(78, 58, replace=False)]))
    graph = {node: rng.integers(0, 620, rng.integers(0, 6)).tolist() for node in range(620)}
    return _planetoid(features[:540], labels[:540], 40, features[540:], labels[540:], test.tolist(), graph)


def _planetoid(
    allx: Any, ally: Any, train: int, tx: Any, ty: Any, test: list[int], graph: Any
) -> dict[str, bytes]:
    parts = {
        "x": sp.csr_matrix(allx[:train]), "tx": sp.csr_matrix(tx), "allx": sp.csr_matrix(allx),
        "y": ally[:train], "ty": ty, "ally": ally, "graph": graph,
    }  # fmt: skip
    files = {part: pickle.dumps(value, protocol=4) for part, value in parts.items()}
    return files | {"test.index": "".join(f"{node}\n" for node in test).encode()}


def geom_gcn() -> dict[str, bytes]:
    files = {
        "nodes": b"node_id\tfeature\tlabel\n2\t1,1,0\t1\n0\t0,0,1\t0\n1\t0,0,0\t1\n",
        "edges": b"node_id\tnode_id\n2\t0\n0\t2\n1\t1\n2\t0\n1\t2\n",
    }
    for i in range(10):
        test = np.arange(3) == i % 3
        val = np.arange(3) == (i + 1) % 3
        masks = {"train_mask": ~test & ~val, "val_mask": val, "test_mask": test}
        files[f"split_{i}"] = npz(**{name: mask.astype(np.uint8) for name, mask in masks.items()})
    return files


def gnn_benchmark(**extra: Any) -> bytes:
    """A directed path 0-1-2-3 with a loop on 3; node 2 has no feature; counts above one."""
    adj = sp.csr_matrix((np.ones(4), ([0, 1, 3, 3], [1, 2, 2, 3])), shape=(4, 4))
    attr = sp.csr_matrix(np.array([[1, 0], [3, 1], [0, 0], [0, 7]], dtype=np.float32))
    arrays: dict[str, Any] = {"labels": np.array([0, 1, 1, 0])}
    for prefix, matrix in (("adj", adj), ("attr", attr)):
        arrays[f"{prefix}_data"] = matrix.data
        arrays[f"{prefix}_indices"] = matrix.indices
        arrays[f"{prefix}_indptr"] = matrix.indptr
        arrays[f"{prefix}_shape"] = np.array(matrix.shape)
    return npz(**(arrays | extra))


def heterophilous() -> bytes:
    """Five nodes, three edges listed once, two splits."""
    index = np.arange(5)
    return npz(
        node_features=np.arange(10, dtype=np.float32).reshape(5, 2) - 4.5,
        node_labels=np.array([0, 1, 2, 1, 0]),
        edges=np.array([[0, 1], [1, 2], [4, 3]]),
        train_masks=np.stack([index < 3, index >= 2]),
        val_masks=np.stack([index == 3, index == 0]),
        test_masks=np.stack([index == 4, index == 1]),
    )


def musae() -> dict[str, bytes]:
    """Three users; rows of the target table are not in the order of ``new_id``; one is listed twice."""
    return {
        "edges": b"from,to\n0,2\n1,2\n",
        "features": json.dumps({"2": [3169, 5, 5], "0": [0], "1": []}).encode(),
        "target": (
            b"id,days,mature,views,partner,new_id\n71,1,True,1,False,2\n"
            b"72,1,False,1,False,0\n73,1,True,1,False,1\n73,1,True,1,False,1\n"
        ),
    }


def pyg_twitch() -> bytes:
    return npz(
        features=np.linspace(-1, 1, 3 * 128).reshape(3, 128),
        target=np.array([1, 0, 1]),
        edges=np.array([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0]]),
    )


def arxiv() -> dict[str, bytes]:
    return {
        "edge": b"0,1\n2,1\n3,0\n",
        "node-feat": b"0.5,-1.0\n0.25,2.0\n0.0,0.0\n1.5,3.0\n",
        "node-label": b"3\n0\n1\n3\n",
        "node_year": b"2013\n2016\n2018\n2020\n",
        "num-node-list": b"4\n",
        "train": b"0\n",
        "valid": b"1\n",
        "test": b"3\n2\n",
    }


def gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
