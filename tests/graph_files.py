"""Small graph files for the readers' tests: valid ones, to be read or to be spoiled."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

NODES = "id,label,split,age,hair\na,cat,train,1.5,red\nb,dog,train,2,black\nc,cat,val,-3e1,red\nd,,test,0,\n"
EDGES = "source,target,weight\na,b,1\nb,c,0.5\nc,d,2\n"
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k0" for="node" attr.name="age" attr.type="double"/>
  <key id="k1" for="node" attr.name="label" attr.type="string"/>
  <key id="k2" for="edge" attr.name="weight" attr.type="double"/>
  <graph edgedefault="undirected">
    <node id="a"><data key="k0">1.5</data><data key="k1">cat</data></node>
    <node id="b"><data key="k0">2</data><data key="k1">dog</data></node>
    <node id="c"><data key="k0">-3</data></node>
    <edge source="a" target="b"><data key="k2">0.5</data></edge>
    <edge source="b" target="c"><data key="k2">2</data></edge>
  </graph>
</graphml>
"""


def write_csv(folder: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"nodes.csv": nodes, "edges.csv": edges}.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def arrays(**changes: Any) -> dict[str, Any]:
    """The arrays of a valid ``.npz``; a change to None leaves the array out."""
    content: dict[str, Any] = {
        "x": np.arange(8, dtype=np.float64).reshape(4, 2),
        "edge_index": np.array([[0, 1, 2], [1, 2, 3]]),
        "y": np.array([3, 7, 3, -1]),
        "edge_weight": np.array([1.0, 0.5, 2.0]),
        "train_mask": np.array([True, True, False, False]),
        "val_mask": np.array([False, False, True, False]),
        "test_mask": np.array([False, False, False, True]),
    }
    content.update(changes)
    return {key: value for key, value in content.items() if value is not None}


def write_npz(path: Path, content: Mapping[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=True, **dict(arrays() if content is None else content))
    return path


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
